// Before anything is painted: the colours that were chosen last.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
