// Save what is shown as CSV: lines and quotes as RFC 4180 has them, in UTF-8.

// A value without a text is empty, an empty text is quoted. An apostrophe before a text keeps
// spreadsheets from taking it for a formula.
function csvCell(value) {
  if (value == null) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const csvLine = (values) => `${values.map(csvCell).join(",")}\r\n`;

const MOST_OF_NAME = 80; // characters, of which some need three of the 255 bytes that file systems allow

// The name of a file tells what is in it: the view and its filter.
function fileName(view, values) {
  const words = [view, ...Object.entries(values).flatMap(([name, value]) => (value === "" || value == null ? [] : [`${name}=${value}`]))];
  const safe = words.map((word) => plain(word).replace(/[^\p{L}\p{N}=._-]+/gu, "-").replace(/^[.-]+|[.-]+$/g, ""));
  return Array.from(safe.filter(Boolean).join("_")).slice(0, MOST_OF_NAME).join("");
}

function saveFile(name, pieces, type) {
  const url = URL.createObjectURL(new Blob(pieces, { type }));
  made("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function saveCsv(name, heads, lines) {
  saveFile(`${name}.csv`, [csvLine(heads), ...lines], "text/csv;charset=utf-8");
  tell(`Saved ${counted(lines.length)} ${lines.length === 1 ? "row" : "rows"} as ${name}.csv`);
}

// Matched texts ------------------------------------------------------------------------------------

// Columns of a report: a name, and what gives the value of a text. Flags are the report's; the verdict is
// the one shown, which may be newer.
function textColumns() {
  const of = (values, change = (value) => value) =>
    Object.fromEntries(Object.entries(values).map(([name, list]) => [name, (number) => change(list[number])]));
  const { is_leak, is_no_answer, needs_review, is_by_score } = columns;
  return {
    ...of(columns.plain),
    ...Object.fromEntries(Object.keys(columns.names).map((name) => [name, (number) => named(name, number)])),
    ...of(columns.scores),
    ...of({ distance_to_threshold: columns.doubt }),
    ...of({ is_leak, is_no_answer, needs_review, is_by_score }, Boolean),
    verdict: verdictOf,
    verdict_note: (number) => noteOf(number) || null,
    verdict_by: (number) => (ownVerdict(number) ? element("by").value : columns.plain.verdict_by[number]),
    verdict_at: (number) => ownVerdict(number)?.at ?? columns.plain.verdict_at[number],
  };
}

let saving = 0;

// Texts are inflated chunk by chunk, in the order of the file; the lines are in the order shown.
async function saveTexts() {
  const own = ++saving;
  const shown = [...order];
  const name = fileName("texts", filterNow());
  const values = textColumns();
  const line = (number, texts) =>
    csvLine([...Object.values(values).map((value) => value(number)), ...TEXT_NAMES.map((part) => textOf(texts, part)), texts[AGREEMENT_AT]]);
  const lines = await withTexts(shown, line, () => own === saving);
  if (lines) saveCsv(name, [...Object.keys(values), ...TEXT_NAMES, "agreement"], lines);
}

async function withTexts(numbers, line, isWanted) {
  await wholeFile;
  const places = new Map(); // by chunk
  numbers.forEach((number, place) => {
    const chunk = Math.floor(number / columns.texts_per_chunk);
    if (!places.has(chunk)) places.set(chunk, []);
    places.get(chunk).push(place);
  });
  const progress = element("searching");
  progress.hidden = places.size < 3;
  const lines = Array(numbers.length);
  let done = 0;
  for (const [chunk, own] of places) {
    const rows = await dataOf(`texts-${chunk}`);
    if (!isWanted()) return null;
    for (const place of own) lines[place] = line(numbers[place], rows[numbers[place] % columns.texts_per_chunk]);
    progress.value = ++done / places.size;
  }
  progress.hidden = true;
  return lines;
}
