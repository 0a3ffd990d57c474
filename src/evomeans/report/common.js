"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;

  // What needs a script is hidden in the page itself.
  all("#theme, .switch, .filter, .copy, .chooser").forEach((element) => { element.hidden = false; });

  // Light and dark.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  system.addEventListener("change", nameTheme);
  nameTheme();

  // A cluster under the pointer stands out in every picture.
  const focus = (cluster) => {
    root.classList.toggle("focus", cluster !== undefined);
    all("svg .c").forEach((mark) => mark.classList.toggle("on", mark.dataset.cluster === cluster));
  };
  let focused;
  document.addEventListener("pointerover", (event) => {
    const owner = event.target.closest("[data-cluster]");
    const cluster = owner ? owner.dataset.cluster : undefined;
    if (cluster !== focused) focus(focused = cluster);
  });

  // Copying; where the browser forbids it, the text is at least selected.
  all(".copy").forEach((button) => button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }));
})();
