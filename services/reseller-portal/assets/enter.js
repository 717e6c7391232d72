// Sends the token of a one-time link, which stands in the fragment, and takes it out of the address first.
"use strict";
(() => {
  const token = new URLSearchParams(location.hash.slice(1)).get("t") || "";
  history.replaceState(null, "", location.pathname);
  const form = document.getElementById("enter");
  form.elements.namedItem("token").value = token;
  form.submit();
})();
