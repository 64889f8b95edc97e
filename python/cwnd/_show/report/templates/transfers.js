// Jain's index in windows of time.
function drawFairness(target, run) {
  const { time, jain, title, duration } = run;
  show(target, {
    traces: [{
      x: time, y: jain, mode: "lines", line: { color: css("--accent"), width: 1.4, shape: "hv" },
      hovertemplate: "%{y:.3f}<extra>from %{x} s</extra>",
    }],
    extra: {
      height: 240, margin: { l: 14, r: 16, t: 40, b: 46 },
      xaxis: { title: { text: "time (s)", standoff: 6 }, range: [0, duration], showgrid: false, fixedrange: true },
      yaxis: { range: [0, 1.05], nticks: 5, fixedrange: true, automargin: true },
      annotations: [heading(title, "y domain", 1)],
    },
    table: () => [["time_s", "jain"], ...time.map((at, i) => [at, jain[i]])],
  });
}

// Distribution of completion times, and percentiles of the slowdown, by size.
function drawTransfers(target, transfers) {
  const stacked = narrow();
  const titles = ["fraction complete within a time, by size", "slowdown by size"];
  const { classes, percentiles } = transfers;
  const traces = classes.map((each) => ({
    x: each.fct, y: each.part, mode: "lines", name: each.name, legendgroup: each.name,
    line: { color: ink(each.color), width: 1.5, shape: "hv" },
    hovertemplate: "%{y:.1%} within %{x:.3~g} s<extra>%{fullData.name}</extra>",
  }));
  for (const { name, values, dash } of percentiles) {
    traces.push({
      x: classes.map((each) => each.name), y: values, mode: "lines+markers", name, xaxis: "x2", yaxis: "y2",
      line: { color: css("--ink"), width: 1.4, dash }, marker: { size: 6 }, legend: "legend2",
      hovertemplate: "%{y:.3~g}<extra>%{fullData.name}, %{x}</extra>",
    });
  }
  const ticks = (digits) => [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4].flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)));
  // A decade may contain all values: a label at its end only would leave an axis without a scale.
  const times = classes.flatMap((each) => each.fct).filter((time) => time > 0);
  const spread = times.reduce((most, time) => Math.max(most, time), 0) / times.reduce((least, time) => Math.min(least, time), Infinity);
  const legend = { font: { color: css("--ink") }, bgcolor: "rgba(0,0,0,0)", xanchor: "left", yanchor: "bottom", orientation: "h" };
  const [low, high] = stacked ? [[0.6, 0.89], [0, 0.36]] : [[0, 0.84], [0, 0.84]];
  const across = stacked ? [[0, 1], [0, 1]] : [[0, 0.47], [0.56, 1]];
  show(target, {
    traces,
    extra: {
      height: stacked ? 700 : 380, margin: { l: 14, r: 16, t: 40, b: 46 }, showlegend: true,
      legend: { ...legend, x: across[0][0], y: low[1] + 0.005 },
      legend2: { ...legend, x: across[1][0], y: high[1] + 0.005 },
      xaxis: { domain: across[0], anchor: "y", type: "log", title: { text: "completion time (s)", standoff: 6 }, fixedrange: true, tickvals: ticks(spread < 500 ? [1, 2, 5] : [1]), minexponent: 4 },
      yaxis: { domain: low, anchor: "x", range: [0, 1.02], tickformat: ".0%", fixedrange: true, automargin: true },
      xaxis2: { domain: across[1], anchor: "y2", type: "category", range: [-0.5, classes.length - 0.5], title: { text: "size", standoff: 6 }, fixedrange: true },
      yaxis2: { domain: high, anchor: "x2", type: "log", fixedrange: true, automargin: true, tickvals: ticks([1, 2, 5]), minexponent: 4 },
      annotations: titles.map((title, i) => ({
        ...heading(title, "paper", 0), x: across[i][0], y: [low, high][i][1] + (stacked ? [0.09, 0.055][i] : 0.08),
      })),
    },
    table: () => [
      ["panel", "size", "line", "x", "y"],
      ...classes.flatMap((each) => each.fct.map((time, i) => [titles[0], each.name, "", time, each.part[i]])),
      ...percentiles.flatMap(({ name, values }) => values.map((value, i) => [titles[1], classes[i].name, name, "", value])),
    ],
  });
}
