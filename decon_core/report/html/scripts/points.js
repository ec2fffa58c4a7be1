// The points of a figure by keyboard: one is current, read aloud, and shown as under the mouse.

// What a point says: its own text, or the name of its row and the template of its trace.
function pointText({ hovertext, hovertemplate, x, y }, at, rowNames) {
  if (hovertext) return lined(hovertext[at]);
  const row = rowNames ? `${lined(rowNames[y[at]])}, ` : "";
  const values = { x: x[at], y: y[at] };
  const text = hovertemplate
    .replace("<extra></extra>", "")
    .replace(/<extra>(.*)<\/extra>/, ": $1")
    .replace(/%\{([xy])(:[^}]*)?\}/g, (_, axis, format) => (format === ":.2f" ? values[axis].toFixed(2) : plainNumber(values[axis])));
  return row + text;
}

const plainNumber = (n) => (Number.isInteger(n) ? counted(n) : String(n));

// Labels have line breaks and escaped signs.
function lined(label) {
  const text = label.replaceAll("<br>", ", ").replaceAll("&lt;", "<").replaceAll("&gt;", ">");
  return text.replaceAll("&amp;", "&");
}

// Bars, steps and squares without height are not drawn, so they are no points.
function pointsOf({ data, layout }) {
  return data.flatMap((trace, curveNumber) => {
    if (trace.type === "sankey" || trace.hoverinfo === "skip") return [];
    if (trace.type === "heatmap") return squaresOf(trace, curveNumber);
    const heights = trace.orientation === "h" ? trace.x : trace.y;
    return trace.x.flatMap((_, at) =>
      trace.type === "bar" && !heights[at]
        ? []
        : [{ place: { curveNumber, pointNumber: at }, text: pointText(trace, at, layout.yaxis?.ticktext), values: trace.customdata?.[at] }],
    );
  });
}

// A heat map takes values of its axes where others take the number of a point.
function squaresOf(trace, curveNumber) {
  const square = (y, x) => ({
    place: { curveNumber, xval: trace.x[x], yval: trace.y[y] },
    text: lined(trace.hovertext[y][x]),
    values: trace.customdata[y][x],
  });
  return trace.z.flatMap((row, y) => row.flatMap((value, x) => (value ? [square(y, x)] : [])));
}

// A list of which only the current option is in the page: a figure may have thousands of points.
function pointList(points, holder, chart, id) {
  const opens = chart.opens.length > 0;
  const name = `${chart.title}, ${points.length === 1 ? "1 point" : `${counted(points.length)} points`}`;
  const list = made("div", {
    class: "point-list unseen",
    role: "listbox",
    tabindex: "0",
    "aria-label": opens ? `${name}: arrow keys choose a point, Enter shows its texts` : `${name}: arrow keys choose a point`,
  });
  let current = 0;
  const put = () => {
    const option = made("div", {
      id: `${id}-point-${current}`,
      role: "option",
      "aria-selected": "true",
      "aria-posinset": current + 1,
      "aria-setsize": points.length,
      text: points[current].text,
    });
    list.replaceChildren(option);
    list.setAttribute("aria-activedescendant", option.id);
  };
  const show = async () => {
    await draw(holder, chart);
    if (document.activeElement === list) showPoint(holder, points[current]);
  };
  const moves = {
    ArrowRight: () => current + 1,
    ArrowDown: () => current + 1,
    ArrowLeft: () => current - 1,
    ArrowUp: () => current - 1,
    PageDown: () => current + 10,
    PageUp: () => current - 10,
    Home: () => 0,
    End: () => points.length - 1,
  };
  put();
  list.addEventListener("focus", () => show().catch(tellTrouble));
  list.addEventListener("blur", () => hidePoint(holder));
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && opens) openFromChart(chart.opens, points[current].values);
    else if (event.key === "Escape") hidePoint(holder);
    else if (moves[event.key]) {
      current = Math.max(0, Math.min(points.length - 1, moves[event.key]()));
      put();
      showPoint(holder, points[current]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}

// Plotly puts off a label that follows another one within 50 ms, and forgets it if a further figure is
// drawn before. So the label waits here until Plotly shows it at once.
const LABEL_DELAY_MS = 60;
let labelTimer;
let labelled; // the holder and the place of the next label; a held key moves on before it is shown

function showPoint(holder, { place }) {
  labelled = { holder, place };
  labelTimer ??= setTimeout(showLabel, LABEL_DELAY_MS);
}

function showLabel() {
  labelTimer = undefined;
  const { holder, place } = labelled;
  if (!drawn.has(holder)) return;
  window.Plotly.Fx.hover(holder, [place]);
  holder.querySelector(".hoverlayer .hovertext")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function hidePoint(holder) {
  clearTimeout(labelTimer);
  labelTimer = undefined;
  if (drawn.has(holder)) window.Plotly.Fx.unhover(holder);
}
