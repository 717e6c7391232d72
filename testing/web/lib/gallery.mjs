// The gallery as its template stands, with the style sheet and the icons of the tree: no service has to be asked, and no build has to have it.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const text = (path) => readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");
const ASSETS = "libs/pages/assets";

/** Its parts. */
export const gallery = text("services/operator-api/templates/gallery.html").match(/\{% block main %\}(.*)\{% endblock %\}/s)[1];

/** The whole page, with these styles beside those of all pages. */
export const html = (theme, styles = "") => `<!doctype html><html lang="en" data-theme="${theme}" data-density="dense"><head><meta charset="utf-8"><title>Gallery</title>
<style>${text(`${ASSETS}/pages.css`)}</style><style>${styles}</style></head><body>${text(`${ASSETS}/icons.svg`)}
<div class="shell"><nav class="side" id="places"></nav><div class="page"><main id="main">${gallery}</main></div></div></body></html>`;
