// In a frame: tells the page around, and no other, that this one shows no visit, so that it can open a new link here.
"use strict";
(() => {
  if (parent === window) return;
  const { around, origins } = document.getElementById("ended").dataset;
  // Where the browser keeps no cookies in a frame, a new link would end here again, and so on without end: that is told apart.
  const to = around || origins.split(" ").find((origin) => origin === location.ancestorOrigins?.[0]);
  if (to) parent.postMessage({ type: around ? "postrider.ended" : "postrider.no-visit" }, to);
})();
