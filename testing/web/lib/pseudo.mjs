// A language that does not exist: our texts with accents, in brackets, and by two fifths longer. What is no text of ours stays as it is: numbers,
// identifiers, hosts, code, times.

/** Puts that language into the page that is shown, with what it says in attributes, and opens what can be opened there. */
export const lengthen = (page) =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    const ACCENTED = { a: "á", c: "ç", e: "ë", i: "ï", n: "ñ", o: "ö", u: "ü", y: "ý", A: "Á", E: "É", I: "Í", O: "Ö", U: "Ü" };
    const isWord = (part) => /^[(“"‘]*\p{L}[\p{L}’'-]{0,19}[)”"’.,:;?!…]*$/u.test(part) && !/[a-z][A-Z]|_/.test(part);
    const longer = (word) => {
      const more = Math.ceil(word.length * 0.4);
      return [...word].map((letter, at) => (ACCENTED[letter] ?? letter).repeat(at % 2 === 0 && at / 2 < more && /\p{L}/u.test(letter) ? 2 : 1)).join("");
    };
    const said = (text) => {
      const parts = text.split(/(\s+)/);
      if (!parts.some(isWord)) return text;
      const [, before, inner, after] = parts.map((part) => (isWord(part) ? longer(part) : part)).join("").match(/^(\s*)(.*?)(\s*)$/s);
      return `${before}[${inner}]${after}`;
    };
    const LEFT_ALONE = "code, pre, kbd, samp, .mono, time, script, style, textarea, svg";
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (!text.parentElement.closest(LEFT_ALONE)) text.data = said(text.data);
    }
    for (const name of ["placeholder", "title", "data-label"]) {
      for (const element of document.body.querySelectorAll(`[${name}]:not(${LEFT_ALONE})`)) element.setAttribute(name, said(element.getAttribute(name)));
    }
  });

/** What does not fit where it stands: text that is cut off or sticks out of what is around it, and what lies over something else. Parts that can be
 * scrolled, such as tables, may be wider inside. */
export const faults = (page) =>
  page.evaluate(() => {
    const TOLERANCE = 1.5;
    /** The least of an overlap: fonts reach a little out of their lines. */
    const [WIDE, HIGH] = [2, 5];
    const CONTROLS = ".btn, button, input, select, textarea, .tag, .icon, .bar, .spark";
    const name = (element) => `${element.tagName.toLowerCase()}${[...element.classList].map((one) => `.${one}`).join("")}`;
    const style = (element) => getComputedStyle(element);
    const scrolls = (element) => ["auto", "scroll"].includes(style(element).overflowX);
    const cuts = (element) => ["hidden", "clip"].includes(style(element).overflowX);
    /** Meant to be cut, with the whole text in its title or on a page of its own, or only to be heard. */
    const isMeant = (element) => element.matches(".clip, .clamp") || style(element).clipPath !== "none";
    const top = document.querySelector("dialog[open]") ?? document.body;
    const around = (element) => {
      const all = [];
      for (let at = element; at && at !== top.parentElement; at = at.parentElement) all.push(at);
      return all;
    };
    /** What is seen of a place, as far as those around it that cut or scroll show it. */
    const seen = (rect, all) => {
      const [left, right, up, down] = all.filter((one) => one !== document.body && (scrolls(one) || cuts(one))).reduce(
        ([left, right, up, down], one) => {
          const box = one.getBoundingClientRect();
          return [Math.max(left, box.left), Math.min(right, box.right), Math.max(up, box.top), Math.min(down, box.bottom)];
        },
        [rect.left, rect.right, Math.max(rect.top, -scrollY), rect.bottom],
      );
      return right - left > 1 && down - up > 1 ? { left, right, up, down } : null;
    };
    const found = [];
    const boxes = [];
    const texts = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      const element = text.parentElement;
      if (!text.data.trim() || element.closest("option, textarea, script, style, svg")) continue;
      const all = around(element);
      if (all.some(isMeant)) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      const rects = [...range.getClientRects()].filter(({ width, height }) => width > 1 && height > 1);
      const short = text.data.trim().slice(0, 40);
      for (const rect of rects) {
        const place = seen(rect, all);
        if (place) boxes.push({ ...place, element, what: `${name(element)} ${short}` });
        for (const box of all) {
          if (scrolls(box)) break;
          if (style(box).display === "inline" || style(box).display === "contents") continue;
          const { left, right, top, bottom } = box.getBoundingClientRect();
          const isTall = box.matches(".btn, button, .tag, .status") && (rect.top < top - TOLERANCE || rect.bottom > bottom + TOLERANCE);
          if (rect.left < left - TOLERANCE || rect.right > right + TOLERANCE || isTall) {
            found.push(`${short} stands out of ${name(box)}`);
            break;
          }
        }
      }
    }
    for (const element of top.querySelectorAll(CONTROLS)) {
      const all = around(element);
      const rect = element.getBoundingClientRect();
      if (rect.width <= 1 || rect.height <= 1 || all.some(isMeant)) continue;
      const place = seen(rect, all.slice(1));
      if (place) boxes.push({ ...place, element, what: name(element) });
    }
    boxes.sort((one, other) => one.up - other.up);
    boxes.forEach((one, at) => {
      for (let next = at + 1; next < boxes.length && boxes[next].up < one.down - HIGH; next += 1) {
        const other = boxes[next];
        if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
        const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const height = Math.min(one.down, other.down) - other.up;
        if (width > WIDE && height > HIGH) found.push(`${one.what} lies over ${other.what}`);
      }
    });
    return [...new Set(found)].slice(0, 8);
  });
