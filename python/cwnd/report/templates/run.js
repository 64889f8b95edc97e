// Means with their intervals, one panel for each figure, one row for each controller.
function drawFigures(target) {
  const { panels, rows } = data.figures;
  const stacked = narrow();
  const traces = [];
  const extra = { margin: { l: 8, r: 14, t: 40, b: 34 }, annotations: [], shapes: [] };
  const count = panels.length;
  const high = 34 * rows.length + 10;
  const gap = 64;
  const inner = stacked ? count * high + (count - 1) * gap : high;
  const label = (row) => stacked ? row.controller.replace(/, /g, ",<br>") : row.controller;
  const names = rows.map(label);
  panels.forEach((panel, i) => {
    const n = i === 0 ? "" : i + 1;
    const top = 1 - i * (high + gap) / inner;
    const shownNames = stacked || i === 0;
    extra["xaxis" + n] = {
      domain: stacked ? [0, 1] : [i / count + (i ? 0.03 : 0), (i + 1) / count - 0.01],
      anchor: "y" + n, rangemode: "tozero", nticks: 6, fixedrange: true,
      ...(panel.range ? { range: panel.range } : {}),
    };
    extra["yaxis" + n] = {
      domain: stacked ? [Math.max(top - high / inner, 0), top] : [0, 1],
      anchor: "x" + n, autorange: "reversed", type: "category", categoryorder: "array",
      categoryarray: names, range: [-0.6, names.length - 0.4], fixedrange: true,
      showticklabels: shownNames, automargin: shownNames, ticklabelstandoff: 6,
      tickfont: { color: css("--ink") }, showgrid: false,
    };
    extra.annotations.push({
      ...heading(panel.title, `y${n} domain`, 1), xref: `x${n} domain`,
    });
    if (panel.even !== undefined) {
      extra.shapes.push({
        type: "line", x0: panel.even, x1: panel.even, y0: 0, y1: 1, xref: "x" + n,
        yref: `y${n} domain`, line: { color: css("--soft"), width: 1, dash: "dot" },
      });
    }
    rows.forEach((row) => {
      const figure = row.figures[panel.figure];
      if (!figure || figure.mean === null) return;
      const spread = figure.interval ? (figure.interval[1] - figure.interval[0]) / 2 : null;
      traces.push({
        x: [figure.mean * panel.factor], y: [label(row)], mode: "markers",
        xaxis: "x" + n, yaxis: "y" + n, cliponaxis: false,
        marker: { size: 10, color: row.color },
        error_x: spread === null ? undefined : {
          type: "data", array: [spread * panel.factor], color: row.color, thickness: 2, width: 0,
        },
        hovertemplate: "%{x:.3~f}" + (spread === null ? "" :
          ` ± ${(spread * panel.factor).toPrecision(2)}`) + "<extra>%{y}</extra>",
      });
    });
  });
  const height = inner + extra.margin.t + extra.margin.b;
  Plotly.react(target, traces, layout({ ...extra, height }), config);
}

// The largest value after `start`.
function largest(lines, start) {
  let most = 0;
  for (const [x, y] of lines) {
    y.forEach((value, i) => { if (x[i] >= start && value > most) most = value; });
  }
  return most || 1;
}

// Windows, throughput and queue over time, above each other on one axis.
function drawRun(target, run) {
  const traces = [];
  for (const flow of run.flows) {
    const common = { mode: "lines", name: flow.name, opacity: 0.9 };
    traces.push({
      ...common, x: flow.window[0], y: flow.window[1], yaxis: "y3",
      line: { color: flow.color, width: 1.1 },
      hovertemplate: "%{y:.1f} packets<extra>%{fullData.name}</extra>",
    });
    traces.push({
      ...common, x: flow.throughput[0], y: flow.throughput[1], yaxis: "y2",
      line: { color: flow.color, width: 1.3, shape: "hv" },
      hovertemplate: "%{y:.3~s}bit/s<extra>%{fullData.name}</extra>",
    });
  }
  traces.push({
    x: run.queue[0], y: run.queue[1], yaxis: "y", mode: "lines", name: run.link,
    line: { color: css("--soft"), width: 0.8 }, fill: "tozeroy",
    hovertemplate: "%{y:.0f} packets<extra>queue</extra>",
  });
  // The axes fit what counts: a start may reach far above it.
  const axis = (low, high, lines) => ({
    domain: [low, high], range: [0, 1.08 * largest(lines, run.warmup)], nticks: 5,
    fixedrange: true, automargin: true,
  });
  Plotly.react(target, traces, layout({
    height: narrow() ? 620 : 680,
    margin: { l: 8, r: 10, t: 34, b: 40 },
    xaxis: {
      title: { text: "time (s)", standoff: 6 }, anchor: "y", range: [0, run.duration],
      showgrid: false,
    },
    yaxis: axis(0, 0.22, [run.queue]),
    yaxis2: { ...axis(0.32, 0.61, run.flows.map((flow) => flow.throughput)), tickformat: "~s" },
    yaxis3: axis(0.71, 1, run.flows.map((flow) => flow.window)),
    shapes: run.warmup > 0 ? [{
      type: "rect", x0: 0, x1: run.warmup, y0: 0, y1: 1, yref: "paper", layer: "below",
      line: { width: 0 }, fillcolor: css("--line"), opacity: 0.45,
    }] : [],
    annotations: [
      heading("window, packets" + (run.note ? ` (${run.note})` : ""), "y3 domain", 1),
      heading(`throughput over ${run.scale}, bit/s`, "y2 domain", 1),
      heading(`queue of ${run.link}, packets`, "y domain", 1),
    ],
  }), config);
}

function drawAll() {
  const figures = document.getElementById("figures");
  if (figures) drawFigures(figures);
  const chosen = document.getElementById("controller");
  const pressed = document.querySelector('.switch [aria-pressed="true"]');
  const run = data.runs.find((candidate) =>
    (!chosen || candidate.controller === chosen.value) &&
    (!pressed || candidate.mode === pressed.value)) ?? data.runs[0];
  drawRun(document.getElementById("run"), run);
}

document.getElementById("controller")?.addEventListener("change", drawAll);
const buttons = document.querySelectorAll(".switch button");
for (const button of buttons) {
  button.addEventListener("click", () => {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    drawAll();
  });
}
start(drawAll);
