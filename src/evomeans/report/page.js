"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.documentElement;

  // The axis of the convergence.
  const axes = all("[data-axis]");
  axes.forEach((button) => button.addEventListener("click", () => {
    axes.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    all("[data-chart]").forEach((chart) => { chart.hidden = chart.dataset.chart !== button.dataset.axis; });
  }));

  // Names that the reader gives to clusters; the browser keeps them, unless it forbids that to files.
  const names = new Map();
  const nameOf = (cluster) => names.get(cluster) ?? "";
  const key = `evomeans names of ${document.querySelector("main").dataset.run}`;
  const stored = (use) => {
    try {
      return use(localStorage);
    } catch {
      document.getElementById("kept").textContent = "until you close this page";
      return null;
    }
  };
  const read = stored((storage) => JSON.parse(storage.getItem(key) ?? "{}"));
  Object.entries(read ?? {}).forEach(([cluster, name]) => names.set(cluster, String(name)));

  const make = (kind, className, parent) => {
    const element = document.createElement(kind);
    element.className = className;
    parent.append(" ", element);
    return element;
  };
  const places = all(".words li").map((line) => ({ cluster: line.dataset.cluster, fields: [], texts: [], marks: [] }));
  const legend = document.getElementById("legend");
  const showName = ({ cluster, fields, texts, marks, entry }) => {
    const name = nameOf(cluster);
    fields.forEach((field) => { if (field !== document.activeElement) field.value = name; });
    texts.forEach((text) => { text.textContent = name; });
    marks.forEach((mark) => { mark.textContent = name ? `${cluster}: ${name}` : `Cluster ${cluster}`; });
    entry.hidden = !name;
    legend.hidden = !names.size;
    root.classList.toggle("has-names", names.size > 0);
  };
  const rename = (place, name) => {
    if (name) names.set(place.cluster, name);
    else names.delete(place.cluster);
    stored((storage) => storage.setItem(key, JSON.stringify(Object.fromEntries(names))));
    showName(place);
  };
  const addField = (place, parent) => {
    const field = make("input", "name", parent);
    field.placeholder = "name";
    field.maxLength = 60;
    field.autocomplete = "off";
    field.setAttribute("aria-label", `Name of cluster ${place.cluster}`);
    place.fields.push(field);
    let before = "";
    field.addEventListener("focus", () => { before = nameOf(place.cluster); });
    field.addEventListener("input", () => rename(place, field.value.trim()));
    field.addEventListener("blur", () => showName(place));
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Escape") rename(place, before);
      field.blur();
    });
  };
  places.forEach((place) => {
    const own = `[data-cluster="${place.cluster}"]`;
    all(`.words ${own} b, #table ${own} > th`).forEach((parent) => addField(place, parent));
    all(`#profile ${own} > th, #samples ${own} > th, [data-near="${place.cluster}"]`).forEach((parent) => {
      place.texts.push(make("span", "named", parent));
    });
    all(`svg ${own}`).forEach((mark) => {
      const title = document.createElementNS(mark.namespaceURI, "title");
      mark.prepend(title);
      place.marks.push(title);
    });
    place.entry = make("li", "", legend);
    place.entry.dataset.cluster = place.cluster;
    place.entry.append(document.querySelector(`.words ${own} .swatch`).cloneNode(), place.cluster);
    place.texts.push(make("span", "named", place.entry));
    showName(place);
  });
  all(".naming").forEach((element) => { element.hidden = false; });

  // Filtering: every word must occur; a number alone is the number of a cluster.
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = all("#table tbody tr");
    rows.forEach((row) => {
      const text = `${nameOf(row.dataset.cluster)} ${row.querySelector(".telling").textContent}`.toLowerCase();
      const fits = (word) => row.dataset.cluster === word || (!/^\d+$/.test(word) && text.includes(word));
      row.hidden = !wanted.every(fits);
    });
    const left = rows.filter((row) => !row.hidden).length;
    shown.textContent = wanted.length ? `${left} of ${rows.length} clusters` : "";
  });

  // The labels are in the page as text: rows of CSV that end in the number of a cluster.
  const inCsv = (text) => (/^\s|[",\r\n]|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const withNames = (csv) => csv.replace(
    /((?:"(?:[^"]|"")*"|[^"\n])*),([^",\n]*)\n/gy,
    (row, _, last, place) => `${row.slice(0, -1)},${place ? inCsv(nameOf(last)) : "name"}\n`,
  );
  all("[data-download]").forEach((button) => button.addEventListener("click", () => {
    const labels = document.getElementById("labels").textContent;
    const text = names.size ? withNames(labels) : labels;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = button.dataset.download;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }));
})();
