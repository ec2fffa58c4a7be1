// Names, filter, order and search of the matched texts.

let columns = null;
let searched = null; // by number: whether texts or ids contain the search words

const FILTERS = ["q", "outcome", "kind", "benchmark", "split", "source", "detector", "verdict", "least", "sort"];
const ITEM = "instance_index";

const named = (name, number) => columns.names[name]?.values[columns.names[name].at[number]] ?? null;
const detectorsOf = (number) => (named("detectors", number) ?? "").split(", ");
const splitName = (number) => [named("benchmark", number), named("split", number)].map(plain).join(" · ");
const itemIndex = (number) => ` · ${plain(columns.plain.instance_index[number])}`;
const itemName = (number) => splitName(number) + itemIndex(number);

// A text without the answer, or one to review, is neither a leak nor a near miss. Nor is one of a detector
// whose score is no proof if other words make the item a leak in the document.
function outcomeOf(number) {
  if (columns.is_leak[number]) return "leak";
  if (columns.is_no_answer[number]) return "no-answer";
  if (columns.needs_review[number]) return "review";
  return columns.is_by_score[number] && !columns.plain.verdict[number] ? "also" : "near";
}
const OUTCOMES = { leak: "leak", "no-answer": "no answer", review: "needs review", also: "item found by another match", near: "near miss" };

// Filter -------------------------------------------------------------------------------------------

let itemFilter = "";

function fillFilters() {
  const detectors = new Set(columns.names.detectors.values.flatMap((names) => names.split(", ")));
  fillOptions("kind", columns.names.kind.values);
  fillOptions("benchmark", [...new Set(columns.names.benchmarks.values.flatMap((names) => names.split(", ")))].sort());
  fillOptions("split", columns.names.split.values);
  fillOptions("source", columns.names.source.values);
  fillOptions("detector", [...detectors].sort());
  fillOptions("verdict", [...Object.values(VERDICTS), "any", "none yet"]);
}

const textFilter = filterForm("", FILTERS);
const filterNow = () => ({ ...textFilter.now(), [ITEM]: itemFilter });

// -1 is the place of null.
const NOWHERE = -2;
function placeOf(values, value) {
  const at = values.indexOf(value);
  return at < 0 ? NOWHERE : at;
}

function passes(filter) {
  const place = (name, value) => (value ? placeOf(columns.names[name].values, value) : null);
  const [split, source, kind] = ["split", "source", "kind"].map((name) => place(name, filter[name]));
  const { benchmarks: ofBenchmarks, split: ofSplit, source: ofSource, kind: ofKind, detectors: ofDetectors } = columns.names;
  const including = (values, name) => (name ? values.map((names) => names?.split(", ").includes(name)) : null);
  const hasBenchmark = including(ofBenchmarks.values, filter.benchmark);
  const hasDetector = including(ofDetectors.values, filter.detector);
  const least = filter.least ? Number(filter.least) : null;
  const item = filter[ITEM] ? Number(filter[ITEM]) : null;
  return (number) =>
    (hasBenchmark === null || hasBenchmark[ofBenchmarks.at[number]]) &&
    (split === null || ofSplit.at[number] === split) &&
    (source === null || ofSource.at[number] === source) &&
    (kind === null || ofKind.at[number] === kind) &&
    (hasDetector === null || hasDetector[ofDetectors.at[number]]) &&
    (!filter.outcome || outcomeOf(number) === filter.outcome) &&
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

function numbersBy(order) {
  if (!sorted.has(order)) {
    const all = Array.from({ length: columns.n }, (_, number) => number);
    const by = COMPARED[order];
    sorted.set(order, by ? all.sort((a, b) => by(a, b) || a - b) : all);
  }
  return sorted.get(order);
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

// The open matched text stays open if it passes the filter.
function applyFilter() {
  const open = order[chosen];
  const filter = filterNow();
  order = numbersBy(filter.sort).filter(passes(filter));
  chosen = order.indexOf(open);
  tellFound(filter);
  drawList();
}

function tellFound(filter) {
  const rest = columns.n < columns.n_all ? `; the report has ${counted(columns.n_all)}, this page only the first ${counted(columns.n)}` : "";
  element("n-found").textContent = `${counted(order.length)} of ${counted(columns.n)} texts${rest}`;
  const chip = element("item-chip");
  chip.hidden = !filter[ITEM];
  chip.textContent = `row ${plain(filter[ITEM])} ✕`;
  chip.setAttribute("aria-label", `Remove the filter on row ${plain(filter[ITEM])}`);
}

// Search -------------------------------------------------------------------------------------------

let search = 0;
let searchedFor = "";

// Search ids first, then inflate and search texts chunk by chunk, with hits shown as they are found.
// Return false if another search has started in the meantime.
async function runSearch(words) {
  const own = ++search;
  searchedFor = words;
  element("csv").disabled = Boolean(words); // until all that matches is found
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
  element("csv").disabled = false;
  applyFilter();
  return true;
}

const idTexts = [];
function idsOf(number) {
  idTexts[number] ??= [
    itemName(number),
    named("source", number),
    named("shard_name", number),
    ...["text_id", "fingerprint", "doc_id", "verdict_note"].map((name) => columns.plain[name][number]),
    columns.head[number],
  ].join("\n").toLowerCase();
  return idTexts[number];
}

async function searchTexts(needle, isWanted) {
  const progress = element("searching");
  const escaped = JSON.stringify(needle).slice(1, -1);
  await wholeFile;
  const n = Math.ceil(columns.n / columns.texts_per_chunk);
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
    if ([...row.slice(0, 4), ...ids].some((text) => text?.includes(needle))) searched[chunk * columns.texts_per_chunk + at] = 1;
  });
}
