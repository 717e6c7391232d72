// Where a visit begins, and where it has ended.
"use strict";
const form = document.getElementById("enter");
if (form) {
  // The token of a one-time link stands in the fragment: it is taken out of the address before it is sent.
  form.elements.namedItem("token").value = new URLSearchParams(location.hash.slice(1)).get("t") || "";
  history.replaceState(null, "", location.pathname);
  form.submit();
} else if (parent !== window) {
  // In a frame: tells the page around, and no other, that this one shows no visit, so that it can open a new link here.
  const { around, origins } = document.getElementById("ended").dataset;
  // Where the browser keeps no cookies in a frame, a new link would end here again, and so on without end: that is told apart.
  const to = around || origins.split(" ").find((origin) => origin === location.ancestorOrigins?.[0]);
  if (to) parent.postMessage({ type: around ? "postrider.ended" : "postrider.no-visit" }, to);
}
