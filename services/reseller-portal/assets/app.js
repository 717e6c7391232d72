// In a frame: tells the page around, and no other, how high this one is.
"use strict";
(() => {
  const parentOrigin = document.documentElement.dataset.parent;
  if (!parentOrigin || parent === window) return;
  const tell = () => parent.postMessage({ type: "postrider.height", height: document.documentElement.scrollHeight }, parentOrigin);
  new ResizeObserver(tell).observe(document.body);
  tell();
})();
