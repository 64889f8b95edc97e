const chosen = Object.fromEntries(["across", "up", "objective"].map((id) => [id, document.getElementById(id)]));

// Place of a parameter that a network lacks, left of or below the bounds.
const NONE = -0.1;

// Moves a point by up to `reach`, the same on each call, so that networks with one value do not hide each other.
const spread = (number, reach) => reach * (((number * 0.618034) % 1) - 0.5);

// Title, ticks and range of an axis of the map.
function scaleOf(name) {
  const { title, ticks, lacking: label } = data.parameters[name];
  const lacking = [...data.networks, ...data.findings].some((one) => one.places[name] === undefined);
  const all = lacking ? [[NONE, label], ...ticks] : ticks;
  return {
    title: { text: title, standoff: 6 }, tickvals: all.map(([place]) => place), ticktext: all.map(([, text]) => text),
    range: [lacking ? NONE - 0.06 : -0.05, 1.05], fixedrange: true, automargin: true,
  };
}

// Sizes of the weakness over two parameters, with the findings as numbered rings.
function drawMap() {
  const [across, up] = [chosen.across.value, chosen.up.value];
  const objective = chosen.objective.value;
  const networks = data.networks.toSorted((one, other) => one.sizes[objective] - other.sizes[objective]);
  const findings = data.findings.map((one, i) => [one, i + 1]).filter(([one]) => one.objective === objective);
  const place = (one, name) => one.places[name] ?? NONE;
  const sizes = networks.map((one) => one.sizes[objective]);
  const text = (values) => Object.entries(values).map(([name, value]) => `${name} ${value}`).join("\n");
  show(document.getElementById("map"), {
    traces: [
      {
        x: networks.map((one, i) => place(one, across) + spread(i, across in one.places ? 0 : 0.06)),
        y: networks.map((one, i) => place(one, up) + spread(7 * i, up in one.places ? 0 : 0.06)),
        mode: "markers", text: networks.map(({ values }) => text(values)), cliponaxis: false,
        marker: {
          size: narrow() ? 6 : 8, color: sizes, cmin: 0, cmax: Math.max(...sizes, 1),
          colorscale: [[0, css("--line")], [0.25, "#f0b27a"], [0.6, css("--hot")], [1, "#8a1f11"]],
          line: { width: 0.5, color: css("--soft") },
          colorbar: { title: { text: "size", side: "top" }, thickness: 10, outlinewidth: 0, nticks: 5, len: 0.9 },
        },
        hovertemplate: "size %{marker.color:.2f}<br>%{text}<extra></extra>",
      },
      {
        x: findings.map(([one]) => place(one, across)), y: findings.map(([one]) => place(one, up)),
        mode: "markers+text", text: findings.map(([, number]) => String(number)), textposition: "middle center",
        customdata: findings.map(([one]) => one.sentence), cliponaxis: false,
        textfont: { color: css("--ink"), size: 12, weight: 700 },
        marker: { size: 22, color: css("--card"), opacity: 0.85, line: { width: 2, color: css("--ink") } },
        hovertemplate: "finding %{text}<br>%{customdata}<extra></extra>",
      },
    ],
    table: () => [
      [...Object.keys(data.parameters), "size"],
      ...networks.map((one) => [...Object.keys(data.parameters).map((name) => one.values[name]), one.sizes[objective]]),
    ],
    extra: {
      height: narrow() ? 420 : 520,
      margin: { l: 14, r: 16, t: 20, b: 50 },
      xaxis: scaleOf(across),
      yaxis: scaleOf(up),
    },
  });
}

function drawAll() {
  drawMap();
  for (const [i, run] of data.runs.entries()) {
    if (run) drawSides(document.getElementById(`run-${i}`), run);
  }
}

for (const select of Object.values(chosen)) select.addEventListener("change", drawMap);
start(drawAll);
