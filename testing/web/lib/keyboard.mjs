// A page as people use it who have no pointer: Tab leads to what they want, Enter, Space and letters do the rest.

import assert from "node:assert/strict";

/** Most stops that a way by Tab may have. */
const FAR = 250;

/** Goes on by Tab until the focus is on this, and looks at each stop whether it can be seen where the focus is. */
export async function reach(page, target) {
  await target.waitFor();
  for (let stop = 0; stop < FAR; stop += 1) {
    await page.keyboard.press("Tab");
    const unseen = await page.evaluate(() => {
      const at = document.activeElement;
      // After the last stop the browser itself has the focus.
      if (!at || at === document.body || at === document.documentElement) return null;
      const { outlineStyle, outlineWidth } = getComputedStyle(at);
      const { width, height, top, bottom } = at.getBoundingClientRect();
      const isOnScreen = width > 0 && height > 0 && bottom > 0 && top < innerHeight;
      return isOnScreen && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 ? null : at.outerHTML.slice(0, 200);
    });
    assert.equal(unseen, null, "it cannot be seen where the focus is");
    if (await target.evaluate((element) => element === document.activeElement)) return;
  }
  assert.fail(`Tab does not lead to ${target}`);
}

/** Does what this link or button does. */
export async function press(page, target) {
  await reach(page, target);
  await page.keyboard.press("Enter");
}

/** Writes into this field, over what stands there. */
export async function write(page, target, text) {
  await reach(page, target);
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
}
