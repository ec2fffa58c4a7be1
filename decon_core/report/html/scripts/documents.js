// The table of documents: each unfolds to its matched texts. Only the visible rows are in the page.

const DOCUMENT_FILTERS = ["q", "outcome", "benchmark", "source", "least", "sort"];
const LINE_PIXELS = 44;
const DOCUMENT = -1; // a line of the document itself; others are the place of one of its texts,
const NOT_LISTED = -2; // or tell how many texts the page does not have

let papers = null; // columns of the documents, once inflated
let lines = []; // [document, what of it]
let documentsShown = []; // the filtered documents, sorted
let chosenLine = -1;
const unfolded = new Set();
const documentFilter = filterForm("d-", DOCUMENT_FILTERS);
const documentList = longList(element("grid"), element("lines"), LINE_PIXELS, gridRow);

const ofDocument = (name, number) => papers.names[name].values[papers.names[name].at[number]] ?? null;
const nListed = (number) => papers.starts[number + 1] - papers.starts[number];
const textAt = (number, at) => papers.texts[papers.starts[number] + at];
const placeName = (source, shard, row) => [source, shard, row].map((part) => part ?? "").join("/");
const documentPlace = (number) => placeName(ofDocument("source", number), ofDocument("shard_name", number), papers.plain.row[number]);
const documentLink = (source, shard, row) => address("documents", { document: placeName(source, shard, row) });

let reading = null;

// Inflated when the table is opened for the first time.
function readDocuments() {
  reading ??= (async () => {
    element("d-found").textContent = "Reading the documents…";
    await wholeFile;
    papers = await dataOf("documents");
    fillOptions("d-benchmark", [...new Set(papers.names.benchmarks.values.flat())].sort());
    fillOptions("d-source", papers.names.source.values);
    element("d-csv").disabled = false;
  })();
  return reading;
}

// Link -----------------------------------------------------------------------------------------------

async function showDocuments(params) {
  await readDocuments();
  if (viewNow !== "documents") return;
  const missing = [...unknownSettings(params, [...DOCUMENT_FILTERS, "document", "of"]), ...documentFilter.put(params)];
  const linked = params.get("document") ?? "";
  const number = linked ? linkedDocument(linked, params.get("of")) : -1;
  if (linked && number < 0) {
    const first = papers.n < papers.n_all ? ` (this page has only the first ${counted(papers.n)} of ${counted(papers.n_all)} documents)` : "";
    missing.push(quoted("document", linked) + first);
  }
  if (number >= 0) unfolded.add(number);
  chosenLine = -1;
  filterDocuments();
  const line = lines.findIndex(([own]) => own === number);
  if (line >= 0) chooseLine(line);
  else element("to-documents").href = location.hash;
  tellMissing(missing, number >= 0 && line < 0 ? "A filter in this link hides the document." : "");
}

// A row of a shard that has changed may be another document: the fingerprint tells. A shard with the
// same fingerprint and another name has the same documents.
let documentPlaces = null;
function linkedDocument(place, shard) {
  if (!documentPlaces) {
    documentPlaces = new Map();
    for (let number = papers.n - 1; number >= 0; number--) {
      documentPlaces.set(documentPlace(number), number);
      documentPlaces.set(`${ofDocument("shard", number)}/${papers.plain.row[number] ?? ""}`, number);
    }
  }
  const number = documentPlaces.get(place) ?? -1;
  if (!shard || (number >= 0 && ofDocument("shard", number) === shard)) return number;
  return documentPlaces.get(`${shard}/${place.slice(place.lastIndexOf("/") + 1)}`) ?? -1;
}

function putDocumentsHash() {
  const number = lines[chosenLine]?.[0] ?? -1;
  const isOpen = unfolded.has(number);
  const own = isOpen ? { document: documentPlace(number), of: ofDocument("shard", number) } : {};
  const hash = address("documents", { ...documentFilter.now(), ...own });
  putAddress(hash);
  element("to-documents").href = hash;
}

// Filter and order -----------------------------------------------------------------------------------

const DOCUMENT_ORDERS = {
  texts: (a, b) => papers.plain.n_texts[b] - papers.plain.n_texts[a],
  score: (a, b) => papers.best_score[b] - papers.best_score[a],
  place: (a, b) =>
    papers.names.source.at[a] - papers.names.source.at[b] ||
    papers.names.shard_name.at[a] - papers.names.shard_name.at[b] ||
    papers.plain.row[a] - papers.plain.row[b],
};

function documentPasses({ q, outcome, benchmark, source, least }) {
  const { names, plain: own } = papers;
  const hasBenchmark = benchmark ? names.benchmarks.values.map((some) => some.includes(benchmark)) : null;
  const sourceAt = source ? placeOf(names.source.values, source) : null;
  const needle = q.toLowerCase();
  const has = (text) => text?.toLowerCase().includes(needle);
  const inShard = names.shard_name.values.map(has);
  const inSource = names.source.values.map(has);
  return (number) =>
    (hasBenchmark === null || hasBenchmark[names.benchmarks.at[number]]) &&
    (sourceAt === null || names.source.at[number] === sourceAt) &&
    (!outcome || ofDocument("outcome", number) === outcome) &&
    (!least || papers.best_score[number] >= Number(least)) &&
    (!q || inShard[names.shard_name.at[number]] || inSource[names.source.at[number]] || has(own.doc_id[number]));
}

function filterDocuments() {
  const filter = documentFilter.now();
  const all = Array.from({ length: papers.n }, (_, number) => number).filter(documentPasses(filter));
  const by = DOCUMENT_ORDERS[filter.sort];
  documentsShown = by ? all.sort((a, b) => by(a, b) || a - b) : all;
  const rest = papers.n < papers.n_all ? `; the report has ${counted(papers.n_all)}, this page only the first ${counted(papers.n)}` : "";
  element("d-found").textContent = `${counted(documentsShown.length)} of ${counted(papers.n)} documents${rest}`;
  drawDocuments();
}

// The chosen line stays chosen where it is still shown.
function drawDocuments() {
  const [chosenDocument, what] = lines[chosenLine] ?? [];
  lines = [];
  for (const number of documentsShown) {
    lines.push([number, DOCUMENT]);
    if (!unfolded.has(number)) continue;
    for (let at = 0; at < nListed(number); at++) lines.push([number, at]);
    if (nListed(number) < papers.plain.n_texts[number]) lines.push([number, NOT_LISTED]);
  }
  const find = (wanted) => lines.findIndex(([own, its]) => own === chosenDocument && its === wanted);
  chosenLine = chosenDocument === undefined ? -1 : find(what) >= 0 ? find(what) : find(DOCUMENT);
  element("grid").setAttribute("aria-rowcount", lines.length + 1);
  documentList.reset(lines.length);
  element("no-document").textContent = papers.n ? "No document matches." : "The report has no document with a match.";
  element("no-document").hidden = lines.length > 0;
  documentList.mark(chosenLine);
}

// Rows -----------------------------------------------------------------------------------------------

function gridRow(place) {
  const [number, what] = lines[place];
  const makers = { [DOCUMENT]: documentRow, [NOT_LISTED]: restRow };
  const node = (makers[what] ?? documentTextRow)(number, what);
  node.id = `line-${place}`;
  node.setAttribute("aria-rowindex", place + 2); // after the row of headings
  node.addEventListener("click", (event) => {
    if (event.target.closest("a")) return;
    chooseLine(place);
    openLine();
  });
  return node;
}

function gridCell(column, options, ...children) {
  return made("span", { role: "gridcell", "aria-colindex": column, title: options.text, ...options }, ...children);
}

function documentRow(number) {
  const isOpen = unfolded.has(number);
  const { row, doc_id, n_texts, n_leaked_items } = papers.plain;
  const [source, shard] = [plain(ofDocument("source", number)), plain(ofDocument("shard_name", number))];
  const name = plain(doc_id[number]) || `${shard} · row ${row[number]}`;
  const outcome = ofDocument("outcome", number);
  return made(
    "div",
    { class: "line", role: "row", "aria-level": 1, "aria-expanded": String(isOpen) },
    gridCell(1, { class: `score is-${outcome}`, text: papers.best_score[number]?.toFixed(2) ?? "–" }),
    gridCell(2, { class: "name", title: name }, made("span", { "aria-hidden": "true", class: "fold", text: isOpen ? "▾" : "▸" }), name),
    gridCell(3, { class: "outcome-name", text: OUTCOMES[outcome] }),
    gridCell(4, { class: "source", text: source }),
    gridCell(5, { class: "shard", text: shard }),
    gridCell(6, { class: "is-number row-number", text: row[number] == null ? "–" : counted(row[number]) }),
    gridCell(7, { class: "benchmarks", text: (ofDocument("benchmarks", number) ?? []).map(plain).join(", ") }),
    gridCell(8, { class: "is-number leaked", text: counted(n_leaked_items[number]) }),
    gridCell(9, { class: "is-number matched-texts", text: counted(n_texts[number]) }),
  );
}

function documentTextRow(number, at) {
  const text = textAt(number, at);
  const verdict = verdictOf(text);
  const link = made("a", { href: textsHash({ text: columns.plain.text_id[text] }), tabindex: "-1", text: itemName(text) });
  return made(
    "div",
    { class: "line is-text", role: "row", "aria-level": 2 },
    gridCell(1, { class: `score is-${outcomeOf(text)}`, text: columns.scores.score[text].toFixed(2) }),
    gridCell(2, { class: "name", title: itemName(text) }, link),
    gridCell(3, { class: "outcome-name", text: verdict ? `${OUTCOMES[outcomeOf(text)]}; verdict: ${plain(verdict)}` : OUTCOMES[outcomeOf(text)] }),
    gridCell(4, { class: "question", "aria-colspan": 6, dir: "auto", text: columns.head[text] || "–" }),
  );
}

function restRow(number) {
  const n = papers.plain.n_texts[number] - nListed(number);
  const words = `${counted(n)} more ${n === 1 ? "matched text is" : "matched texts are"} in the report: decon-assets report --query "FROM text_documents WHERE shard_name = '${plain(ofDocument("shard_name", number)).replaceAll("'", "''")}' AND row = ${papers.plain.row[number]}"`;
  return made("div", { class: "line is-rest", role: "row", "aria-level": 2 }, gridCell(1, { class: "rest", "aria-colspan": 9, text: words }));
}

// Choose and unfold ----------------------------------------------------------------------------------

function chooseLine(place) {
  if (!lines.length) return;
  chosenLine = Math.max(0, Math.min(place, lines.length - 1));
  documentList.reveal(chosenLine, element("grid-head").offsetHeight);
  documentList.mark(chosenLine);
  putDocumentsHash();
}

const stepLine = (by) => chooseLine(chosenLine < 0 ? 0 : chosenLine + by);

function openLine() {
  if (chosenLine < 0) return void stepLine(1);
  const [number, what] = lines[chosenLine];
  if (what >= 0) follow(textsHash({ text: columns.plain.text_id[textAt(number, what)] }));
  else if (what === DOCUMENT) fold(number, unfolded.has(number));
}

function fold(number, isFolded) {
  if (isFolded) unfolded.delete(number);
  else unfolded.add(number);
  drawDocuments();
  putDocumentsHash();
}

// Right unfolds a document or goes to its first matched text; left goes to the document or folds it.
function goRight() {
  const [number, what] = lines[chosenLine] ?? [];
  if (what !== DOCUMENT) return;
  if (unfolded.has(number)) stepLine(1);
  else fold(number, false);
}

function goLeft() {
  const [number, what] = lines[chosenLine] ?? [];
  if (what === undefined) return;
  if (what !== DOCUMENT) chooseLine(lines.findIndex(([own]) => own === number));
  else if (unfolded.has(number)) fold(number, true);
}

function listenToDocuments() {
  documentList.listen(() => documentList.mark(chosenLine));
  for (const id of DOCUMENT_FILTERS) {
    element(`d-${id}`).addEventListener("input", () => {
      if (!papers) return;
      filterDocuments();
      putDocumentsHash();
    });
  }
  element("d-filters").addEventListener("submit", (event) => event.preventDefault());
  element("d-clear").addEventListener("click", () => follow("#documents"));
  element("d-csv").addEventListener("click", saveDocuments);
}

// A row for each document shown, with the ids of its matched texts in the page.
function saveDocuments() {
  const names = ["source", "shard_name", "shard", "outcome"];
  const values = Object.entries(papers.plain);
  const heads = [...names, ...values.map(([name]) => name), "best_score", "benchmarks", "n_texts_listed", "text_ids"];
  const line = (number) => {
    const texts = Array.from({ length: nListed(number) }, (_, at) => columns.plain.text_id[textAt(number, at)]);
    const own = [...names.map((name) => ofDocument(name, number)), ...values.map(([, list]) => list[number])];
    return csvLine([...own, papers.best_score[number], (ofDocument("benchmarks", number) ?? []).join(" "), texts.length, texts.join(" ")]);
  };
  saveCsv(fileName("documents", documentFilter.now()), heads, documentsShown.map(line));
}
