// Data of the page, decompressed before the first plot is drawn.
let data;

// Data and Plotly are embedded compressed.
async function unpack(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

const narrow = () => window.matchMedia("(max-width: 560px)").matches;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Color of a line: lighter on a dark background, like the swatches of the style sheet.
function ink(color) {
  if (!window.matchMedia("(prefers-color-scheme: dark)").matches) return color;
  const channels = color.match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
  return `rgb(${channels.map((c) => Math.round(c + 0.3 * (255 - c))).join()})`;
}

// Plotly layout in the page's colors; `extra` is merged into it, including its axes.
function layout(extra) {
  const axis = { gridcolor: css("--line"), linecolor: css("--line"), zeroline: false };
  const base = {
    font: { family: "system-ui, sans-serif", size: narrow() ? 11 : 12, color: css("--soft") },
    paper_bgcolor: css("--card"),
    plot_bgcolor: css("--card"),
    showlegend: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") }, namelength: -1 },
    dragmode: narrow() ? false : "zoom",
  };
  for (const [name, value] of Object.entries(extra)) {
    base[name] = /^[xy]axis\d*$/.test(name) ? { ...axis, ...value } : value;
  }
  return base;
}

// Title of a panel, above its left corner.
function heading(text, yref, y) {
  return {
    text, x: 0, y, xref: "paper", yref, xanchor: "left", yanchor: "bottom", yshift: 6,
    showarrow: false, font: { color: css("--ink"), size: narrow() ? 12 : 13 },
  };
}

// Plotly interprets text as HTML: `value` with all its text escaped, and a line break as <br>. Hover
// templates remain: they contain no text of the data.
function escaped(value, key) {
  if (typeof value === "string") {
    if (key === "hovertemplate") return value;
    return value.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`).replaceAll("\n", "<br>");
  }
  if (Array.isArray(value)) return value.map((each) => escaped(each));
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, escaped(each, name)]));
}

// Draws a plot, with buttons below it to save it as PNG and the rows of `table` as CSV.
function show(target, { traces, extra, table }) {
  Plotly.react(target, escaped(traces), escaped(layout(extra)), { responsive: true, displaylogo: false, displayModeBar: false });
  const name = `${document.title} ${target.id}`.replace(/[^a-z0-9]+/gi, "-").toLowerCase();
  const tools = target.parentElement.querySelector(`[data-of="${target.id}"]`) ?? document.createElement("p");
  tools.className = "tools";
  tools.dataset.of = target.id;
  tools.replaceChildren(
    tool("PNG", "Save the plot as an image", () => Plotly.downloadImage(target, {
      format: "png", scale: 2, width: target.clientWidth, height: target.clientHeight, filename: name,
    })),
    tool("CSV", "Save the points of the plot", () => save(`${name}.csv`, csv(table()))),
  );
  target.after(tools);
}

function tool(text, title, act) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: text, title });
  button.addEventListener("click", act);
  return button;
}

function csv(rows) {
  const cell = (value) => typeof value === "string" ? `"${value.replaceAll('"', '""')}"` : value ?? "";
  return rows.map((row) => row.map(cell).join(",") + "\n").join("");
}

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// Draws the page's plots with `draw`, again whenever the color scheme or the size changes.
async function start(draw) {
  const plots = document.querySelectorAll(".plot");
  try {
    data = JSON.parse(await unpack("data"));
    const script = document.createElement("script");
    script.textContent = await unpack("plotly");
    document.head.append(script);
    for (const plot of plots) plot.classList.remove("loading");
    draw();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    window.matchMedia("(max-width: 560px)").addEventListener("change", draw);
    window.addEventListener("beforeprint", draw);
  } catch (problem) {
    for (const plot of plots) {
      plot.classList.remove("loading");
      plot.textContent = `The plots need a browser from 2023 or later (${problem.message}).`;
    }
  }
}
