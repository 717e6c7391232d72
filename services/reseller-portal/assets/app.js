// In a frame: tells the page around, and no other, how high this one is.
"use strict";
(() => {
  const parentOrigin = document.documentElement.dataset.parent;
  if (!parentOrigin || parent === window) return;
  // Of what is shown, and not of the frame around it: a page that is shorter than the one before makes the frame shorter.
  const height = () => Math.ceil(document.body.getBoundingClientRect().height);
  const tell = () => parent.postMessage({ type: "postrider.height", height: height() }, parentOrigin);
  new ResizeObserver(tell).observe(document.body);
  tell();
})();
// On a page that says where changes are told: has it asked for again as soon as there is one. It knows of the page what its attributes say.
(() => {
  const root = document.documentElement;
  let [stream, failures] = [null, 0];
  const close = () => {
    stream?.close();
    stream = null;
    delete root.dataset.told;
  };
  const open = (changes) => {
    stream = new EventSource(changes);
    // The server ends each after a minute, and a browser goes on from there by itself.
    stream.onopen = () => (failures = 0);
    stream.onmessage = () => {
      root.dataset.told = "";
      document.dispatchEvent(new Event("postrider:changed"));
    };
    // After two failures, or a refusal, the page goes on at its own pace.
    stream.onerror = ({ target }) => {
      failures += target.readyState === EventSource.CLOSED ? 2 : 1;
      if (failures > 1) close();
    };
  };
  const follow = () => {
    if (document.hidden) failures = 0;
    const changes = document.getElementById("main")?.dataset.changes;
    const isLive = changes && !document.hidden && document.querySelector('[data-act="live"][aria-pressed="true"]');
    if (!isLive) close();
    else if (!stream && failures < 2) open(changes);
  };
  document.addEventListener("postrider:live", follow);
  document.addEventListener("visibilitychange", follow);
  follow();
})();
