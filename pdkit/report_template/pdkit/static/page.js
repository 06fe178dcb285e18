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
    const closed = Array.from(document.querySelectorAll("details:not([open]):not(.chart-words)"));
    closed.forEach(function (part) { part.open = true; });
    opened = opened.concat(closed); // a browser may say twice that it is about to print
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (part) { part.open = false; });
    opened = [];
  });

  dark.addEventListener("change", drawAll);
  drawAll();
})();

// Training: what is written stays in this browser, a quiz answers at once, a scoring sheet adds up, and the page prints
// as questions or as answers.
(function () {
  const page = document.querySelector(".section-training");
  if (!page) return;
  const all = function (selector, within) { return Array.from((within || document).querySelectorAll(selector)); };
  const status = document.querySelector(".printing .kept");

  // A browser may keep nothing for a file, or for anybody in private.
  const keeps = (function () {
    try {
      localStorage.setItem("pdkit.training", "1");
      return true;
    } catch (_) {
      return false;
    }
  })();

  function name(box) { return "pdkit.training." + box.dataset.keep; }

  function keep(box) {
    if (!keeps) return;
    try {
      if (box.value) localStorage.setItem(name(box), box.value); else localStorage.removeItem(name(box));
    } catch (_) {
      status.textContent = "This browser has no room left: print the page before you close it.";
    }
  }

  function grow(box) {
    box.style.height = "auto";
    if (box.scrollHeight > box.clientHeight) box.style.height = box.scrollHeight + 4 + "px";
  }

  const boxes = all("textarea[data-keep]");
  boxes.forEach(function (box) {
    if (keeps) box.value = localStorage.getItem(name(box)) || "";
    box.addEventListener("input", function () { keep(box); grow(box); });
    grow(box);
  });
  if (boxes.length && !keeps) status.textContent = "This browser keeps nothing: print the page before you close it.";

  // --- quiz
  function chosen(quiz, which) {
    const radio = quiz.querySelector(`${which} input:checked`);
    return radio ? radio.value : "";
  }

  function judged(quiz) {
    const verdict = chosen(quiz, ".choices:not(.by-line)"), line = chosen(quiz, ".by-line");
    const right = verdict === quiz.dataset.verdict, shown = quiz.dataset.lines.split("|").includes(line);
    if (!verdict) return ["", "Choose what the run is worth, and the line that decides it."];
    if (!right) return ["wrong", "Not quite. Look at the lines again: what would have to be there, and is it?"];
    if (!line) return ["half", "The verdict is right. By which line?"];
    if (!shown) return ["half", "The verdict is right, but another line decides it."];
    return ["right", `Right, by ${line}. ${quiz.dataset.because}`];
  }

  all("form.quiz").forEach(function (quiz) {
    quiz.addEventListener("submit", function (event) {
      event.preventDefault();
      if (!quiz.dataset.verdict) return;
      const [is, said] = judged(quiz), feedback = quiz.querySelector(".feedback");
      feedback.textContent = said;
      feedback.dataset.is = is;
    });
    quiz.addEventListener("change", function () {
      const feedback = quiz.querySelector(".feedback");
      if (feedback) feedback.textContent = "";
    });
    const button = quiz.querySelector("button");
    if (button) button.hidden = false;
  });

  // --- scoring sheet
  all(".score").forEach(function (sheet) {
    function add() {
      const points = all("input:checked", sheet).reduce(function (sum, box) {
        return sum + ("takes" in box.dataset ? -1 : 1);
      }, 0);
      sheet.querySelector("output").textContent = points;
    }
    sheet.addEventListener("change", add);
    add();
  });

  // --- paper
  const tools = document.querySelector(".printing");
  tools.hidden = false;
  tools.addEventListener("click", function (event) {
    const sheet = event.target.dataset.sheet;
    if (sheet) {
      document.body.dataset.sheet = sheet;
      window.print();
    }
    if ("forget" in event.target.dataset && window.confirm("Clear all answers that you wrote here?")) {
      boxes.forEach(function (box) { box.value = ""; keep(box); grow(box); });
      all("form.quiz").forEach(function (quiz) { quiz.reset(); });
      all(".feedback").forEach(function (feedback) { feedback.textContent = ""; });
      status.textContent = "Cleared.";
    }
  });
  window.addEventListener("afterprint", function () { delete document.body.dataset.sheet; });
})();
