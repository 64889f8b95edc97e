"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// Plotly is embedded compressed: a third of its size.
async function loadPlotly() {
  const packed = document.getElementById("plotly").textContent;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

const narrow = () => window.matchMedia("(max-width: 560px)").matches;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function layout(extra) {
  const axis = { gridcolor: css("--line"), linecolor: css("--line"), zeroline: false };
  const base = {
    font: { family: "system-ui, sans-serif", size: narrow() ? 11 : 12, color: css("--soft") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    dragmode: narrow() ? false : "zoom",
  };
  for (const [name, value] of Object.entries(extra)) {
    base[name] = /^[xy]axis\d*$/.test(name) ? { ...axis, ...value } : value;
  }
  return base;
}

const config = {
  responsive: true,
  displaylogo: false,
  displayModeBar: false,
};

function heading(text, yref, y) {
  return {
    text, x: 0, y, xref: "paper", yref, xanchor: "left", yanchor: "bottom", yshift: 6,
    showarrow: false, font: { color: css("--ink"), size: narrow() ? 12 : 13 },
  };
}

// Draws the page's plots by calling `draw`, and again when colors or sizes change.
function start(draw) {
  loadPlotly().then(() => {
    for (const plot of document.querySelectorAll(".plot")) plot.classList.remove("loading");
    draw();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    window.matchMedia("(max-width: 560px)").addEventListener("change", draw);
    window.addEventListener("beforeprint", draw);
  }).catch((problem) => {
    for (const plot of document.querySelectorAll(".plot")) {
      plot.classList.remove("loading");
      plot.textContent = `The plots need a browser of 2023 or later (${problem.message}).`;
    }
  });
}
