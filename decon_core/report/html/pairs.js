// The list of pairs, and the open pair.

let columns = null;
let order = []; // the filtered pairs, sorted
let chosen = -1; // place in `order`
let searched = null; // by number: whether texts or ids contain the search words

const FILTERS = ["q", "kind", "benchmark", "split", "source", "detector", "verdict", "least", "sort"];
const ITEM = "instance_index";
const ROW_PIXELS = 104;
const SPARE_ROWS = 8;

const named = (name, number) => columns.names[name]?.values[columns.names[name].at[number]] ?? null;
const detectorsOf = (number) => (named("detectors", number) ?? "").split(", ");
const itemName = (number) =>
  [named("benchmark", number), named("split", number), columns.plain.instance_index[number]].map(plain).join(" · ");

// Question-only pairs and candidates are neither leaks nor near misses. Nor is a pair of a detector whose
// score is no proof if other words make the item a leak in the document.
function kindOf(number) {
  if (columns.is_leak[number]) return "leak";
  if (columns.is_question_only[number]) return "question";
  if (columns.is_candidate[number]) return "candidate";
  return columns.is_by_score[number] && !columns.plain.verdict[number] ? "also" : "near";
}
const KINDS = { leak: "leak", question: "question-only", candidate: "candidate", also: "found by other words, too", near: "near miss" };

function pairsHash(filter) {
  const wanted = Object.entries(filter).filter(([, value]) => value !== "" && value != null);
  return wanted.length ? `#pairs?${new URLSearchParams(wanted)}` : "#pairs";
}

// Filter -------------------------------------------------------------------------------------------

let itemFilter = "";

function fillFilters() {
  const detectors = new Set(columns.names.detectors.values.flatMap((names) => names.split(", ")));
  options("benchmark", columns.names.benchmark.values);
  options("split", columns.names.split.values);
  options("source", columns.names.source.values);
  options("detector", [...detectors].sort());
  options("verdict", [...Object.values(VERDICTS), "any", "none yet"]);
}

function options(id, values) {
  const all = made("option", { value: "", text: "all" });
  element(id).replaceChildren(all, ...values.map((value) => made("option", { value, text: plain(value) })));
}

function filterNow() {
  const filter = Object.fromEntries(FILTERS.map((id) => [id, element(id).value]));
  filter.q = filter.q.trim();
  return { ...filter, [ITEM]: itemFilter };
}

function putFilter(filter) {
  for (const id of FILTERS) {
    const value = filter.get(id) ?? "";
    const node = element(id);
    node.value = value;
    if (node.value !== value) node.value = ""; // a link with a value that this report does not have
  }
  itemFilter = filter.get(ITEM) ?? "";
}

function passes(filter) {
  const place = (name, value) => (value ? columns.names[name].values.indexOf(value) : null);
  const [benchmark, split, source] = ["benchmark", "split", "source"].map((name) => place(name, filter[name]));
  const { benchmark: ofBenchmark, split: ofSplit, source: ofSource, detectors: ofDetectors } = columns.names;
  const hasDetector = filter.detector ? ofDetectors.values.map((names) => names.split(", ").includes(filter.detector)) : null;
  const least = filter.least ? Number(filter.least) : null;
  const item = filter[ITEM] ? Number(filter[ITEM]) : null;
  return (number) =>
    (benchmark === null || ofBenchmark.at[number] === benchmark) &&
    (split === null || ofSplit.at[number] === split) &&
    (source === null || ofSource.at[number] === source) &&
    (hasDetector === null || hasDetector[ofDetectors.at[number]]) &&
    (!filter.kind || kindOf(number) === filter.kind) &&
    (least === null || columns.scores.score[number] >= least) &&
    (item === null || columns.plain.instance_index[number] === item) &&
    (!filter.verdict || hasVerdict(number, filter.verdict)) &&
    (searched === null || searched[number]);
}

function hasVerdict(number, wanted) {
  const verdict = verdictOf(number);
  if (wanted === "any") return verdict !== null;
  return wanted === "none yet" ? verdict === null : verdict === wanted;
}

// Sorted once per order: filtering keeps it.
const sorted = new Map();

function numbersBy(kind) {
  if (!sorted.has(kind)) {
    const all = Array.from({ length: columns.n }, (_, number) => number);
    const by = COMPARED[kind];
    sorted.set(kind, by ? all.sort((a, b) => by(a, b) || a - b) : all);
  }
  return sorted.get(kind);
}

const COMPARED = {
  score: (a, b) => columns.scores.score[b] - columns.scores.score[a],
  documents: (a, b) => columns.plain.n_documents[b] - columns.plain.n_documents[a],
  doubt: (a, b) => (columns.doubt[a] ?? 2) - (columns.doubt[b] ?? 2),
  benchmark: (a, b) =>
    columns.names.benchmark.at[a] - columns.names.benchmark.at[b] ||
    columns.names.split.at[a] - columns.names.split.at[b] ||
    columns.plain.instance_index[a] - columns.plain.instance_index[b],
};

// The open pair stays open if it passes the filter.
function applyFilter() {
  const open = order[chosen];
  const filter = filterNow();
  order = numbersBy(filter.sort).filter(passes(filter));
  chosen = order.indexOf(open);
  tellFound(filter);
  drawList();
}

function tellFound(filter) {
  const rest = columns.n < columns.n_all ? `; the report has ${counted(columns.n_all)}, this page the first ${counted(columns.n)}` : "";
  element("n-found").textContent = `${counted(order.length)} of ${counted(columns.n)} pairs${rest}`;
  const chip = element("item-chip");
  chip.hidden = !filter[ITEM];
  chip.textContent = `row ${plain(filter[ITEM])} ✕`;
  chip.setAttribute("aria-label", `Stop showing only row ${plain(filter[ITEM])}`);
}

// Search -------------------------------------------------------------------------------------------

let search = 0;
let searchedFor = "";

// Search ids first, then inflate and search texts chunk by chunk, with hits shown as they are found.
// Return false if another search has started in the meantime.
async function runSearch(words) {
  const own = ++search;
  searchedFor = words;
  if (!words) {
    searched = null;
    element("searching").hidden = true;
    applyFilter();
    return true;
  }
  const needle = words.toLowerCase();
  searched = new Uint8Array(columns.n);
  for (let number = 0; number < columns.n; number++) searched[number] = Number(idsOf(number).includes(needle));
  applyFilter();
  if (!(await searchTexts(needle, () => own === search))) return false;
  element("searching").hidden = true;
  applyFilter();
  return true;
}

const idTexts = [];
function idsOf(number) {
  idTexts[number] ??= [
    itemName(number),
    named("source", number),
    named("shard_name", number),
    ...["pair", "fingerprint", "doc_id", "verdict_note"].map((name) => columns.plain[name][number]),
    columns.head[number],
  ].join("\n").toLowerCase();
  return idTexts[number];
}

async function searchTexts(needle, isWanted) {
  const progress = element("searching");
  const escaped = JSON.stringify(needle).slice(1, -1);
  await wholeFile;
  const n = Math.ceil(columns.n / columns.pairs_per_chunk);
  progress.hidden = n < 3;
  let shownAt = performance.now();
  for (let chunk = 0; chunk < n; chunk++) {
    const packed = (await inflated(`texts-${chunk}`)).toLowerCase();
    if (!isWanted()) return false;
    if (packed.includes(escaped)) markHits(chunk, JSON.parse(packed), needle);
    progress.value = (chunk + 1) / n;
    if (performance.now() - shownAt > 300) {
      applyFilter();
      shownAt = performance.now();
    }
  }
  return isWanted();
}

function markHits(chunk, rows, needle) {
  rows.forEach((row, at) => {
    const ids = row[PLACES_AT].flatMap(([, shard, , id]) => [shard, id]);
    if ([...row.slice(0, 4), ...ids].some((text) => text?.includes(needle))) searched[chunk * columns.pairs_per_chunk + at] = 1;
  });
}

// List ---------------------------------------------------------------------------------------------

const drawnRows = new Map(); // by place in `order`

function drawList() {
  drawnRows.clear();
  element("rows").replaceChildren();
  element("rows").style.height = `${order.length * ROW_PIXELS}px`;
  if (!order.length) element("rows").append(made("p", { class: "empty", text: columns.n ? "No pair matches." : "Nothing was found." }));
  drawVisible();
}

// Only visible rows are in the page, however long the list is.
function drawVisible() {
  const list = element("list");
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_PIXELS) - SPARE_ROWS);
  const stop = Math.min(order.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_PIXELS) + SPARE_ROWS);
  for (const [place, node] of drawnRows) {
    if (place < first || place >= stop) {
      node.remove();
      drawnRows.delete(place);
    }
  }
  for (let place = first; place < stop; place++) {
    if (drawnRows.has(place)) continue;
    const node = listRow(place);
    drawnRows.set(place, node);
    element("rows").append(node);
  }
  markChosen();
}

function listRow(place) {
  const number = order[place];
  const n = columns.plain.n_documents[number];
  const verdict = verdictOf(number);
  const node = made(
    "div",
    { class: "row", role: "option", id: `pair-${place}`, "aria-posinset": place + 1, "aria-setsize": order.length },
    made("span", { class: `score is-${kindOf(number)}`, text: columns.scores.score[number].toFixed(2) }),
    made("span", { class: "item", text: itemName(number) }),
    made("span", { class: "where", text: `${plain(named("source", number))}${n > 1 ? ` × ${counted(n)}` : ""}` }),
    made("span", { class: "head", dir: "auto", text: columns.head[number] || "–" }),
  );
  for (const child of node.children) child.title = child.textContent;
  const kind = kindOf(number);
  if (["question", "candidate"].includes(kind) && !verdict) node.append(made("span", { class: "kind", text: KINDS[kind] }));
  if (verdict) node.append(made("span", { class: "verdict", text: plain(verdict) }));
  node.style.top = `${place * ROW_PIXELS}px`;
  node.addEventListener("click", () => {
    choose(place);
    openDetail();
  });
  return node;
}

function markChosen() {
  for (const [place, node] of drawnRows) node.setAttribute("aria-selected", String(place === chosen));
  const list = element("list");
  if (drawnRows.has(chosen)) list.setAttribute("aria-activedescendant", `pair-${chosen}`);
  else list.removeAttribute("aria-activedescendant");
}

function scrollTo(place) {
  const list = element("list");
  const top = place * ROW_PIXELS;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW_PIXELS > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_PIXELS - list.clientHeight;
}

function choose(place) {
  if (!order.length) return;
  chosen = Math.max(0, Math.min(place, order.length - 1));
  scrollTo(chosen);
  drawVisible();
  showDetail(order[chosen]).catch(tellTrouble);
  putHash();
}

const step = (by) => choose(chosen < 0 ? 0 : chosen + by);

// On narrow screens, an open pair covers the list.
function openDetail() {
  if (chosen < 0) choose(0);
  document.body.classList.add("is-open");
  element("detail").focus({ preventScroll: true });
}

function closeDetail() {
  document.body.classList.remove("is-open");
  element("list").focus({ preventScroll: true });
}

// One pair -----------------------------------------------------------------------------------------

let showing = -1;

// Everything but the texts is drawn at once, so that no key acts on the previous pair; the texts
// follow when they are inflated.
async function showDetail(number) {
  showing = number;
  const detail = element("detail");
  const texts = made("div", { class: "texts" });
  detail.replaceChildren(detailHead(number), verdictBar(number), facts(number), texts);
  detail.scrollTop = 0;
  detail.dataset.pair = columns.plain.pair[number];
  const chunk = await chunkOf(Math.floor(number / columns.pairs_per_chunk));
  const own = chunk[number % columns.pairs_per_chunk];
  texts.append(...placesOf(number, own), legend(own), sides(number, own));
}

// The documents that contain the pair; if there are too many, the first ones and a query for all.
function placesOf(number, texts) {
  const n = columns.plain.n_documents[number];
  if (!(n > 1)) return [];
  const own = texts[PLACES_AT];
  const items = own.map(([source, shard, row, id]) =>
    made(
      "li",
      {},
      `${plain(source)} · ${plain(shard)}${row === null ? "" : ` · row ${counted(row)}`}`,
      ...(id === null ? [] : [" ", made("code", { text: plain(id) })]),
    ),
  );
  const node = made("details", { class: "places", open: n <= OPEN_PLACES }, made("summary", { text: `In ${counted(n)} documents` }), made("ol", {}, ...items));
  if (own.length < n) {
    const query = `FROM pair_documents WHERE pair = '${plain(columns.plain.pair[number])}'`;
    node.append(made("p", {}, `This page lists ${counted(own.length)} of them; ${counted(n - own.length)} more are in the report: `, made("code", { text: `decon-assets report --query "${query}"` })));
  }
  return [node];
}

function showNothing() {
  showing = -1;
  const words = order.length ? "Choose a pair: click it, or press j and k." : "No pair to show.";
  element("detail").replaceChildren(made("p", { class: "empty", text: words }));
  delete element("detail").dataset.pair;
}

function detailHead(number) {
  const button = (text, name, act) => {
    const node = made("button", { type: "button", "aria-label": name, title: name, text });
    node.addEventListener("click", act);
    return node;
  };
  const back = button("←", "Back to the list (Esc)", closeDetail);
  back.className = "back";
  return made(
    "header",
    { class: "detail-head" },
    back,
    made("h2", { text: itemName(number) }),
    button("↑", "Previous pair (k)", () => step(-1)),
    button("↓", "Next pair (j)", () => step(1)),
  );
}

function verdictBar(number) {
  const bar = made("div", { class: "verdicts", role: "group", "aria-label": "Your verdict" });
  const now = verdictOf(number);
  for (const [key, verdict] of Object.entries(VERDICTS)) {
    const node = made("button", { type: "button", "aria-pressed": String(verdict === now), "aria-keyshortcuts": key, "data-verdict": verdict });
    node.append(made("kbd", { text: key }), ` ${verdict}`);
    node.addEventListener("click", () => judgeShown(verdict));
    bar.append(node);
  }
  const note = made("input", { id: "note", type: "text", placeholder: "note", "aria-label": "Note", "aria-keyshortcuts": "n", maxlength: "2000", dir: "auto" });
  note.value = noteOf(number);
  note.addEventListener("change", () => {
    say(number, { note: note.value });
    refreshRow(number);
  });
  bar.append(note);
  const by = columns.plain.verdict_by[number];
  if (columns.plain.verdict[number]) {
    const at = plain(columns.plain.verdict_at[number] ?? "").slice(0, 10);
    bar.append(made("small", { text: `in the report: ${plain(columns.plain.verdict[number])}${by ? `, ${plain(by)}` : ""}${at ? `, ${at}` : ""}` }));
  }
  return bar;
}

function judgeShown(verdict) {
  if (showing < 0) return;
  const number = showing;
  judge(number, verdict);
  tell(`${itemName(number)}: ${verdictOf(number) ?? "no verdict"}`);
  const hadFocus = document.activeElement?.dataset?.verdict;
  element("detail").querySelector(".verdicts").replaceWith(verdictBar(number));
  if (hadFocus) element("detail").querySelector(`[data-verdict="${hadFocus}"]`).focus();
  refreshRow(number);
}

function refreshRow(number) {
  const place = order.indexOf(number);
  const old = drawnRows.get(place);
  if (!old) return;
  const node = listRow(place);
  old.replaceWith(node);
  drawnRows.set(place, node);
  markChosen();
}

function facts(number) {
  const list = made("dl", { class: "facts" });
  const put = (name, ...values) => {
    if (values.some((value) => value !== null && value !== "")) list.append(made("div", {}, made("dt", { text: name }), made("dd", {}, ...values)));
  };
  const { plain: own, scores } = columns;
  const kind = kindOf(number);
  const isAsScored = ["candidate", "also"].includes(kind) || columns.is_leak[number] === columns.is_by_score[number];
  put("score", `${scores.score[number].toFixed(3)} · ${KINDS[kind]}${isAsScored ? "" : ", by a verdict"}`);
  put("detector", detectorsOf(number).map((detector) => detectorName(detector, named("benchmark", number))).join(", "));
  for (const part of PARTS) {
    const share = scores[`${part}_overlap`][number];
    if (share !== null) put(`${part} found`, meter(share, part), ` ${percent(share)}`);
  }
  if (kind === "question") put("question-only", "the question was found without its answer: no leak, and not clean");
  if (kind === "candidate") put("candidate", "the score of this detector is no proof: it counts as a leak by a verdict only");
  put("probability of a duplicate", plain(own.probability[number]));
  // Folded: a reviewer should decide before looking.
  if (own.judgement[number]) put("judged", made("details", {}, made("summary", { text: "by a model or a file" }), made("span", { text: plain(own.judgement[number]) })));
  put("documents", counted(own.n_documents[number]));
  put("source", plain(named("source", number)));
  put("shard", plain(named("shard_name", number)));
  put("row", own.row[number] === null ? null : counted(own.row[number]));
  put("id", plain(own.doc_id[number]));
  put("part", plain(named("text_part", number)));
  put("subset", plain(named("config", number)));
  put("pair", made("code", { text: plain(own.pair[number]) }));
  return list;
}

function detectorName(detector, benchmark) {
  const threshold = columns.own_thresholds[detector]?.[benchmark] ?? columns.thresholds[detector];
  return threshold == null ? plain(detector) : `${plain(detector)} (threshold ${threshold})`;
}

function meter(share, part) {
  const node = made("span", { class: `meter of-${part}`, "aria-hidden": "true" }, made("i"));
  node.firstChild.style.width = `${Math.min(100, 100 * share)}%`;
  return node;
}

const OPEN_PLACES = 60; // a longer list is folded
const TEXT_NAMES = ["question", "answer", "passage", "text"];

// A row of a chunk: question, answer, passage and text, then the marks of each, then which words and
// numbers agree, where their order does not count, then documents.
const textOf = (texts, name) => texts[TEXT_NAMES.indexOf(name)];
const AGREEMENT_AT = 2 * TEXT_NAMES.length; // after texts and marks
const PLACES_AT = AGREEMENT_AT + 1;
const marksOf = (texts, name) => texts[TEXT_NAMES.length + TEXT_NAMES.indexOf(name)];

function legend(texts) {
  const used = new Set(TEXT_NAMES.flatMap((name) => marksOf(texts, name).filter((_, at) => at % 3 === 2)));
  const marks = PARTS.filter((_, number) => used.has(number)).map((name) => made("mark", { class: `of-${name}`, text: name }));
  if (!marks.length) return made("p", { class: "legend", text: "No shared characters are marked." });
  const agreement = texts[AGREEMENT_AT];
  const parts = agreement ? agreement.split("; ").map((part) => made("span", { class: "agreement", text: plain(part) })) : [];
  return made("p", { class: "legend" }, "Shared: ", ...marks.flatMap((mark) => [mark, " "]), ...parts);
}

function sides(number, texts) {
  return made("div", { class: "sides" }, itemSide(texts), documentSide(number, texts));
}

function itemSide(texts) {
  const side = made("section", { "aria-label": "Benchmark item" }, made("h3", { text: "Benchmark item" }));
  for (const name of ["passage", "question", "answer"]) {
    if (textOf(texts, name) === null) continue;
    side.append(made("h4", { text: name }), markedText(textOf(texts, name), marksOf(texts, name)));
  }
  if (!side.querySelector(".text")) side.append(made("p", { class: "empty", text: "Its text is not in this report." }));
  return side;
}

function documentSide(number, texts) {
  const side = made("section", { "aria-label": "Training document" }, made("h3", { text: "Training document" }));
  const text = textOf(texts, "text");
  if (text === null) side.append(made("p", { class: "empty", text: whyNoText(number) }));
  else {
    const start = columns.plain.text_start[number];
    if (start) side.append(made("h4", { text: `from character ${counted(start)}` }));
    side.append(markedText(text, marksOf(texts, "text")));
  }
  return side;
}

function whyNoText(number) {
  if (!columns.has_snippets) return "Snippets are off: no text of the training data is in this file. See shard and row.";
  const why = named("why_no_text", number);
  return why ? `No text: ${plain(why)}.` : "Its text was not kept. See shard and row.";
}
