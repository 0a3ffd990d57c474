"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // The axis of the convergence.
  const axes = all("[data-axis]");
  axes.forEach((button) => button.addEventListener("click", () => {
    axes.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    all("[data-chart]").forEach((chart) => { chart.hidden = chart.dataset.chart !== button.dataset.axis; });
  }));

  // Sorting: a second click turns the order round. Numbers begin with the largest.
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const heads = all("thead th", table);
  const sortBy = (index) => {
    const head = heads[index];
    const numeric = head.dataset.kind === "number";
    const now = head.getAttribute("aria-sort");
    const order = now === "descending" || (now === null && !numeric) ? "ascending" : "descending";
    const sign = order === "ascending" ? 1 : -1;
    const value = (row) => (numeric ? Number(row.cells[index].dataset.value) : row.cells[index].textContent);
    const compare = numeric ? (a, b) => a - b : (a, b) => a.localeCompare(b, undefined, { numeric: true });
    body.append(...all("tr", body).sort((a, b) => sign * compare(value(a), value(b))));
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
  };
  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(index));
  });

  // Filtering: every word must occur; a number alone is the number of a cluster.
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = all("tr", body);
    rows.forEach((row) => {
      const text = row.querySelector(".telling").textContent.toLowerCase();
      const fits = (word) => row.dataset.cluster === word || (!/^\d+$/.test(word) && text.includes(word));
      row.hidden = !wanted.every(fits);
    });
    const left = rows.filter((row) => !row.hidden).length;
    shown.textContent = wanted.length ? `${left} of ${rows.length} clusters` : "";
  });
})();
