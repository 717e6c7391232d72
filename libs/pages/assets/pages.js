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
  const write = (element, text) => element.textContent === text || (element.textContent = text);

  // --- Preferences: no secret, so the script may write them; the server reads them too.

  const preferences = new URLSearchParams((document.cookie.match(/(?:^|; )pr_prefs=([^;]*)/) || ["", ""])[1]);
  // Live and single keys are on until they are switched off.
  const isOn = (name) => preferences.get(name) !== "off";
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

  const [notice, spoken] = [$("#notice"), $("#spoken")];
  let noticeTimer;
  const say = (text, lasting = false) => {
    clearTimeout(noticeTimer);
    notice.classList.toggle("lost", lasting);
    write(notice, text);
    if (text && !lasting) noticeTimer = setTimeout(() => (notice.textContent = ""), 4000);
  };

  // --- Times: the server writes them in the zone of data-tz; they are written again only where the viewer's is another.

  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const zone = () => preferences.get("tz") || ownZone;
  const SHOWN = { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const formatTime = (date, format) => {
    const parts = new Intl.DateTimeFormat("en-GB", { timeZone: zone(), ...SHOWN }).formatToParts(date);
    const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
    part.month = part.month.slice(0, 3); // "Sept" in this locale
    const [day, minute] = [`${part.weekday} ${part.day} ${part.month}`, `${part.hour}:${part.minute}`];
    const time = `${minute}:${part.second}`;
    return { time, minute, date: day, datetime: `${day}, ${time}` }[format] || `${day} ${part.year}, ${time} ${zone()}`;
  };
  const rewriteTimes = (within) => {
    for (const element of $$("time[datetime]", within)) {
      const date = new Date(element.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      element.title = formatTime(date, "full");
      if (element.dataset.format !== "ago") element.textContent = formatTime(date, element.dataset.format);
    }
  };

  // --- Live: the page is asked for again with its ETag, and morphed, so that focus, selection and scroll stay.

  const live = { etag: "", timer: 0, failures: 0, running: false, ended: false, asked: 0, spokenAt: -1e9, since: new Date(), paused: null, told: false };
  const pace = () => Number(main()?.dataset.live) || 0;
  const isLive = () => isOn("live") && pace() > 0 && !live.ended;
  const isEdited = (field) =>
    field.type === "checkbox" || field.type === "radio" ? !field.hasAttribute("data-check") && !field.hasAttribute("data-check-all") && field.checked !== field.defaultChecked
    : field.tagName === "SELECT" ? field.selectedIndex !== Math.max(0, [...field.options].findLastIndex((option) => option.defaultSelected))
    : field.type !== "hidden" && field.value !== field.defaultValue;
  const isHeld = () => Boolean(live.paused || $("dialog[open]") || drag) || $$("input, select, textarea", main()).some(isEdited);
  const showLive = () => {
    const button = $('[data-act="live"]');
    if (!button) return;
    const on = isLive();
    const since = live.paused ? `is paused since ${formatTime(live.paused, "time")}` : `listens since ${formatTime(live.since, "time")}`;
    for (const said of $$("[data-listens]", main())) write(said, ` It ${!on || live.failures ? "does not listen now" : since}.`);
    $$('[data-act="pause"]', main()).forEach((pause) => (write(pause, live.paused ? "Go on" : "Pause"), (pause.hidden = !on)));
    button.hidden = pace() === 0;
    button.setAttribute("aria-pressed", String(on));
    button.dataset.state = !on ? "off" : live.failures ? "lost" : isHeld() ? "held" : "on";
    button.title = { off: "Live is off (L)", lost: "The connection was lost, trying again", held: live.paused ? "Paused" : "Waits while you write", on: "Live (L turns it off)" }[button.dataset.state];
  };
  const schedule = () => {
    clearTimeout(live.timer);
    // Where it is told of changes, it asks by itself in case that it was not told of one.
    const seldom = "told" in root.dataset && !isHeld() ? 5 : 1;
    if (isLive() && !document.hidden) live.timer = setTimeout(tick, Math.min(pace() * seldom * 2 ** Math.min(live.failures, 3), 15000));
    showLive();
    follow();
  };
  const listen = (said) => say(said, void (live.since = new Date()));
  const lost = (text) => say(text, Boolean(++live.failures));
  const end = (text) => say(text, (live.ended = true));
  const tick = async () => {
    if (live.running || document.hidden || !isOn("live")) return;
    if (isHeld()) return schedule();
    live.running = true;
    const [url, asked] = [location.href, live.asked];
    try {
      // A screen that no person looks at must not keep its visit going.
      const headers = { "X-Postrider-Tick": "1", ...(live.etag && { "If-None-Match": live.etag }) };
      const answer = await fetch(url, { headers, cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(10000) });
      const text = answer.ok ? await answer.text() : "";
      if (answer.type === "opaqueredirect" || answer.status === 401) end(root.dataset.ended || "Your visit has ended. Load the page again to sign in.");
      else if (answer.status === 404) end("What this page shows is not there any more.");
      else if (answer.status === 403) end("You may not see this page any more.");
      else if (!answer.ok && answer.status !== 304) lost(`Postrider answered ${answer.status}, trying again`);
      else {
        if (live.failures) listen("Connected again");
        live.failures = 0;
        // What the viewer began meanwhile, and where they went meanwhile, count more than the answer.
        if (answer.ok && !isHeld() && url === location.href && asked === live.asked) show(answer, text, true);
      }
    } catch {
      lost("The connection was lost, trying again");
    } finally {
      live.running = false;
      live.told && !live.failures ? ((live.told = false), void tick()) : schedule();
    }
  };

  // --- Told of changes: a page that says where is asked for again as soon as there is one.

  let [stream, refused] = [null, 0];
  const follow = () => {
    if (document.hidden) refused = 0;
    // After two failures, or a refusal, the page goes on at its own pace.
    const changes = isLive() && !document.hidden && refused < 2 && main().dataset.changes;
    if (!changes) {
      stream?.close();
      stream = null;
      delete root.dataset.told;
    } else if (!stream) {
      stream = new EventSource(changes);
      // The server ends each after a minute, and a browser goes on from there by itself.
      stream.onopen = () => (refused = 0);
      stream.onmessage = () => {
        root.dataset.told = "";
        live.running ? (live.told = true) : void tick();
      };
      stream.onerror = ({ target }) => {
        refused += target.readyState === EventSource.CLOSED ? 2 : 1;
        follow();
      };
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
        if (!coming.has(row.id) && index < all.length - added) row.classList.add("gone");
        return coming.get(row.id) || row.cloneNode(true);
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

  // show(answer, text, inPlace): the page in text, which was answered, becomes this page. In place: rows, marks and what is open stay.
  const show = (answer, text, inPlace) => {
    live.etag = answer.headers.get("ETag") || "";
    const next = parsed(text);
    const [nextMain, nextPlaces] = [$("#main", next), $("#places", next)];
    if (!nextMain) throw new Error("a page without main");
    if (inPlace) {
      keepRows(nextMain);
      const same = ({ id }) => $(`#${CSS.escape(id || "-")}`, nextMain);
      for (const element of $$("details[id]", main())) same(element)?.toggleAttribute("open", element.open);
      for (const row of $$("tr[data-at]", main())) same(row)?.setAttribute("data-at", "");
      // What a page that asks for itself is not told again.
      for (const element of $$("[data-stays]", nextMain)) {
        const told = document.getElementById(element.id);
        told ? element.replaceWith(told.cloneNode(true)) : element.remove();
      }
      // A flash tells of what was done, once.
      for (const flash of $$(":scope > .flash", main())) if (!$(":scope > .flash", nextMain)) nextMain.prepend(flash.cloneNode(true));
    }
    if (root.dataset.tz !== zone()) rewriteTimes(nextMain);
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
      show(answer, text, false);
      spoken.textContent = `${$$("tr[data-href]", main()).length} rows`;
      schedule();
    } catch {
      // The browser shows what there is to see: a problem page, the sign-in, its own error.
      if (asked === live.asked) location.assign(url);
    }
  };
  const queryOf = (form) => {
    const url = new URL(form.getAttribute("action") || location.pathname, location.href);
    url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    return url.href;
  };

  // --- A range of time, by dragging over the bars of a chart. What is touched scrolls instead; there, and for keys, is the form.

  let drag = null;
  const barAt = (chart, x) => {
    const { left, width } = chart.getBoundingClientRect();
    const bars = Number(chart.dataset.bars);
    return Math.max(0, Math.min(bars - 1, Math.floor(((x - left) / width) * bars)));
  };
  const dragTo = (x) => {
    const to = barAt(drag.chart, x);
    [drag.first, drag.end] = [Math.min(drag.from, to), Math.max(drag.from, to) + 1];
    const bar = drag.svg.viewBox.baseVal.width / Number(drag.chart.dataset.bars);
    for (const [name, value] of [["x", drag.first * bar], ["width", (drag.end - drag.first) * bar], ["y", 0], ["height", "100%"]]) drag.mark.setAttribute(name, value);
  };
  const endDrag = () => {
    drag?.mark.remove();
    drag = null;
  };
  document.addEventListener("pointerdown", (event) => {
    const chart = event.target.closest?.("[data-range]");
    const svg = chart && $("svg", chart);
    if (!svg || drag || event.pointerType === "touch" || event.button !== 0) return;
    const mark = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
    mark.setAttribute("class", "chosen");
    drag = { chart, svg, mark, from: barAt(chart, event.clientX), x: event.clientX, pointer: event.pointerId };
    chart.setPointerCapture(event.pointerId);
  });
  document.addEventListener("pointermove", (event) => drag?.pointer === event.pointerId && dragTo(event.clientX));
  document.addEventListener("pointercancel", endDrag);
  document.addEventListener("pointerup", (event) => {
    if (drag?.pointer !== event.pointerId) return;
    dragTo(event.clientX);
    const { chart, x, first, end } = drag;
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
  // One that is made when it is asked for, in place of the one before.
  const openMade = (attributes, ...children) => {
    document.getElementById(attributes.id)?.remove();
    open(document.body.appendChild(make("dialog", attributes, ...children)));
  };
  // What is selected of a list stays so on its other pages, and for as long as the tab is open: a set of values, kept under a name.
  const seen = new WeakMap();
  const selection = (name) => new Set((sessionStorage.getItem(`selected ${name}`) || "").split(" ").filter(Boolean));
  const select = (name, values) => sessionStorage.setItem(`selected ${name}`, [...values].join(" "));
  const without = (values, others, gone = new Set(others)) => [...values].filter((value) => !gone.has(value));
  const keepSelected = (form, boxes) => {
    const values = selection(form.dataset.kept);
    for (const box of boxes) {
      // A row that has come, also where it takes the place of another one, is as it was left.
      if (seen.get(box) !== box.value) box.checked = values.has(box.value);
      seen.set(box, box.value);
      values[box.checked ? "add" : "delete"](box.value);
    }
    select(form.dataset.kept, values);
    return without(values, boxes.map((box) => box.value));
  };
  const unselect = () => {
    $$("form[data-kept]").forEach(({ dataset }) => select(dataset.kept, []));
    $$("form[data-kept] [data-check]").forEach((box) => (box.checked = false));
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
    select(clears, without(selection(clears), used));
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
      for (const output of $$("[data-selected]", form)) write(output, said);
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
      write(said, String(matched.length));
    }
    showLive();
  };

  const pick = (name, label, choices, now) => {
    const options = choices.map(([value, text]) => make("option", { value, ...(value === now && { selected: "" }) }, text));
    return make("div", { class: "field" }, make("label", { for: `pref-${name}` }, label), make("select", { id: `pref-${name}`, "data-pref": name }, ...options));
  };
  const nameOf = (link) => ($(":scope > span:not(.count)", link) || link).textContent.trim();
  const openHelp = () => {
    const keys = [["?", "this help"], ["/", "search"], ["g, letter", "a place, see below"], ["j, k", "next and previous row"], ["Enter", "open the row"], ["x", "select the row"], ["r", `${root.dataset.again || "replay the row, or what the page is about"}; asks first`], ["c", "copy the link of the row or the page"], ["L", "live on and off"], ["Ctrl K", "go to a place or act"], ["Esc", "close, leave a field"]];
    const places = $$("nav a[data-key]").map((link) => [`g ${link.dataset.key}`, nameOf(link)]);
    const whose = (name) => (name === ownZone ? ` (this computer's)` : name === root.dataset.quotaTz ? " (the quota's)" : "");
    const zones = [...new Set([ownZone, "UTC", root.dataset.quotaTz || "UTC", zone()])].map((name) => [name, name + whose(name)]);
    openMade({ id: "help", "aria-labelledby": "help-title" }, make("h2", { id: "help-title" }, "Keys and preferences"),
      make("div", { class: "fields" },
        pick("theme", "Theme", [["", "As the system"], ["light", "Light"], ["dark", "Dark"]], preferences.get("theme") || ""),
        pick("density", "Rows", [["dense", "Dense"], ["comfortable", "Comfortable"]], preferences.get("density") || "dense"),
        pick("tz", "Time zone", zones, zone()),
        pick("keys", "Single keys", [["on", "On"], ["off", "Off"]], isOn("keys") ? "on" : "off")),
      make("dl", { class: "keys" }, ...[...keys, ...places].flatMap(([key, text]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, text)])),
      make("div", { class: "acts" }, make("button", { class: "btn", type: "button", "data-close": "" }, "Close"), make("a", { class: "btn quiet", href: root.dataset.preferences }, "All preferences")));
  };

  const openPalette = () => {
    const targets = $$("nav#places a:not(.brand), main .acts :is(a, button):not(:disabled), main .tabs a").filter((element) => !element.closest("dialog"));
    const items = targets.map((element, index) => make("li", { role: "option", id: `palette-${index}` }, nameOf(element), make("span", { class: "muted" }, element.closest("nav#places") ? "place" : "act")));
    const input = make("input", { type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Place or act", autocomplete: "off" });
    const list = make("ul", { role: "listbox", id: "palette-list", "aria-label": "Places and acts" }, ...items);
    const none = make("p", { class: "muted", role: "status" });
    let [rows, at] = [items, 0];
    const mark = (step) => {
      at = rows.length ? (at + step + rows.length) % rows.length : 0;
      items.forEach((item) => item.setAttribute("aria-selected", String(item === rows[at])));
      input.setAttribute("aria-activedescendant", rows[at]?.id || "");
      rows[at]?.scrollIntoView({ block: "nearest" });
    };
    const go = (item) => item && (list.closest("dialog").close(), targets[items.indexOf(item)]?.click());
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      [rows, at] = [items.filter((item) => item.textContent.toLowerCase().includes(wanted)), 0];
      list.replaceChildren(...rows);
      none.textContent = rows.length ? "" : "No place and no act of this page is called so.";
      mark(0);
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) mark(step);
      else if (event.key === "Enter") go(rows[at]);
      else return;
      event.preventDefault();
    });
    list.addEventListener("click", (event) => go(event.target.closest("li")));
    openMade({ id: "palette", class: "palette", "aria-label": "Go to a place or act" }, input, list, none);
    mark(0);
  };

  const toggleLive = () => {
    if (!pace()) return;
    prefer("live", isOn("live") ? "off" : "on");
    listen(isOn("live") ? "Live is on" : "Live is off");
    schedule();
  };
  const togglePause = () => {
    live.paused = live.paused ? null : new Date();
    listen(live.paused ? "The page is paused" : "The page goes on");
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
    const name = button.textContent.trim();
    const yes = make("button", { class: "btn primary", type: "button" }, name);
    yes.addEventListener("click", () => (yes.closest("dialog").close(), button.click()));
    openMade({ id: "ask", "aria-labelledby": "ask-title" }, make("h2", { id: "ask-title" }, `${name}?`),
      make("div", { class: "acts" }, yes, make("button", { class: "btn quiet", type: "button", "data-close": "" }, "Back")));
  };
  const again = (control) => (control.matches("a") ? control.click() : ask(control));
  const copyText = async (text, copied, byHand) => {
    const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    say(isCopied ? copied : `The browser does not let this page copy. ${byHand}`);
    return isCopied;
  };
  const copyLink = (row) => {
    const url = new URL(row?.dataset.href || location.href, location.href);
    const { since, endedSince } = main().dataset;
    for (const [name, hours, at] of [["since", "hours", since], ["endedSince", "endedHours", endedSince]]) {
      if (!at || !(url.searchParams.has(name) || url.searchParams.has(hours))) continue;
      url.searchParams.delete(hours);
      url.searchParams.set(name, at);
    }
    return copyText(url.href, "The link is copied", "Copy the address by hand.");
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
    if (field || $("dialog[open]") || !isOn("keys")) return;
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
    if (!(await copyText(text, "Copied", "Select the text and copy it by hand."))) return;
    button.dataset.done = "";
    setTimeout(() => delete button.dataset.done, 1500);
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
  document.addEventListener("change", ({ target }) => {
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
  document.addEventListener("close", () => {
    if (opener?.isConnected) opener.focus();
    schedule();
  }, true);
  document.addEventListener("visibilitychange", () => {
    follow();
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
  for (const said of $$("[data-retry]")) {
    let left = Math.max(1, Number(said.dataset.retry) || 5);
    // Once: asking again would give up an answer that takes longer than a second.
    const ticks = setInterval(() => (left > 0 ? write(said, `Trying again in ${left--} s.`) : (clearInterval(ticks), location.reload())), 1000);
  }
  // A form that goes on by itself, as the answer of the one before it; not where a browser goes back to it or loads it again.
  const going = $("form[data-goes-on]");
  if (going && performance.getEntriesByType("navigation")[0]?.type === "navigate") {
    root.dataset.going = "";
    const next = setTimeout(() => going.requestSubmit(), 500);
    acts.stop = () => (clearTimeout(next), window.stop(), delete root.dataset.going, $("#go-on").focus());
  }
  // In a frame: tells the page around, and no other, how high what is shown is. The frame around it would never become lower.
  const tellHeight = () => parent.postMessage({ type: "postrider.height", height: Math.ceil(document.body.getBoundingClientRect().height) }, root.dataset.parent);
  if (root.dataset.parent && parent !== window) new ResizeObserver(tellHeight).observe(document.body);
  prepare();
  schedule();
})();
