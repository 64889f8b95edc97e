// Data sent, acknowledged and lost, windows, and round-trip times over a common time axis.
function drawRecording() {
  const { time, panels } = data;
  const count = panels.length;
  const below = narrow();
  const axisOf = (panel) => panel === count - 1 ? "y" : `y${count - panel}`;
  const traces = panels.flatMap(({ lines }, panel) => lines.map(({ name, color, values }) => ({
    x: time, y: values, yaxis: axisOf(panel), name, mode: "lines", opacity: 0.9,
    line: { color: ink(color), width: 1.2, shape: "hv" },
    hovertemplate: "%{y:.5~g}<extra>%{fullData.name}</extra>",
  })));
  const gap = 0.09;
  const high = (1 - gap * (count - 1)) / count;
  const axes = Object.fromEntries(panels.map((_, panel) => {
    const top = 1 - panel * (high + gap);
    return [axisOf(panel).replace("y", "yaxis"), {
      domain: [Math.max(top - high, 0), top], rangemode: "tozero", nticks: 5, fixedrange: true, automargin: true,
    }];
  }));
  const legend = { font: { color: css("--ink") }, itemsizing: "constant" };
  show(document.getElementById("recording"), {
    traces,
    table: () => [
      ["panel", "line", "time_s", "value"],
      ...panels.flatMap(({ title, lines }) =>
        lines.flatMap(({ name, values }) => time.map((at, i) => [title, name, at, values[i]]))),
    ],
    extra: {
      height: below ? 760 : 680,
      margin: { l: 14, r: 16, t: 40, b: 46 },
      showlegend: true,
      legend: below ? { ...legend, orientation: "h", y: -0.09, yanchor: "top" } : legend,
      xaxis: { title: { text: "time (s)", standoff: 6 }, anchor: "y", range: [time[0], time.at(-1)], showgrid: false },
      ...axes,
      annotations: panels.map(({ title }, panel) => heading(title, `${axisOf(panel)} domain`, 1)),
    },
  });
}
start(drawRecording);
