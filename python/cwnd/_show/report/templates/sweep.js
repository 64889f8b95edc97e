const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "star", "x"];

// Number of points above which markers are small and drawn with WebGL.
const MANY = 1500;

const selects = [...document.querySelectorAll("[data-role]")];
const fixing = [...document.querySelectorAll("[data-dimension]")];
const filter = document.getElementById("filter");

// Selected index of a role; two selects may have the same role.
const chosen = (role) => Number(selects.find((select) => select.dataset.role === role)?.value ?? 0);

function choose(role, value) {
  for (const select of selects) if (select.dataset.role === role) select.value = value;
}

const named = (metric) => metric.unit ? `${metric.title}, ${metric.unit}` : metric.title;

// Means with some dimensions remaining, or undefined if the page had no room for them. A mean over
// a subset of the points would be wrong.
function level(dimensions) {
  const key = [...new Set(dimensions)].sort((a, b) => a - b).join();
  const whole = data.whole || data.sampled !== null || key !== everything();
  return whole ? data.levels[key] : undefined;
}

const everything = () => data.shape.map((_, dimension) => dimension).join();

// Cells of a level with the given indices along some dimensions.
function cells(from, fixed) {
  const count = from.mean[data.metrics[0].name][0].length;
  return [...Array(count).keys()].filter((cell) =>
    [...fixed].every(([dimension, place]) => from.at[dimension][cell] === place));
}

// Mean and interval of a cell as text.
function described(from, metric, controller, cell) {
  const mean = from.mean[metric.name][controller][cell];
  const low = from.low?.[metric.name][controller][cell] ?? null;
  const reach = low === null ? "" : ` (${low} to ${from.high[metric.name][controller][cell]})`;
  return mean === null ? "no value" : `${mean}${reach}`;
}

// Plot axis for an axis of the sweep: numeric, logarithmic if the values span a factor of 10 and are
// spaced more evenly on that scale, or categorical. `at` returns the coordinate of a value, shifted
// by some steps so that error bars do not overlap.
function scale(axis, even) {
  if (!axis.places || even) {
    const step = Math.ceil(axis.labels.length / (narrow() ? 6 : 12));
    const shown = axis.labels.map((_, i) => i).filter((i) => i % step === 0);
    return {
      at: (place, aside = 0) => place + 0.03 * aside,
      layout: {
        range: [-0.5, axis.labels.length - 0.5], tickvals: shown, showgrid: false, automargin: true, ticks: "",
        ticktext: shown.map((i) => axis.labels[i]), title: { text: axis.name, standoff: 6 },
      },
    };
  }
  const few = axis.dimension !== data.sampled && axis.labels.length <= (narrow() ? 5 : 10);
  const sorted = axis.places.toSorted((a, b) => a - b);
  const [low, high] = [sorted[0], sorted.at(-1)];
  const median = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  const log = low > 0 && high >= 10 * low && median < (Math.sqrt(low * high) + (low + high) / 2) / 2;
  return {
    at: (place, aside = 0) => log
      ? axis.places[place] * (high / low) ** (0.006 * aside)
      : axis.places[place] + 0.006 * aside * (high - low),
    layout: {
      automargin: true, title: { text: axis.name, standoff: 6 },
      ...(log ? { type: "log", dtick: high < 300 * low ? "D2" : 1 } : {}),
      ...(few ? { tickvals: axis.places, ticktext: axis.labels } : {}),
      ...(axis.unit && !few ? { tickformat: "~s", ticksuffix: axis.unit } : {}),
    },
  };
}

// Grid of panels, one per controller; `above` is the space left for the color bar.
function panels(rowHeight, above) {
  const count = data.controllers.length;
  const across = narrow() ? 1 : Math.min(count, 3);
  const down = Math.ceil(count / across);
  const gap = 96;
  const inner = above + down * rowHeight + (down - 1) * gap;
  return {
    across, inner,
    places: data.controllers.map((controller, i) => {
      const column = i % across;
      const row = Math.floor(i / across);
      const top = 1 - (above + row * (rowHeight + gap)) / inner;
      return {
        n: i === 0 ? "" : i + 1, first: column === 0,
        x: [column / across + (column ? 0.025 : 0), (column + 1) / across - (across > 1 ? 0.01 : 0)],
        y: [Math.max(top - rowHeight / inner, 0), top],
      };
    }),
  };
}

// A metric over two axes, one panel per controller: a heat map, or points of a Latin hypercube.
function drawMap(target) {
  const [metric, x, y] = [data.metrics[chosen("metric")], data.axes[chosen("x")], data.axes[chosen("y")]];
  const dimensions = [x.dimension, y.dimension];
  const scattered = dimensions.includes(data.sampled);
  const from = level(dimensions);
  if (!from) return missing(target);
  const [across, up] = [scale(x, !scattered), scale(y, !scattered)];
  const rowHeight = scattered ? 300 : Math.min(Math.max(34 * y.labels.length, 130), 420);
  const plan = panels(rowHeight, narrow() ? 80 : 0);
  const colorbar = {
    thickness: 12, outlinewidth: 0, title: { text: named(metric), side: narrow() ? "top" : "right" },
    ...(narrow() ? { orientation: "h", x: 0.5, y: 1, yanchor: "top", ypad: 0 } : {}),
  };
  const extra = {
    annotations: [], height: plan.inner + (narrow() ? 76 : 100),
    margin: { l: 14, r: 16, t: narrow() ? 16 : 40, b: 60 },
    coloraxis: { colorscale: "Cividis", colorbar },
  };
  const width = (target.clientWidth - 160) / plan.across / x.labels.length;
  const gap = width > 10 ? 1 : 0;
  const table = [["controller", x.name, y.name, metric.name, "low", "high"]];
  const traces = data.controllers.map((controller, c) => {
    const { n, first, x: left, y: low } = plan.places[c];
    extra[`xaxis${n}`] = { ...across.layout, domain: left, anchor: `y${n}`, automargin: false };
    extra[`yaxis${n}`] = { ...up.layout, domain: low, anchor: `x${n}`, ...(first ? {} : { title: { text: "" }, showticklabels: false }) };
    extra.annotations.push({ ...heading(controller.name, `y${n} domain`, 1), xref: `x${n} domain` });
    const means = from.mean[metric.name][c];
    const places = (axis) => from.at[axis.dimension];
    const texts = means.map((_, cell) => `${x.name} ${x.labels[places(x)[cell]]}\n${y.name} ${y.labels[places(y)[cell]]}\n${described(from, metric, c, cell)}`);
    means.forEach((mean, cell) => table.push([
      controller.name, x.labels[places(x)[cell]], y.labels[places(y)[cell]], mean,
      from.low?.[metric.name][c][cell], from.high?.[metric.name][c][cell],
    ]));
    const common = { xaxis: `x${n}`, yaxis: `y${n}`, hovertemplate: "%{hovertext}<extra></extra>" };
    if (scattered) {
      const known = means.map((_, cell) => cell).filter((cell) => means[cell] !== null);
      return {
        ...common, type: known.length > MANY ? "scattergl" : "scatter", mode: "markers", cliponaxis: false,
        x: known.map((cell) => across.at(places(x)[cell])), y: known.map((cell) => up.at(places(y)[cell])),
        hovertext: known.map((cell) => texts[cell]),
        marker: { color: known.map((cell) => means[cell]), coloraxis: "coloraxis", size: known.length > MANY ? 4 : 9, line: { width: known.length > MANY ? 0 : 0.7, color: css("--soft") } },
      };
    }
    const rows = () => y.labels.map(() => Array(x.labels.length).fill(null));
    const [z, hovertext] = [rows(), rows()];
    means.forEach((mean, cell) => {
      z[places(y)[cell]][places(x)[cell]] = mean;
      hovertext[places(y)[cell]][places(x)[cell]] = texts[cell];
    });
    return {
      ...common, type: "heatmap", z, hovertext, coloraxis: "coloraxis", xgap: gap, ygap: gap, hoverongaps: false,
      ...(width > 44 ? { texttemplate: "%{z}" } : {}),
    };
  });
  show(target, { traces, extra, table: () => table });
}

// A metric over one axis, one line per controller; intervals of many points are in the hover text.
function drawSlice(target) {
  const metric = data.metrics[chosen("metric")];
  const axis = data.axes[chosen("over")] ?? { name: "", labels: [""], places: null };
  const kept = axis.dimension === undefined ? [] : [axis.dimension];
  const fixed = new Map(fixing
    .filter((select) => select.value !== "" && Number(select.dataset.dimension) !== axis.dimension)
    .map((select) => [Number(select.dataset.dimension), Number(select.value)]));
  const from = level([...kept, ...fixed.keys()]);
  if (!from) return missing(target);
  const across = scale(axis, false);
  const place = (cell) => from.at[axis.dimension]?.[cell] ?? 0;
  const shown = cells(from, fixed).sort((a, b) => place(a) - place(b));
  const table = [["controller", axis.name, metric.name, "low", "high"]];
  const loose = !axis.places || kept.includes(data.sampled);
  const crowded = shown.length > 40;
  const aside = (c) => c - (data.controllers.length - 1) / 2;
  const traces = data.controllers.map((controller, c) => {
    const [mean, low, high] = ["mean", "low", "high"].map((of) =>
      shown.map((cell) => from[of]?.[metric.name][c][cell] ?? null));
    shown.forEach((cell, i) => table.push([controller.name, axis.labels[place(cell)], mean[i], low[i], high[i]]));
    const reach = (bound) => bound.map((value, i) => value === null ? 0 : Math.abs(value - mean[i]));
    return {
      type: shown.length > MANY ? "scattergl" : "scatter", name: controller.name, x: shown.map((cell) => across.at(place(cell), crowded ? 0 : aside(c))), y: mean,
      mode: loose ? "markers" : "lines+markers", opacity: crowded && loose ? 0.8 : 1,
      line: { color: ink(controller.color), width: 1.6 },
      marker: { color: ink(controller.color), symbol: SYMBOLS[c % SYMBOLS.length], size: shown.length > MANY ? 4 : 8 },
      error_y: crowded ? undefined : { type: "data", symmetric: false, array: reach(high), arrayminus: reach(low), color: ink(controller.color), thickness: 1.2, width: 3 },
      hovertext: shown.map((cell) => `${axis.labels[place(cell)]}\n${described(from, metric, c, cell)}`),
      hovertemplate: "%{hovertext}<extra>%{fullData.name}</extra>",
    };
  });
  const legend = { font: { color: css("--ink") }, ...(narrow() ? { orientation: "h", y: 1.04, yanchor: "bottom" } : {}) };
  show(target, {
    traces, table: () => table,
    extra: {
      height: 400, margin: { l: 14, r: 16, t: 46, b: 60 }, showlegend: data.controllers.length > 1, legend,
      xaxis: { ...across.layout, showgrid: false },
      yaxis: { automargin: true, nticks: 6, title: { text: named(metric), standoff: 6 } },
    },
  });
}

// Shows that the page has no data for a selection.
function missing(target) {
  const text = "The page has no data for this selection:\ncwnd query has all runs.";
  const nothing = { visible: false };
  show(target, {
    traces: [], table: () => [],
    extra: {
      height: 200, xaxis: nothing, yaxis: nothing,
      annotations: [{ text, x: 0.5, y: 0.5, xref: "paper", yref: "paper", showarrow: false }],
    },
  });
}

// Columns of the table of points: header, cell of a row, and sort key.
function columns() {
  const points = data.levels[everything()];
  const text = (title, value, key = value) => ({ title, text: true, value, key });
  const number = (title, small, value, note = () => "") => ({ title, small, value, key: value, note });
  const place = (axis, row) => points.at[axis.dimension][row.cell];
  return [
    ...data.axes.map((axis) => text(
      axis.name, (row) => axis.labels[place(axis, row)],
      (row) => axis.places ? axis.places[place(axis, row)] : place(axis, row),
    )),
    ...(data.controllers[0].name ? [text("controller", (row) => data.controllers[row.c].name)] : []),
    number("runs", "", (row) => data.runs[row.c][row.cell]),
    number("failed", "", (row) => data.failed[row.c][row.cell]),
    ...data.metrics.map((metric) => number(
      metric.title, metric.unit, (row) => points.mean[metric.name][row.c][row.cell], (row) => {
        const low = points.low?.[metric.name][row.c][row.cell] ?? null;
        return low === null ? "" : `${low}–${points.high[metric.name][row.c][row.cell]}`;
      },
    )),
  ];
}

const sorting = { column: null, descending: false };

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function drawTable() {
  const all = columns();
  const rows = data.runs.flatMap((runs, c) => runs.map((count, cell) => ({ c, cell, count })))
    .filter((row) => row.count).sort((a, b) => a.cell - b.cell || a.c - b.c);
  const words = filter.value.toLowerCase().split(/\s+/);
  const texts = all.filter((column) => column.text);
  const matching = rows.filter((row) => {
    const text = texts.map((column) => `${column.title}=${column.value(row)}`).join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
  if (sorting.column !== null) {
    const { key } = all[sorting.column];
    const sign = sorting.descending ? -1 : 1;
    // Unknown values are last.
    const order = (a, b) => a === null || b === null ? (a === null) - (b === null) : sign * (a < b ? -1 : a > b ? 1 : 0);
    matching.sort((a, b) => order(key(a), key(b)));
  }
  const head = document.createElement("tr");
  all.forEach((column, i) => {
    const cell = element("th", "", { scope: "col" });
    if (column.text) cell.className = "text";
    if (sorting.column === i) cell.setAttribute("aria-sort", sorting.descending ? "descending" : "ascending");
    const button = element("button", column.title, { type: "button", class: "sorts" });
    button.addEventListener("click", () => {
      Object.assign(sorting, { column: i, descending: sorting.column === i && !sorting.descending });
      drawTable();
      document.querySelectorAll("#points .sorts")[i].focus();
    });
    cell.append(button, element("small", column.small ?? ""));
    head.append(cell);
  });
  const body = matching.slice(0, data.rows).map((row) => {
    const line = document.createElement("tr");
    all.forEach((column, i) => {
      const value = column.value(row);
      const cell = element(i === 0 && column.text ? "th" : "td", value ?? "–");
      if (i === 0 && column.text) cell.scope = "row";
      if (column.text) cell.classList.add("text");
      const note = column.note?.(row);
      if (note) cell.append(element("small", note));
      line.append(cell);
    });
    return line;
  });
  const table = document.getElementById("points");
  const [thead, tbody] = [document.createElement("thead"), document.createElement("tbody")];
  thead.append(head);
  tbody.append(...body);
  table.replaceChildren(thead, tbody);
  document.getElementById("shown").textContent =
    `${body.length.toLocaleString("en")} of ${matching.length.toLocaleString("en")} rows`;
}

function drawAll() {
  if (!data.metrics.length) return;
  const map = document.getElementById("map");
  if (map) drawMap(map);
  for (const label of document.querySelectorAll("[data-axis]")) {
    label.hidden = Number(label.dataset.axis) === chosen("over");
  }
  drawSlice(document.getElementById("slice"));
}

for (const select of selects) {
  const { role } = select.dataset;
  let before = select.value;
  select.addEventListener("change", () => {
    // The two axes of the map must differ: selecting the other axis swaps them.
    const other = role === "x" ? "y" : "x";
    if ((role === "x" || role === "y") && chosen("x") === chosen("y")) choose(other, before);
    choose(role, select.value);
    before = select.value;
    drawAll();
  });
  select.addEventListener("focus", () => { before = select.value; });
}
for (const select of fixing) select.addEventListener("change", drawAll);
filter?.addEventListener("input", drawTable);
start(() => {
  drawAll();
  if (filter && !document.querySelector("#points thead")) drawTable();
});
