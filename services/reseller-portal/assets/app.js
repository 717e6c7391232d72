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
