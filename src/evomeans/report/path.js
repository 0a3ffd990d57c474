"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Another number of clusters: its model is in the page already.
  const buttons = all("[data-choose]");
  const choose = (k) => {
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.choose === k)));
    all(".model").forEach((model) => { model.hidden = model.dataset.k !== k; });
  };
  buttons.forEach((button, place) => {
    button.addEventListener("click", () => choose(button.dataset.choose));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const next = step && buttons[place + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
      choose(next.dataset.choose);
    });
  });
})();
