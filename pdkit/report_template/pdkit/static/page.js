"use strict";
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // A colour of the light page as a dark page needs it: greys turn over, tints sink, all other hues rise.
  function onDark(colour) {
    const [r, g, b] = [1, 3, 5].map(function (at) { return parseInt(colour.slice(at, at + 2), 16) / 255; });
    const high = Math.max(r, g, b), low = Math.min(r, g, b), spread = high - low;
    const light = (high + low) / 2;
    let hue = 0;
    if (spread) {
      const turn = high === r ? (g - b) / spread : high === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
      hue = (turn * 60 + 360) % 360;
    }
    let strength = spread ? spread / (1 - Math.abs(2 * light - 1)) : 0;
    let shown = Math.min(0.8, Math.max(0.62, 1.04 - light));
    if (spread < 0.15) {
      shown = 0.94 - 0.8 * light;
      strength /= 2;
    } else if (light > 0.8) {
      shown = 0.24;
      strength = Math.min(strength, 0.45);
    }
    return `hsl(${hue.toFixed(0)}, ${(100 * strength).toFixed(0)}%, ${(100 * shown).toFixed(0)}%)`;
  }

  function forDark(key, value) {
    if (key === "background") return "transparent";
    if (value === "white") return getComputedStyle(document.body).backgroundColor; // what sets words apart from lines
    if (typeof value === "string" && /^#[0-9a-f]{6}$/i.test(value)) return onDark(value);
    // the dark end of the levels' scheme would vanish
    if (value && value.name === "viridis") return {name: "viridis", extent: [0.98, 0.3]};
    return value;
  }

  function specification(figure) {
    const spec = JSON.parse(figure.querySelector(".chart-spec").textContent, dark.matches ? forDark : undefined);
    spec.$schema = "https://vega.github.io/schema/vega-lite/v6.json";
    return spec;
  }

  function draw(figure) {
    const live = figure.querySelector(".chart-live");
    const options = {mode: "vega-lite", ast: true, renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}};
    return vegaEmbed(live, specification(figure), options).then(function () {
      const menu = live.querySelector("summary");
      if (menu) menu.setAttribute("aria-label", "Save this chart as SVG or PNG");
      const drawing = live.querySelector("svg.marks");
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", figure.querySelector(".chart-still").alt);
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
