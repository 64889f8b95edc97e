// Breaks a name after its separators into lines of up to `most` characters where possible.
function broken(name, most) {
  const lines = [];
  for (const part of name.split(/(?<=[/:(]|, )/)) {
    if (lines.length && (lines.at(-1) + part).trimEnd().length <= most) lines.push(lines.pop() + part);
    else lines.push(part);
  }
  return lines;
}

// Means with intervals: one panel per figure, one row per controller.
function drawFigures(target) {
  const { panels, rows } = data.figures;
  const stacked = narrow();
  const traces = [];
  const extra = { margin: { l: 14, r: 20, t: 46, b: 40 }, annotations: [], shapes: [] };
  const count = panels.length;
  const names = rows.map((row) => broken(row.name, stacked ? 18 : 32));
  const high = Math.max(34, 15 * Math.max(...names.map((lines) => lines.length)) + 8) * rows.length + 10;
  const gap = 64;
  const inner = stacked ? count * high + (count - 1) * gap : high;
  const table = [["figure", "name", "mean", "low", "high"]];
  panels.forEach((panel, i) => {
    const n = i === 0 ? "" : i + 1;
    const top = 1 - i * (high + gap) / inner;
    const shownNames = stacked || i === 0;
    extra["xaxis" + n] = {
      domain: stacked ? [0, 1] : [i / count + (i ? 0.03 : 0), (i + 1) / count - 0.01],
      anchor: "y" + n, rangemode: "tozero", nticks: 6, fixedrange: true,
      ...(panel.range ? { range: panel.range } : {}),
    };
    // Rows are numbers: a categorical axis would omit rows without a value.
    extra["yaxis" + n] = {
      domain: stacked ? [Math.max(top - high / inner, 0), top] : [0, 1],
      anchor: "x" + n, range: [names.length - 0.4, -0.6], fixedrange: true, showgrid: false,
      tickvals: names.map((_, row) => row), ticktext: names.map((lines) => lines.join("\n")), tickfont: { color: css("--ink") },
      showticklabels: shownNames, automargin: shownNames, ticklabelstandoff: 6,
    };
    extra.annotations.push({ ...heading(panel.title, `y${n} domain`, 1), xref: `x${n} domain` });
    if (panel.even !== undefined) {
      extra.shapes.push({
        type: "line", x0: panel.even, x1: panel.even, y0: 0, y1: 1, xref: "x" + n,
        yref: `y${n} domain`, line: { color: css("--soft"), width: 1, dash: "dot" },
      });
    }
    rows.forEach((row, place) => {
      const figure = row.figures[panel.figure];
      if (!figure || figure.mean === null) return;
      const mean = figure.mean * panel.factor;
      const [low, upper] = (figure.interval ?? []).map((end) => end * panel.factor);
      const reach = figure.interval ? ` (${low.toPrecision(3)} to ${upper.toPrecision(3)})` : "";
      table.push([panel.title, row.name, mean, low, upper]);
      traces.push({
        x: [mean], y: [place], mode: "markers", name: row.name,
        xaxis: "x" + n, yaxis: "y" + n, cliponaxis: false,
        marker: { size: 10, color: ink(row.color) },
        error_x: figure.interval ? {
          type: "data", symmetric: false, array: [upper - mean], arrayminus: [mean - low],
          color: ink(row.color), thickness: 2, width: 0,
        } : undefined,
        hovertemplate: `%{x:.3~f}${reach}<extra>%{fullData.name}</extra>`,
      });
    });
  });
  extra.height = inner + extra.margin.t + extra.margin.b;
  show(target, { traces, extra, table: () => table });
}

// Goodput against the 95th percentile of the queueing delay, one point per controller with the ellipse of its seeds.
function drawTradeOffs(target) {
  const { points, ranges: [delays, goodputs] } = data.trade_offs;
  const below = narrow();
  const names = points.map((point) => broken(point.name, below ? 40 : 28));
  const traces = points.flatMap((point, i) => {
    const common = { name: names[i].join("\n"), legendgroup: point.name };
    const color = ink(point.color);
    return [
      {
        ...common, x: point.outline[0], y: point.outline[1], mode: "lines", showlegend: false, hoverinfo: "skip",
        line: { color, width: 1 }, fill: "toself", opacity: 0.5,
      },
      {
        ...common, x: [point.delay], y: [point.goodput], mode: "markers", marker: { size: 10, color },
        hovertemplate: "%{x:.3~f} ms, %{y:.4~g} Mbit/s<extra>%{fullData.name}</extra>",
      },
    ];
  });
  const lines = names.reduce((sum, each) => sum + each.length, 0);
  const legend = { font: { color: css("--ink") }, itemsizing: "constant" };
  show(target, {
    traces,
    table: () => [
      ["controller", "queue_delay_p95_ms", "goodput_mbps"], ...points.map((point) => [point.name, point.delay, point.goodput]),
    ],
    extra: {
      height: below ? 350 + 22 * lines : Math.max(360, 100 + 22 * lines),
      margin: { l: 14, r: 16, t: 36, b: 50 },
      showlegend: true,
      legend: below ? { ...legend, orientation: "h", y: -0.2, yanchor: "top", yref: "paper" } : legend,
      xaxis: { title: { text: "queueing delay, 95th percentile (ms)", standoff: 8 }, range: delays, nticks: 7, fixedrange: true },
      yaxis: { automargin: true, range: goodputs, nticks: 6, fixedrange: true },
      annotations: [heading("goodput of all flows, Mbit/s", "y domain", 1)],
    },
  });
}

// Largest value after `start`.
function largest(lines, start) {
  let most = 0;
  for (const [x, y] of lines) {
    y.forEach((value, i) => { if (x[i] >= start && value > most) most = value; });
  }
  return most || 1;
}

// Windows, goodput, round-trip times and queue over a common time axis. Clicking a flow in the legend hides or
// shows its lines; a double click shows the flow alone.
function drawRun(target, run) {
  const rated = [...run.flows, ...run.groups];
  const lossy = rated.filter((flow) => flow.sent);
  const styles = [...(lossy.length ? ["thin: sent"] : []), ...(run.capacity ? ["dotted: capacity"] : [])];
  // Panels from top to bottom: title and lines.
  const panels = [
    { title: "window, packets" + (run.note ? ` (${run.note})` : ""), lines: run.flows.map((flow) => [flow.name, flow.window]) },
    {
      title: `goodput over ${run.scale}, bit/s` + (styles.length ? ` (${styles.join("; ")})` : ""),
      lines: [
        ...rated.map((flow) => [flow.name, flow.goodput]),
        ...lossy.map((flow) => [`${flow.name}, sent`, flow.sent]),
        ...(run.capacity ? [["capacity", run.capacity]] : []),
      ],
    },
    ...(run.flows[0]?.rtt ? [{ title: "round-trip time, ms", lines: run.flows.map((flow) => [flow.name, flow.rtt]) }] : []),
    { title: `queue of ${run.link}, packets`, lines: [[run.link, run.queue]] },
  ];
  const count = panels.length;
  // Vertical axes are numbered from the bottom.
  const axisOf = (panel) => panel === count - 1 ? "y" : `y${count - panel}`;
  const traces = [];
  const below = narrow();
  const names = run.flows.map((flow) => broken(flow.name, below ? 36 : 28));
  for (const [i, flow] of run.flows.entries()) {
    const common = { mode: "lines", name: names[i].join("\n"), legendgroup: flow.name, opacity: 0.9 };
    const line = { color: ink(flow.color), dash: flow.dash };
    traces.push({
      ...common, x: flow.window[0], y: flow.window[1], yaxis: axisOf(0), line: { ...line, width: 1.2 },
      hovertemplate: "%{y:.1f} packets<extra>%{fullData.name}</extra>",
    });
    traces.push({
      ...common, x: flow.goodput[0], y: flow.goodput[1], yaxis: axisOf(1), showlegend: false,
      line: { ...line, width: 1.4, shape: "hv" },
      hovertemplate: "%{y:.3~s}bit/s<extra>%{fullData.name}</extra>",
    });
    if (flow.rtt) {
      traces.push({
        ...common, x: flow.rtt[0], y: flow.rtt[1], yaxis: axisOf(2), showlegend: false, line: { ...line, width: 1 },
        hovertemplate: "%{y:.1f} ms<extra>%{fullData.name}</extra>",
      });
    }
  }
  for (const group of run.groups) {
    traces.push({
      x: group.goodput[0], y: group.goodput[1], yaxis: axisOf(1), mode: "lines", opacity: 0.9,
      name: broken(group.name, below ? 36 : 28).join("\n"), legendgroup: group.name, line: { color: ink(group.color), width: 1.4, shape: "hv" },
      hovertemplate: "%{y:.3~s}bit/s<extra>%{fullData.name}</extra>",
    });
  }
  for (const flow of lossy) {
    traces.push({
      x: flow.sent[0], y: flow.sent[1], yaxis: axisOf(1), mode: "lines", name: `${flow.name}, sent`, legendgroup: flow.name,
      showlegend: false, opacity: 0.6, line: { color: ink(flow.color), width: 0.7, shape: "hv" },
      hovertemplate: "%{y:.3~s}bit/s sent<extra>%{fullData.name}</extra>",
    });
  }
  traces.push({
    x: run.queue[0], y: run.queue[1], yaxis: "y", mode: "lines", name: run.link, showlegend: false,
    line: { color: css("--soft"), width: 0.8 }, fill: "tozeroy",
    hovertemplate: "%{y:.0f} packets<extra>queue</extra>",
  });
  if (run.capacity) {
    traces.push({
      x: run.capacity[0], y: run.capacity[1], yaxis: axisOf(1), mode: "lines", name: `capacity of ${run.link}`, showlegend: false,
      line: { color: css("--soft"), width: 1, dash: "dot", shape: "hv" },
      hovertemplate: "%{y:.3~s}bit/s<extra>capacity</extra>",
    });
  }
  // The axes fit the values after the warm-up, which may contain much larger ones.
  const gap = 0.1 * 3 / count;
  const high = (1 - gap * (count - 1)) / (count - 0.25);
  const axes = {};
  panels.forEach(({ lines }, panel) => {
    const top = 1 - panel * (high + gap);
    axes[axisOf(panel).replace("y", "yaxis")] = {
      domain: [panel === count - 1 ? 0 : top - high, top], range: [0, 1.08 * largest(lines.map(([, line]) => line), run.warmup)],
      nticks: 5, fixedrange: true, automargin: true, ...(panel === 1 ? { tickformat: "~s" } : {}),
    };
  });
  const entries = [...names, ...run.groups.map((group) => broken(group.name, below ? 36 : 28))];
  const longest = Math.max(...entries.flat().map((line) => line.length), 1);
  const most = Math.max(...entries.map((lines) => lines.length), 1);
  const across = Math.max(Math.floor(330 / (40 + 7 * longest)), 1);
  const legend = { font: { color: css("--ink") }, itemsizing: "constant" };
  show(target, {
    traces,
    table: () => [
      ["panel", "line", "time_s", "value"],
      ...panels.flatMap(({ title, lines }) =>
        lines.flatMap(([name, [x, y]]) => x.map((time, i) => [title, name, time, y[i]]))),
    ],
    extra: {
      height: (below ? 640 + (5 + 15 * most) * Math.ceil(entries.length / across) : 680) + 190 * (count - 3),
      margin: { l: 14, r: 16, t: 40, b: 46 },
      showlegend: true,
      legend: below ? { ...legend, orientation: "h", y: -0.09, yanchor: "top" } : legend,
      uirevision: `${run.name} ${run.mode}`,
      xaxis: {
        title: { text: "time (s)", standoff: 6 }, anchor: "y", range: [0, run.duration],
        showgrid: false, uirevision: run.duration,
      },
      ...axes,
      shapes: run.warmup > 0 ? [{
        type: "rect", x0: 0, x1: run.warmup, y0: 0, y1: 1, yref: "paper", layer: "below",
        line: { width: 0 }, fillcolor: css("--line"), opacity: 0.45,
      }] : [],
      annotations: panels.map(({ title }, panel) => heading(title, `${axisOf(panel)} domain`, 1)),
    },
  });
}

const chosen = document.getElementById("name");
const seeds = document.getElementById("seed");
const modes = document.querySelectorAll(".switch button");

// Runs of the selected controller or backend, one for each seed.
function chosenRuns() {
  const mode = [...modes].find((button) => button.getAttribute("aria-pressed") === "true")?.value;
  return data.runs.filter((run) =>
    (!chosen || run.name === chosen.value) && (!mode || run.mode === mode));
}

function drawAll() {
  const figures = document.getElementById("figures");
  if (figures) drawFigures(figures);
  const tradeOffs = document.getElementById("trade-off");
  if (tradeOffs) drawTradeOffs(tradeOffs);
  if (data.fairness) drawFairness(document.getElementById("fairness"), data.fairness);
  if (data.transfers) drawTransfers(document.getElementById("transfers"), data.transfers);
  const runs = chosenRuns();
  if (seeds) {
    const wanted = seeds.value;
    seeds.replaceChildren(...runs.map((run) => new Option(run.seed)));
    if (runs.some((run) => run.seed === wanted)) seeds.value = wanted;
  }
  drawRun(document.getElementById("run"), runs[Math.max(seeds?.selectedIndex ?? 0, 0)]);
}

for (const select of [chosen, seeds]) select?.addEventListener("change", drawAll);
for (const button of modes) {
  button.addEventListener("click", () => {
    for (const other of modes) other.setAttribute("aria-pressed", String(other === button));
    drawAll();
  });
}
start(drawAll);
