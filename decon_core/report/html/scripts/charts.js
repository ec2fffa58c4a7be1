// Figures are drawn when they become visible, and again when the theme changes.

let library = null;
const drawn = new Map();

function charting() {
  library ??= (async () => {
    await wholeFile;
    const code = await inflated("charting");
    document.head.append(made("script", { text: code }));
    if (!window.Plotly) throw new Error("the chart library did not load");
    return window.Plotly;
  })();
  return library;
}

// Replace names of CSS variables by their colours, in colour properties only.
function coloured(value, key = "") {
  if (typeof value === "string") {
    const isColour = /color(scale)?$/.test(key) && value.startsWith("--c-");
    return isColour ? getComputedStyle(document.documentElement).getPropertyValue(value).trim() : value;
  }
  if (Array.isArray(value)) return value.map((one) => coloured(one, key));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, name)]));
  }
  return value;
}

function themed(layout, width) {
  const size = width < 520 ? 10 : 12;
  const axis = {
    automargin: true,
    fixedrange: true,
    gridcolor: "--c-rule",
    linecolor: "--c-rule",
    tickfont: { size },
  };
  return coloured({
    margin: { l: 12, r: 12, t: 12, b: 12, pad: 4 },
    font: { family: "system-ui, sans-serif", size, color: "--c-ink" },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: "--c-panel", bordercolor: "--c-soft", font: { color: "--c-ink" }, align: "left" },
    dragmode: false,
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  });
}

const SETTINGS = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };

// A4 or Letter without the margins of browsers, in CSS pixels.
const PAPER = { width: 680, height: 900 };
let isOnPaper = false;
const paperOf = new WeakMap(); // by holder: whether it was last drawn for paper

const paperWidth = (chart) => Math.max(PAPER.width, chart.least_width);

// A figure as wide as the screen would be cut off in print: it is drawn as wide as the sheet, and
// scaled down if it needs more width or is taller than a sheet.
function fit(holder, chart) {
  const scale = Math.min(1, PAPER.width / paperWidth(chart), PAPER.height / chart.layout.height);
  holder.style.width = isOnPaper ? `${paperWidth(chart)}px` : "";
  holder.style.zoom = isOnPaper ? scale : "";
}

// No await if the library is loaded: printing does not wait.
async function draw(holder, chart) {
  const Plotly = window.Plotly ?? (await charting());
  // Redrawing animates some figures; drawing from scratch does not.
  if (isOnPaper !== paperOf.get(holder)) forget(holder);
  paperOf.set(holder, isOnPaper);
  fit(holder, chart);
  const layout = themed({ ...chart.layout, ...(isOnPaper ? { width: paperWidth(chart), autosize: false } : {}) }, holder.clientWidth);
  await Plotly.react(holder, coloured(chart.data), layout, SETTINGS);
  if (!drawn.has(holder) && chart.opens.length) {
    holder.on("plotly_click", ({ points }) => openFromChart(chart.opens, points[0].customdata));
  }
  drawn.set(holder, chart);
}

function openFromChart(names, values) {
  if (!values) return;
  location.hash = textsHash(Object.fromEntries(names.map((name, at) => [name, values[at]])));
}

const inSight = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      inSight.unobserve(target);
      draw(target, target.chart).catch(tellTrouble);
    }
  },
  { rootMargin: "300px" },
);

// `described`: the id of the element with the sentences about the figure.
function chartHolder(chart, described) {
  const holder = made("div", { class: "chart", role: "img", "aria-label": chart.title, "aria-describedby": described });
  holder.style.minWidth = `${chart.least_width}px`;
  holder.style.height = `${chart.layout.height}px`;
  holder.chart = chart;
  inSight.observe(holder);
  return holder;
}

function forget(holder) {
  inSight.unobserve(holder);
  if (drawn.delete(holder)) window.Plotly.purge(holder);
}

function redrawForScreen() {
  isOnPaper = false;
  redrawCharts();
}

function redrawCharts() {
  for (const [holder, chart] of [...drawn]) draw(holder, chart).catch(tellTrouble);
}

// Draw all figures for print, also those that were never visible.
function drawForPaper() {
  isOnPaper = true;
  for (const holder of document.querySelectorAll(".chart")) draw(holder, holder.chart).catch(tellTrouble);
}
