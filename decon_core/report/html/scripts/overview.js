// The overview: the opening, counts by class, and sections of text, figures and tables.

function showOverview(overview, run) {
  element("incomplete").textContent = overview.notice;
  element("incomplete").hidden = !overview.notice;
  showOpening(overview.opening);
  element("classes").append(classesTable(overview.classes));
  element("classes").after(made("p", { id: "classes-note", text: CLASSES })); // outside of what scrolls
  element("asked").textContent = overview.words.join(" ");
  const title = overview.corpus ? `Contamination report: ${overview.corpus}` : document.title;
  document.title = overview.notice ? `Incomplete: ${title}` : title;
  element("about").append(
    ...overview.about.map(([name, value]) => made("div", {}, made("dt", { text: name }), made("dd", { text: value }))),
  );
  element("notes").append(...overview.notes.map((text) => made("li", { text })));
  element("notes").hidden = !overview.notes.length;
  element("contents").append(
    ...overview.sections.map(({ key, title }) => made("a", { id: `to-${key}`, href: `#${key}`, text: title })),
  );
  element("sections").append(...overview.sections.map(section), ...emptySections(overview.empty));
  element("made").textContent = `Made by ${plain(run.made_by) || "an unknown program"}; digest of the report's inputs: ${plain(run.state) || "unknown"}.`;
}

const CLASSES =
  "No answer: only the question was found. Needs review: similar text that nobody has reviewed. Cannot be checked: no chosen detector can find the item.";
const CHANGE = "Change in the leak rate in percentage points; a dash if the settings or the benchmark also changed, or if a scan is incomplete";

function showOpening({ tone, verdict, ranked, since, left_out, next }) {
  element("summary").textContent = verdict.replaceAll(" %", "\u00a0%");
  element("summary").className = `is-${tone}`;
  const highest = Math.max(...ranked.map(({ high }) => high ?? 0));
  const most = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8].find((end) => end >= highest) ?? 1;
  const heads = ["Benchmark", `Leak rate with 95 % interval (full bar: ${Math.round(100 * most)} %)`, "Leaked", ...(since ? [`Since ${since}`] : []), "Leaks from", "No answer, to review"];
  const rows = ranked.map((row) =>
    made("tr", {},
      made("th", { scope: "row" }, made("a", { href: textsHash(row.filter), text: row.benchmark })),
      made("td", {}, rateBar(row, most)),
      made("td", { class: "is-share", text: row.rate === null ? "–" : percent(row.rate) }),
      made("td", { class: "leaked", text: row.leaked }),
      ...(since ? [made("td", { class: "change", title: CHANGE, text: row.change })] : []),
      made("td", { class: "source", text: row.source }),
      made("td", { class: "open", text: counted(row.open) }),
    ),
  );
  const table = made("table", { id: "ranked" }, made("thead", {}, made("tr", {}, ...heads.map((text, at) => made("th", { scope: "col", colspan: at === 1 ? 2 : null, text })))), made("tbody", {}, ...rows));
  const steps = next.map((step) => made("li", {}, ...nextStep(step)));
  if (rows.length) element("opening").append(made("div", { class: "scrolls", role: "region", tabindex: "0", "aria-label": "Benchmarks by leak rate" }, table));
  if (left_out) element("opening").append(made("p", { class: "left-out" }, made("a", { href: "#rates", text: left_out })));
  element("opening").append(made("h2", { class: "next", text: "Next" }), made("ol", { class: "next" }, ...steps));
}

// A bar as long as the rate, and a line from one end of the interval to the other.
function rateBar({ rate, low, high }, most) {
  if (rate === null) return made("span", {});
  const at = (value) => `${(100 * value) / most}%`;
  const bar = made("span", { class: "bar", style: `width: ${at(rate)}` });
  const line = made("span", { class: "interval", style: `left: ${at(low)}; width: ${at(high - low)}` });
  return made("span", { class: "rate", role: "img", "aria-label": `${percent(rate)}, from ${percent(low)} to ${percent(high)}` }, bar, line);
}

function nextStep({ text, filter, command }) {
  const parts = filter ? [made("a", { href: textsHash(filter), text })] : [made("span", { text })];
  return command ? [...parts, ": ", made("code", { text: command })] : parts;
}

// All items, and all documents, by class: each line adds up.
function classesTable({ heads, rows }) {
  const head = made("tr", {}, ...heads.map((text) => made("th", { scope: "col", text })));
  const body = rows.map(([name, ...numbers]) =>
    made("tr", {}, made("th", { scope: "row", text: name }), ...numbers.map((text) => made("td", { text }))),
  );
  return made("table", { "aria-describedby": "classes-note" }, made("thead", {}, head), made("tbody", {}, ...body));
}

// What has nothing to show: a line each.
function emptySections(sections) {
  if (!sections.length) return [];
  const lines = sections.map(({ key, title, words }) =>
    made("li", { id: key }, made("b", { text: `${title}: ` }), made("span", { text: words.join(" ") })),
  );
  const node = made("section", { id: "empty", "aria-labelledby": "empty-title" });
  node.append(made("h2", { id: "empty-title", text: "Nothing to show" }), made("ul", { class: "empty" }, ...lines));
  return [node];
}

function section({ key, title, words, choices, tables }) {
  const node = made("section", { id: key, "aria-labelledby": `${key}-title` });
  node.append(made("h2", { id: `${key}-title`, text: title }));
  if (words.length) node.append(made("p", { text: words.join(" ") }));
  if (choices.length) node.append(...figures(choices, key, title));
  node.append(...tables.filter(({ rows }) => rows.length).map((table) => tableOf(table, key, title)));
  return node;
}

function figures(choices, key, title) {
  const place = made("div", { class: "figures" });
  const show = (choice) => {
    place.querySelectorAll(".chart").forEach(forget);
    place.replaceChildren(...choice.charts.map((chart) => figure(chart, choice.charts.length > 1)));
  };
  show(choices[0]);
  if (choices.length === 1) return [place];
  const select = made("select", {}, ...choices.map(({ name }) => made("option", { value: name, text: name })));
  select.addEventListener("change", () => {
    show(choices[select.selectedIndex]);
    putSection(key);
  });
  return [made("label", { class: "choice", text: `${title} for ` }, select), place];
}

// The address of a section names the chosen view of its figures and its unfolded tables.
function putSection(key) {
  const node = element(key);
  const select = node.querySelector(".choice select");
  const unfolded = [...node.querySelectorAll("details[open]")].map((one) => one.dataset.table);
  const hash = address(key, { of: select?.selectedIndex ? select.value : "", open: unfolded.join(",") });
  putAddress(hash);
  element(`to-${key}`).href = hash;
}

function showLinkedSection(key, params) {
  const node = [...element("sections").querySelectorAll("section, .empty > li")].find(({ id }) => id === key);
  if (!node) return tellMissing(key && key !== "overview" ? [quoted("section", key)] : []);
  const missing = unknownSettings(params, ["of", "open"]);
  missing.push(...chooseView(node, params.get("of") ?? ""), ...unfold(node, params.get("open") ?? ""));
  if (element(`to-${key}`)) element(`to-${key}`).href = location.hash;
  node.scrollIntoView();
  tellMissing(missing);
}

function chooseView(node, name) {
  const select = node.querySelector(".choice select");
  const at = name ? [...(select?.options ?? [])].findIndex(({ value }) => value === name) : 0;
  if (at < 0) return [quoted("view", name)];
  if (select && select.selectedIndex !== at) {
    select.selectedIndex = at;
    select.dispatchEvent(new Event("change"));
  }
  return [];
}

function unfold(node, names) {
  const wanted = names.split(",").filter(Boolean);
  const tables = [...node.querySelectorAll("details")];
  for (const one of tables) one.open = wanted.includes(one.dataset.table);
  return wanted.filter((name) => !tables.some(({ dataset }) => dataset.table === name)).map((name) => quoted("table", name));
}

let nFigures = 0;

function figure(chart, isNamed) {
  const id = `figure-${(nFigures += 1)}`;
  const holder = chartHolder(chart, id);
  const node = made("figure", {}, holder, made("p", { id, class: "unseen", text: chart.description }));
  const points = pointsOf(chart);
  if (points.length) node.prepend(pointList(points, holder, chart, id));
  if (isNamed) node.prepend(made("figcaption", { text: chart.title }));
  return node;
}

function tableOf({ name, title, columns, rows, opens, is_folded }, key, of) {
  const table = made("table");
  const heads = columns.map(({ name, kind }) => made("th", { scope: "col", class: `is-${kind}`, text: name }));
  table.append(made("thead", {}, made("tr", {}, ...heads)));
  table.append(
    made("tbody", {}, ...rows.map((row, number) => made("tr", {}, ...row.map((value, at) => cell(value, columns[at], at === 0 && opens[number]))))),
  );
  const save = made("button", { type: "button", class: "csv", "aria-label": `Save as CSV: ${of}, ${title}`, text: "Save as CSV" });
  save.addEventListener("click", () => saveCsv(fileName(key, { table: name }), columns.map((column) => column.name), rows.map(csvLine)));
  const frame = made("div", { class: "scrolls", role: "region", tabindex: "0", "aria-label": title === of ? title : `${of}: ${title}` }, table);
  if (is_folded) {
    const summary = made("summary", { text: title });
    summary.addEventListener("click", () => setTimeout(() => putSection(key))); // once it is unfolded
    return made("details", { "data-table": name }, summary, frame, save);
  }
  table.prepend(made("caption", { text: title }));
  return made("div", {}, frame, save);
}

function cell(value, { kind }, filter) {
  const text = cellText(value, kind);
  const node = made("td", { class: `is-${kind}` });
  if (filter) node.append(made("a", { href: textsHash(filter), text }));
  else node.textContent = text;
  return node;
}

function cellText(value, kind) {
  if (value == null || value === "") return "–";
  if (kind === "number") return counted(value);
  if (kind === "share") return percent(value);
  if (kind === "score") return value.toFixed(2);
  return value;
}
