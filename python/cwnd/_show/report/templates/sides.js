// Largest value from `start` on.
const largest = (lines, start) => Math.max(
  ...lines.flatMap(([x, y]) => y.filter((value, i) => value !== null && x[i] >= start)), 1e-9,
);

// Windows, goodput and queue of two runs, drawn on each other.
function drawSides(target, run) {
  const traces = [];
  const panels = [
    { title: "window, packets", axis: "y3", lines: [] },
    { title: `goodput over ${run.scale}, bit/s (dotted: capacity)`, axis: "y2", lines: [] },
    { title: "queue, packets", axis: "y", lines: [] },
  ];
  const add = (panel, name, [x, y], line, more) => {
    panels[panel].lines.push([x, y, name]);
    traces.push({
      x, y, yaxis: panels[panel].axis, mode: "lines", name, showlegend: false, opacity: 0.9,
      line: { width: 1.3, ...line }, hovertemplate: "%{y:.4~s}<extra>%{fullData.name}</extra>", ...more,
    });
  };
  // The first side is drawn last, above the other one.
  for (const side of run.sides.toReversed()) {
    const group = { legendgroup: side.name };
    for (const [color, line] of side.windows) add(0, side.name, line, { color: ink(color) }, group);
    for (const [name, dash, line] of side.goodputs) {
      add(1, name, line, { color: ink(side.color), dash, shape: "hv" }, { showlegend: true, ...(dash === "solid" ? group : {}) });
    }
    add(2, side.name, side.queue, { color: ink(side.color), width: 1 }, group);
  }
  add(1, "capacity", run.capacity, { color: css("--soft"), width: 1, dash: "dot", shape: "hv" });
  const gap = 0.11;
  const high = (1 - 2 * gap) / 3;
  const axes = Object.fromEntries(panels.map(({ axis, lines }, panel) => {
    const top = 1 - panel * (high + gap);
    return [axis.replace("y", "yaxis"), {
      domain: [Math.max(top - high, 0), top], range: [0, 1.08 * largest(lines, run.warmup)],
      nticks: 4, fixedrange: true, automargin: true, ...(panel === 1 ? { tickformat: "~s" } : {}),
    }];
  }));
  show(target, {
    traces,
    table: () => [
      ["panel", "line", "time_s", "value"],
      ...panels.flatMap(({ title, lines }) =>
        lines.flatMap(([x, y, name]) => x.map((time, i) => [title, name, time, y[i]]))),
    ],
    extra: {
      height: narrow() ? 560 : 500,
      margin: { l: 14, r: 16, t: 36, b: 46 },
      showlegend: true,
      legend: { font: { color: css("--ink") }, orientation: "h", y: -0.12, yanchor: "top", traceorder: "reversed" },
      xaxis: { title: { text: "time (s)", standoff: 6 }, anchor: "y", range: [0, run.duration], showgrid: false },
      ...axes,
      shapes: [{
        type: "rect", x0: 0, x1: run.warmup, y0: 0, y1: 1, yref: "paper", layer: "below",
        line: { width: 0 }, fillcolor: css("--line"), opacity: 0.45,
      }],
      annotations: panels.map(({ title, axis }) => heading(title, `${axis} domain`, 1)),
    },
  });
}
