"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;

  // What needs a script is hidden in the page itself.
  all("#theme, .switch, .filter, .copy, .chooser, .download").forEach((element) => { element.hidden = false; });

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

  // Sorting: a second click turns the order round. Numbers begin with the largest.
  const sortBy = (table, heads, index) => {
    const head = heads[index];
    const numeric = head.dataset.kind === "number";
    const now = head.getAttribute("aria-sort");
    const order = now === "descending" || (now === null && !numeric) ? "ascending" : "descending";
    const sign = order === "ascending" ? 1 : -1;
    const value = (row) => (numeric ? Number(row.cells[index].dataset.value) : row.cells[index].textContent);
    const compare = numeric ? (a, b) => a - b : (a, b) => a.localeCompare(b, undefined, { numeric: true });
    const body = table.tBodies[0];
    body.append(...all("tr", body).sort((a, b) => sign * compare(value(a), value(b))));
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
  };
  all("table.sortable").forEach((table) => {
    const heads = all("thead th", table);
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(table, heads, index));
    });
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
