// A button at each example that copies it. Where a browser runs no scripts, or does not let the page copy, there is none.
if (navigator.clipboard) {
  for (const example of document.querySelectorAll(".example")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const copying = navigator.clipboard.writeText(example.querySelector("pre").textContent);
      button.textContent = await copying.then(() => "Copied", () => "Not allowed");
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    example.append(button);
  }
}
