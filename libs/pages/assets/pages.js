// What the pages do beyond HTML: stay live, keys, dialogs, times of the viewer's zone, copying. Every page works without it.
// README.md beside it names the attributes. Nothing here builds HTML out of text.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;
  const main = () => $("#main");
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element.append(...children), element;
  };

  // --- Preferences: no secret, so the script may write them; the server reads them too.

  const preferences = new URLSearchParams((document.cookie.match(/(?:^|; )pr_prefs=([^;]*)/) || ["", ""])[1]);
  const prefer = (name, value) => {
    preferences.set(name, value);
    // In a page of another site a browser keeps no cookie of another kind.
    const kept = root.dataset.parent ? "SameSite=None; Partitioned" : "SameSite=Lax";
    // One that is kept outside of frames has the same name, and would be read first.
    if (root.dataset.parent) document.cookie = "pr_prefs=; Secure; Path=/; Max-Age=0";
    document.cookie = `pr_prefs=${preferences}; Secure; Path=/; ${kept}; Max-Age=31536000`;
    if (name === "theme" || name === "density") value ? (root.dataset[name] = value) : delete root.dataset[name];
    if (name === "tz") rewriteTimes(document);
  };

  // --- Words that are shown and spoken. Both regions are there before they are needed, as screen readers want it.

  const notice = make("div", { class: "notice", role: "status", id: "notice" });
  const spoken = make("div", { class: "sr", role: "status", id: "spoken" });
  let noticeTimer;
  const say = (text, lasting = false) => {
    clearTimeout(noticeTimer);
    notice.classList.toggle("lost", lasting);
    if (notice.textContent !== text) notice.textContent = text;
    if (text && !lasting) noticeTimer = setTimeout(() => (notice.textContent = ""), 4000);
  };

  // --- Times: the server writes them in the zone of data-tz; they are written again only where the viewer's is another.

  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const zone = () => preferences.get("tz") || ownZone;
  const formatTime = (date, format) => {
    const part = Object.fromEntries(
      new Intl.DateTimeFormat("en-GB", {
        timeZone: zone(), weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
      }).formatToParts(date).map(({ type, value }) => [type, value]),
    );
    part.month = part.month.slice(0, 3); // "Sept" in this locale
    const [day, minute] = [`${part.weekday} ${part.day} ${part.month}`, `${part.hour}:${part.minute}`];
    const time = `${minute}:${part.second}`;
    return { time, minute, date: day, datetime: `${day}, ${time}` }[format] || `${day} ${part.year}, ${time} ${zone()}`;
  };
  const rewriteTimes = (within) => {
    if (root.dataset.tz === zone() && within !== document) return;
    for (const element of $$("time[datetime]", within)) {
      const date = new Date(element.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      element.title = formatTime(date, "full");
      if (element.dataset.format !== "ago") element.textContent = formatTime(date, element.dataset.format);
    }
    for (const element of $$("[data-zone]", within)) element.textContent = zone();
  };

  // --- Live: the page is asked for again with its ETag, and morphed, so that focus, selection and scroll stay.

  const live = { etag: "", timer: 0, failures: 0, running: false, ended: false, asked: 0, spokenAt: -1e9, since: new Date(), paused: null, told: false };
  const liveWanted = () => preferences.get("live") !== "off";
  const pace = () => Number(main()?.dataset.live) || 0;
  const isEdited = (field) =>
    field.type === "checkbox" || field.type === "radio" ? !field.hasAttribute("data-check") && !field.hasAttribute("data-check-all") && field.checked !== field.defaultChecked
    : field.tagName === "SELECT" ? field.selectedIndex !== Math.max(0, [...field.options].findLastIndex((option) => option.defaultSelected))
    : field.type !== "hidden" && field.value !== field.defaultValue;
  const isHeld = () => Boolean(live.paused || $("dialog[open]") || drag) || $$("input, select, textarea", main()).some(isEdited);
  const showLive = () => {
    const button = $('[data-act="live"]');
    if (!button) return;
    const on = liveWanted() && pace() > 0 && !live.ended;
    for (const said of $$("[data-listens]", main())) {
      const text = !on || live.failures ? " It does not listen now." : live.paused ? ` It is paused since ${formatTime(live.paused, "time")}.` : ` It listens since ${formatTime(live.since, "time")}.`;
      if (said.textContent !== text) said.textContent = text;
    }
    for (const pause of $$('[data-act="pause"]', main())) {
      const text = live.paused ? "Go on" : "Pause";
      if (pause.textContent !== text) pause.textContent = text;
      pause.hidden = !on;
    }
    button.hidden = pace() === 0;
    button.setAttribute("aria-pressed", String(on));
    button.dataset.state = !on ? "off" : live.failures ? "lost" : isHeld() ? "held" : "on";
    button.title = { off: "Live is off (L)", lost: "The connection was lost, trying again", held: live.paused ? "Paused" : "Waits while you write", on: "Live (L turns it off)" }[button.dataset.state];
  };
  const schedule = () => {
    clearTimeout(live.timer);
    // Where it is told of changes, it asks by itself in case that it was not told of one.
    const seldom = "told" in root.dataset && !isHeld() ? 5 : 1;
    if (pace() > 0 && liveWanted() && !document.hidden && !live.ended) live.timer = setTimeout(tick, Math.min(pace() * seldom * 2 ** Math.min(live.failures, 3), 15000));
    showLive();
    document.dispatchEvent(new Event("postrider:live"));
  };
  const tick = async () => {
    if (live.running || document.hidden || !liveWanted()) return;
    if (isHeld()) return schedule();
    live.running = true;
    const [url, asked] = [location.href, live.asked];
    try {
      // A screen that no person looks at must not keep its visit going.
      const headers = { "X-Postrider-Tick": "1", ...(live.etag && { "If-None-Match": live.etag }) };
      const answer = await fetch(url, { headers, cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(10000) });
      const text = answer.ok ? await answer.text() : "";
      if (answer.type === "opaqueredirect" || answer.status === 401) {
        live.ended = true;
        say(document.documentElement.dataset.ended || "Your visit has ended. Load the page again to sign in.", true);
      } else if (answer.ok || answer.status === 304) {
        if (live.failures) {
          say("Connected again");
          live.since = new Date();
        }
        live.failures = 0;
        // What the viewer began meanwhile, and where they went meanwhile, count more than the answer.
        if (answer.ok && !isHeld() && url === location.href && asked === live.asked) {
          live.etag = answer.headers.get("ETag") || "";
          show(text, true);
        }
      } else if (answer.status === 404 || answer.status === 403) {
        live.ended = true;
        say(answer.status === 404 ? "What this page shows is not there any more." : "You may not see this page any more.", true);
      } else {
        say(`Postrider answered ${answer.status}, trying again`, Boolean(++live.failures));
      }
    } catch {
      say("The connection was lost, trying again", Boolean(++live.failures));
    } finally {
      live.running = false;
      live.told && !live.failures ? ((live.told = false), void tick()) : schedule();
    }
  };

  // Text becomes HTML by this policy alone, and the one text that it is given is a page that this origin has answered with. The policy of the
  // page lets no other one be made, so that htmx's own ways from text to HTML and to scripts are shut.
  const parser = window.trustedTypes?.createPolicy("postrider", { createHTML: (text) => text });
  const parsed = (text) => new DOMParser().parseFromString(parser ? parser.createHTML(text) : text, "text/html");

  // The morph is htmx's own, on parsed nodes: its swap takes text, in which it rewrites what looks like its own tags.
  let morph;
  htmx.registerExtension("console", { init: (api) => (morph = api.morph) });

  // Rows stay where they are: newer ones are counted, those that left the list are marked, and dropped once there are this many rows.
  const ROWS_KEPT = 100;
  const keepRows = (next) => {
    let newer = 0;
    for (const body of $$("tbody[data-rows]", main())) {
      const nextBody = $$("tbody[data-rows]", next)[$$("tbody[data-rows]", main()).indexOf(body)];
      if (!nextBody || !body.rows.length || [...body.rows].some((row) => !row.id)) continue;
      const coming = new Map([...nextBody.rows].map((row) => [row.id, row]));
      const known = new Set([...body.rows].map((row) => row.id));
      // What comes after the last known row moves nothing, so that it may stand there.
      const ids = [...coming.keys()];
      const end = ids.findLastIndex((id) => known.has(id)) + 1;
      const added = ids.slice(0, end).filter((id) => !known.has(id)).length;
      const rows = [...body.rows].map((row, index, all) => {
        if (coming.has(row.id)) return coming.get(row.id);
        const left = row.cloneNode(true);
        if (index < all.length - added) left.classList.add("gone");
        return left;
      });
      const all = [...rows, ...ids.slice(end).map((id) => coming.get(id))];
      // The page stays open for days: of those that left the list, the oldest give way. The row that the viewer is at stays.
      let over = all.length - ROWS_KEPT;
      nextBody.replaceChildren(...all.filter((row) => !(over > 0 && row.matches(".gone:not([data-at])") && over--)));
      if (added) nextBody.closest("table").before(make("a", { class: "newer", href: location.href }, `${added} newer`));
      newer += added;
    }
    if (newer && performance.now() - live.spokenAt > 10000) {
      live.spokenAt = performance.now();
      spoken.textContent = `${newer} newer`;
    }
  };

  // show(text, inPlace): the page in text becomes this page. In place: rows, marks and what is open stay.
  const show = (text, inPlace) => {
    const next = parsed(text);
    const [nextMain, nextPlaces] = [$("#main", next), $("#places", next)];
    if (!nextMain) throw new Error("a page without main");
    if (inPlace) {
      keepRows(nextMain);
      for (const element of $$("details[id], details[open]", main())) {
        const same = element.id && $(`#${CSS.escape(element.id)}`, nextMain);
        if (same) same.open = element.open;
      }
      for (const row of $$("tr[data-at]", main())) $(`#${CSS.escape(row.id || "-")}`, nextMain)?.setAttribute("data-at", "");
      // What a page that asks for itself is not told again.
      for (const element of $$("[data-stays]", nextMain)) {
        const told = document.getElementById(element.id);
        if (told) element.replaceWith(told.cloneNode(true));
        else element.remove();
      }
      // A flash tells of what was done, once.
      for (const flash of $$(":scope > .flash", main())) if (!$(":scope > .flash", nextMain)) nextMain.prepend(flash.cloneNode(true));
    }
    rewriteTimes(nextMain);
    document.title = next.title || document.title;
    for (const part of [nextMain, nextPlaces]) {
      const [old, fragment] = [part && document.getElementById(part.id), document.createDocumentFragment()];
      if (!old) continue;
      fragment.append(part);
      morph(old, fragment, false);
    }
    if (!inPlace) $$("form[data-filters]", main()).forEach((form) => form.reset()); // to what the answer says
    prepare();
  };

  // visit(url): another view of the same page, such as a filter, without losing the focused field.
  const withoutFragment = () => location.pathname + location.search;
  let shownAt = withoutFragment();
  const visit = async (url, push = true) => {
    const asked = ++live.asked;
    clearTimeout(live.timer);
    try {
      const answer = await fetch(url, { cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(15000) });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (asked !== live.asked) return;
      if (push) history.pushState(null, "", url);
      shownAt = withoutFragment();
      live.etag = answer.headers.get("ETag") || "";
      show(text, false);
      spoken.textContent = `${$$("tr[data-href]", main()).length} rows`;
      schedule();
    } catch {
      // The browser shows what there is to see: a problem page, the sign-in, its own error.
      if (asked === live.asked) location.assign(url);
    }
  };
  const queryOf = (form) => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    const url = new URL(form.getAttribute("action") || location.pathname, location.href);
    url.search = query;
    return url.href;
  };

  // --- A range of time, by dragging over the bars of a chart. What is touched scrolls instead; there, and for keys, is the form.

  let drag = null;
  const barAt = (chart, x) => {
    const { left, width } = chart.getBoundingClientRect();
    const bars = Number(chart.dataset.bars);
    return Math.max(0, Math.min(bars - 1, Math.floor(((x - left) / width) * bars)));
  };
  const between = ({ from, to }) => [Math.min(from, to), Math.max(from, to) + 1];
  const dragTo = (x) => {
    drag.to = barAt(drag.chart, x);
    const [first, end] = between(drag);
    const bar = drag.svg.viewBox.baseVal.width / Number(drag.chart.dataset.bars);
    for (const [name, value] of [["x", first * bar], ["width", (end - first) * bar], ["y", 0], ["height", "100%"]]) drag.mark.setAttribute(name, value);
  };
  const endDrag = () => {
    drag?.mark.remove();
    drag = null;
  };
  document.addEventListener("pointerdown", (event) => {
    const chart = event.target.closest?.("[data-range]");
    const svg = chart && $("svg", chart);
    if (!svg || drag || event.pointerType === "touch" || event.button !== 0) return;
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "chosen");
    svg.append(mark);
    const from = barAt(chart, event.clientX);
    drag = { chart, svg, mark, from, to: from, x: event.clientX, pointer: event.pointerId };
    chart.setPointerCapture(event.pointerId);
  });
  document.addEventListener("pointermove", (event) => drag?.pointer === event.pointerId && dragTo(event.clientX));
  document.addEventListener("pointercancel", endDrag);
  document.addEventListener("pointerup", (event) => {
    if (drag?.pointer !== event.pointerId) return;
    dragTo(event.clientX);
    const [{ chart, x }, [first, end]] = [drag, between(drag)];
    endDrag();
    if (Math.abs(event.clientX - x) < 4) return; // a click
    const url = new URL(location.href);
    const at = (bar) => new Date(Date.parse(chart.dataset.range) + bar * Number(chart.dataset.bar) * 1000).toISOString().replace(".000", "");
    for (const name of ["hours", "cursor"]) url.searchParams.delete(name);
    url.searchParams.set("since", at(first));
    url.searchParams.set("until", at(end));
    void visit(url.href);
  });

  // --- Dialogs, and buttons whose state follows from what is chosen.

  let opener = null;
  const open = (dialog, from = document.activeElement) => {
    if (!dialog || dialog.open) return;
    opener = from;
    dialog.showModal();
    showLive();
  };
  // What is selected of a list stays so on its other pages, and for as long as the tab is open: a set of values, kept under a name.
  const seen = new WeakMap();
  const selection = (name) => new Set((sessionStorage.getItem(`selected ${name}`) || "").split(" ").filter(Boolean));
  const select = (name, values) => sessionStorage.setItem(`selected ${name}`, [...values].join(" "));
  const keepSelected = (form, boxes) => {
    const values = selection(form.dataset.kept);
    for (const box of boxes) {
      // A row that has come, also where it takes the place of another one, is as it was left.
      if (seen.get(box) !== box.value) box.checked = values.has(box.value);
      seen.set(box, box.value);
      values[box.checked ? "add" : "delete"](box.value);
    }
    select(form.dataset.kept, values);
    const here = new Set(boxes.map((box) => box.value));
    return [...values].filter((value) => !here.has(value));
  };
  const unselect = () => {
    for (const form of $$("form[data-kept]")) {
      $$("[data-check]", form).forEach((box) => (box.checked = false));
      select(form.dataset.kept, []);
    }
    prepare();
  };
  // More than an address holds are sent as a form. Those of this page are its fields already.
  const bring = (form) => {
    const others = keepSelected(form, $$("[data-check]", form));
    const field = $("input[name=ids]", form) || form.appendChild(make("input", { type: "hidden", name: "ids" }));
    field.disabled = others.length === 0;
    field.value = others.join(" ");
    form.method = others.length ? "post" : "get";
  };
  // What a form is about leaves the selection once that was made, as its page says; until then, and when that page is seen later, it stays.
  const use = ({ dataset, elements }) => sessionStorage.setItem(`used ${dataset.uses}`, `${elements.job.value} ${elements.ids.value}`);
  const clear = ({ clears, job }) => {
    const [made, ...used] = (sessionStorage.getItem(`used ${clears}`) || "").split(" ");
    if (made !== job) return;
    sessionStorage.removeItem(`used ${clears}`);
    const values = selection(clears);
    for (const value of used) values.delete(value);
    select(clears, values);
  };
  const prepare = () => {
    for (const { dataset } of $$("[data-clears]")) clear(dataset);
    for (const field of $$("input[data-expect]")) {
      const button = $('button:not([type="button"])', field.form);
      if (button) button.disabled = field.value.trim() !== field.dataset.expect;
    }
    for (const form of $$("form[data-list]")) {
      const boxes = $$("[data-check]", form);
      const others = form.dataset.kept ? keepSelected(form, boxes).length : 0;
      const count = boxes.filter((box) => box.checked).length;
      const said = `${count + others} selected${others ? `, ${others} of them on other pages` : ""}`;
      for (const output of $$("[data-selected]", form)) if (output.textContent !== said) output.textContent = said;
      for (const button of $$("[data-needs-selection]", form)) button.disabled = count + others === 0;
      for (const all of $$("[data-check-all]", form)) {
        all.checked = count > 0 && count === boxes.length;
        all.indeterminate = count > 0 && count < boxes.length;
      }
    }
    for (const said of $$("[data-matched]")) {
      const boxes = $$("[type=checkbox]", said.closest("fieldset"));
      const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
      const types = boxes.filter((box) => box.closest("details") && !box.value.endsWith("*")).map((box) => box.value);
      const matched = types.filter((type) => chosen.some((filter) => (filter.endsWith("*") ? type.startsWith(filter.slice(0, -1)) : type === filter)));
      if (said.textContent !== String(matched.length)) said.textContent = matched.length;
    }
    showLive();
  };

  const pick = (name, label, choices, now) => {
    const select = make("select", { id: `pref-${name}`, "data-pref": name }, ...choices.map(([value, text]) => make("option", { value }, text)));
    select.value = now;
    return make("div", { class: "field" }, make("label", { for: `pref-${name}` }, label), select);
  };
  const keysOn = () => preferences.get("keys") !== "off";
  const openHelp = () => {
    $("#help")?.remove();
    const keys = [["?", "this help"], ["/", "search"], ["g, letter", "a place, see below"], ["j, k", "next and previous row"], ["Enter", "open the row"], ["x", "select the row"], ["r", `${root.dataset.again || "replay the row, or what the page is about"}; asks first`], ["c", "copy the link of the row or the page"], ["L", "live on and off"], ["Ctrl K", "go to a place or act"], ["Esc", "close, leave a field"]];
    const places = $$("nav a[data-key]").map((link) => [`g ${link.dataset.key}`, ($(":scope > span:not(.count)", link) || link).textContent.trim()]);
    const list = make("dl", { class: "keys" });
    for (const [key, text] of [...keys, ...places]) list.append(make("dt", {}, make("kbd", {}, key)), make("dd", {}, text));
    const { quotaTz } = root.dataset;
    const whose = (name) => (name === ownZone ? ` (this computer's)` : name === quotaTz ? " (the quota's)" : "");
    const zones = [...new Set([ownZone, "UTC", quotaTz || "UTC", zone()])].map((name) => [name, name + whose(name)]);
    const dialog = make("dialog", { id: "help", "aria-labelledby": "help-title" }, make("h2", { id: "help-title" }, "Keys and preferences"),
      make("div", { class: "fields" },
        pick("theme", "Theme", [["", "As the system"], ["light", "Light"], ["dark", "Dark"]], preferences.get("theme") || ""),
        pick("density", "Rows", [["dense", "Dense"], ["comfortable", "Comfortable"]], preferences.get("density") || "dense"),
        pick("tz", "Time zone", zones, zone()),
        pick("keys", "Single keys", [["on", "On"], ["off", "Off"]], keysOn() ? "on" : "off")),
      list, make("div", { class: "acts" }, make("button", { class: "btn", type: "button", "data-close": "" }, "Close"), make("a", { class: "btn quiet", href: root.dataset.preferences }, "All preferences")));
    document.body.append(dialog);
    open(dialog);
  };

  const openPalette = () => {
    $("#palette")?.remove();
    const from = document.activeElement;
    const targets = $$("nav#places a:not(.brand), main .acts :is(a, button):not(:disabled), main .tabs a").filter((element) => !element.closest("dialog"));
    const items = targets.map((element, index) => make("li", { role: "option", id: `palette-${index}` }, ($(":scope > span:not(.count)", element) || element).textContent.trim(), make("span", { class: "muted" }, element.closest("nav#places") ? "place" : "act")));
    const input = make("input", { type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Place or act", autocomplete: "off" });
    const list = make("ul", { role: "listbox", id: "palette-list", "aria-label": "Places and acts" }, ...items);
    const none = make("p", { class: "muted", role: "status" });
    const dialog = make("dialog", { id: "palette", class: "palette", "aria-label": "Go to a place or act" }, input, list, none);
    let at = 0;
    const shown = () => items.filter((item) => !item.hidden);
    const mark = (step) => {
      const rows = shown();
      at = rows.length ? (at + step + rows.length) % rows.length : 0;
      items.forEach((item) => item.setAttribute("aria-selected", String(item === rows[at])));
      input.setAttribute("aria-activedescendant", rows[at]?.id || "");
      rows[at]?.scrollIntoView({ block: "nearest" });
    };
    const go = (item) => item && (dialog.close(), targets[items.indexOf(item)]?.click());
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      items.forEach((item) => (item.hidden = !item.textContent.toLowerCase().includes(wanted)));
      none.textContent = shown().length ? "" : "No place and no act of this page is called so.";
      at = 0;
      mark(0);
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) mark(step);
      else if (event.key === "Enter") go(shown()[at]);
      else return;
      event.preventDefault();
    });
    list.addEventListener("click", (event) => go(event.target.closest("li")));
    document.body.append(dialog);
    mark(0);
    open(dialog, from);
  };

  const toggleLive = () => {
    if (!pace()) return;
    prefer("live", liveWanted() ? "off" : "on");
    live.since = new Date();
    say(liveWanted() ? "Live is on" : "Live is off");
    schedule();
  };
  const togglePause = () => {
    live.paused = live.paused ? null : new Date();
    live.since = new Date();
    say(live.paused ? "The page is paused" : "The page goes on");
    live.paused ? schedule() : void tick();
  };
  const acts = { live: toggleLive, pause: togglePause, help: openHelp, palette: openPalette, unselect };

  // --- Keys. Single ones can be switched off, and none reaches a field that is written in.

  let afterG = -Infinity;
  const moveRow = (step) => {
    const rows = $$("tr[data-href]", main()).filter((row) => row.getClientRects().length);
    if (!rows.length) return;
    const now = rows.indexOf($("tr[data-at]", main()) || document.activeElement.closest?.("tr[data-href]"));
    const row = rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? (step > 0 ? 0 : rows.length - 1) : now + step))];
    $$("tr[data-at]").forEach((other) => other.removeAttribute("data-at"));
    row.setAttribute("data-at", "");
    $("a[href]", row)?.focus({ preventScroll: true }); // so that Tab and Enter work from there
    row.scrollIntoView({ block: "nearest" });
  };
  // The act stays behind its form, which the link opens. What a button would do at once, a key asks about first.
  const replay = (row) => $('a.btn[href*="/replay"], a.btn[href*="action=replay"], form[action$="/resend"] button:not(:disabled)', row || $(".head", main()) || main());
  const ask = (button) => {
    $("#ask")?.remove();
    const name = button.textContent.trim();
    const yes = make("button", { class: "btn primary", type: "button" }, name);
    yes.addEventListener("click", () => (yes.closest("dialog").close(), button.click()));
    const dialog = make("dialog", { id: "ask", "aria-labelledby": "ask-title" }, make("h2", { id: "ask-title" }, `${name}?`),
      make("div", { class: "acts" }, yes, make("button", { class: "btn quiet", type: "button", "data-close": "" }, "Back")));
    document.body.append(dialog);
    open(dialog);
  };
  const again = (control) => (control.matches("a") ? control.click() : ask(control));
  const copyLink = async (row) => {
    try {
      const url = new URL(row?.dataset.href || location.href, location.href);
      const { since, endedSince } = main().dataset;
      for (const [name, hours, at] of [["since", "hours", since], ["endedSince", "endedHours", endedSince]]) {
        if (!at || !(url.searchParams.has(name) || url.searchParams.has(hours))) continue;
        url.searchParams.delete(hours);
        url.searchParams.set(name, at);
      }
      await navigator.clipboard.writeText(url.href);
      say("The link is copied");
    } catch {
      say("The browser does not let this page copy. Copy the address by hand.");
    }
  };
  const onKey = (event) => {
    const field = event.target.closest?.("input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey) {
      event.preventDefault();
      return $("#palette")?.open ? $("#palette").close() : $("dialog[open]") || openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && drag) return endDrag();
    if (event.key === "Escape" && field && !field.closest("dialog")) return field.blur();
    if (field || $("dialog[open]") || !keysOn()) return;
    const [row, key] = [$("tr[data-at]", main()), event.key];
    if (performance.now() - afterG < 1500) {
      afterG = -Infinity;
      const place = $$("nav a[data-key]").find((link) => link.dataset.key === key.toLowerCase());
      if (place) return event.preventDefault(), place.click();
    }
    const onControl = event.target.closest?.("a, button, summary, [type=checkbox]");
    if (key === "g") afterG = performance.now();
    else if (key === "?") openHelp();
    else if (key === "/") $("#q")?.select(), $("#q")?.focus();
    else if (key === "j" || key === "k") moveRow(key === "j" ? 1 : -1);
    else if (key === "x" && row) $("[data-check]", row)?.click();
    else if (key === "Enter" && row && !onControl) location.assign(row.dataset.href);
    else if (key === "r" && replay(row)) again(replay(row));
    else if (key === "c") void copyLink(row);
    else if (key.toLowerCase() === "l") toggleLive();
    else return;
    event.preventDefault();
  };

  // --- Listeners, all on the document, so that what was morphed needs none of its own.

  const copy = async (button) => {
    const text = button.dataset.copy ?? document.getElementById(button.dataset.copyFrom)?.textContent ?? "";
    try {
      await navigator.clipboard.writeText(text);
      button.dataset.done = "";
      setTimeout(() => delete button.dataset.done, 1500);
      say("Copied");
    } catch {
      say("The browser does not let this page copy. Select the text and copy it by hand.");
    }
  };
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const hit = event.target.closest("[data-act], [data-close], [data-dialog], [data-copy], [data-copy-from]");
    if (!hit) return;
    const { act, dialog } = hit.dataset;
    if (act) return acts[act]?.();
    if (hit.hasAttribute("data-close")) return hit.closest("dialog")?.close();
    if (!dialog) return void copy(hit);
    if (!document.getElementById(dialog)) return;
    event.preventDefault();
    open(document.getElementById(dialog), hit);
  });
  document.addEventListener("change", (event) => {
    const { target } = event;
    if (target.dataset.pref) prefer(target.dataset.pref, target.value);
    else if (target.hasAttribute("data-check-all")) $$("[data-check]", target.form).forEach((box) => (box.checked = target.checked));
    else if (target.form?.hasAttribute("data-filters")) void visit(queryOf(target.form));
    prepare();
  });
  document.addEventListener("input", prepare);
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.kept) bring(event.target);
    if (event.target.dataset.uses) use(event.target);
    if (!event.target.hasAttribute("data-filters")) return;
    event.preventDefault();
    void visit(queryOf(event.target));
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("close", (event) => {
    if (event.target.tagName !== "DIALOG") return;
    if (opener?.isConnected) opener.focus();
    schedule();
  }, true);
  document.addEventListener("postrider:changed", () => void (live.running ? (live.told = true) : tick()));
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return clearTimeout(live.timer);
    live.since = new Date();
    void tick();
  });
  // A link to a part of the page fires it too. Then the page stays: it may be the answer to a form, which its address does not show.
  addEventListener("popstate", () => withoutFragment() !== shownAt && void visit(location.href, false));
  // A browser that goes back puts what was typed into the fields without an event, and after this script has run.
  addEventListener("pageshow", (event) => {
    prepare();
    if (event.persisted) schedule();
  });

  document.body.append(notice, spoken);
  if (!preferences.get("tz")) prefer("tz", ownZone);
  if (root.dataset.tz !== zone()) rewriteTimes(document);
  $("#errors")?.focus();
  // Not by scrollIntoView: from what that shows Tab goes on in Chromium 148, past the way to the content.
  for (const here of $$("#places [aria-current], .tabs [aria-current]")) {
    const places = here.closest("nav");
    const [inner, outer] = [here.getBoundingClientRect(), places.getBoundingClientRect()];
    places.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
    places.scrollTop += Math.max(0, inner.bottom - outer.bottom);
  }
  const countDown = (said, left) => {
    if (left <= 0) return location.reload();
    said.textContent = `Trying again in ${left} s.`;
    setTimeout(countDown, 1000, said, left - 1);
  };
  for (const said of $$("[data-retry]")) countDown(said, Math.max(1, Number(said.dataset.retry) || 5));
  prepare();
  schedule();
})();
