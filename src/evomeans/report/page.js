"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // The axis of the convergence.
  const axes = all("[data-axis]");
  axes.forEach((button) => button.addEventListener("click", () => {
    axes.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    all("[data-chart]").forEach((chart) => { chart.hidden = chart.dataset.chart !== button.dataset.axis; });
  }));

  // Filtering: every word must occur; a number alone is the number of a cluster.
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = all("#table tbody tr");
    rows.forEach((row) => {
      const text = row.querySelector(".telling").textContent.toLowerCase();
      const fits = (word) => row.dataset.cluster === word || (!/^\d+$/.test(word) && text.includes(word));
      row.hidden = !wanted.every(fits);
    });
    const left = rows.filter((row) => !row.hidden).length;
    shown.textContent = wanted.length ? `${left} of ${rows.length} clusters` : "";
  });

  // The labels are in the page as text.
  all("[data-download]").forEach((button) => button.addEventListener("click", () => {
    const text = document.getElementById("labels").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = button.dataset.download;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }));
})();
