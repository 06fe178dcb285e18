"use strict";
(function () {
  // Colours of pdkit/charts/theme.py, and what stands for each on a dark page.
  const DARK = {
    "#1f2937": "#e6e9ed", "#4b5563": "#aeb6c0", "#9ca3af": "#69727d", "#e5e7eb": "#2c3239", "#f9fafb": "#1b1f24",
    "#0b5fa5": "#6cb2f0", "#3d8fd1": "#9ccbf5", "#6b7280": "#9aa3ae", "#c2410c": "#ff8b5e", "#f7d9c8": "#5a3526",
    "#a16207": "#e0b04a", "#0f766e": "#4fc3b5", "#86198f": "#e08be8", "#4d4d4d": "#b8b8b8",
    "\"white\"": "\"transparent\""
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function specification(figure) {
    let text = figure.querySelector(".chart-spec").textContent;
    if (dark.matches) {
      for (const [light, shown] of Object.entries(DARK)) text = text.split(light).join(shown);
    }
    const spec = JSON.parse(text, function (key, value) {
      // the dark end of the levels' scheme would vanish on a dark page
      return dark.matches && value && value.name === "viridis" ? {name: "viridis", extent: [0.98, 0.3]} : value;
    });
    spec.$schema = "https://vega.github.io/schema/vega-lite/v6.json";
    return spec;
  }

  function draw(figure) {
    const live = figure.querySelector(".chart-live");
    const options = {mode: "vega-lite", ast: true, renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}};
    return vegaEmbed(live, specification(figure), options).then(function () {
      const menu = live.querySelector("summary");
      if (menu) menu.setAttribute("aria-label", "Save this chart as SVG or PNG");
      figure.classList.add("is-live");
    }).catch(function (problem) {
      live.textContent = "";
      figure.dataset.error = String(problem);
      console.error(problem);
    });
  }

  function drawAll() {
    if (typeof vegaEmbed === "undefined") return;
    document.querySelectorAll(".chart").forEach(draw);
  }

  // What is folded on a screen is open on paper.
  let opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open]):not(.chart-words)"));
    opened.forEach(function (part) { part.open = true; });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (part) { part.open = false; });
  });

  dark.addEventListener("change", drawAll);
  drawAll();
})();
