// Verdicts on matched texts: stored in this browser until they are saved to a file.

const VERDICTS = { l: "leak", t: "template", c: "common source", u: "unsure" };
const MEANINGS = {
  leak: "The training text contains the item, or gives its answer away.",
  template: "The two texts share only their form: instructions, boilerplate, a list of options.",
  "common source": "Both quote the same public text, but the training text does not contain the question.",
  unsure: "These texts are not enough to decide.",
};
const TAKEN_BACK = "none";

// Shared by all reports: the id of a text does not depend on the report, so a verdict stays valid in
// later reports. A page counts and saves only verdicts on its own texts.
const verdictKey = "decon-verdicts";
let said = {};

function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // this browser has no storage for local files
  }
}

function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    tellTrouble(new Error("this browser cannot store verdicts for a local file: save them before you close the page"));
  }
}

function recallVerdicts() {
  try {
    said = JSON.parse(kept(verdictKey) ?? "{}") ?? {};
  } catch {
    said = {};
  }
  element("by").value = kept("decon-reviewer") ?? "";
  countVerdicts();
}

function keepVerdicts() {
  keep(verdictKey, JSON.stringify(said));
  countVerdicts();
}

const countVerdicts = () => {
  element("n-verdicts").textContent = counted(exportable().length);
};

const ownVerdict = (number) => said[columns.plain.text_id[number]];

// The verdict shown: the one given in this browser, else the one in the report.
function verdictOf(number) {
  const own = ownVerdict(number)?.verdict;
  if (own === TAKEN_BACK) return null;
  return own ?? columns.plain.verdict[number];
}

function noteOf(number) {
  return ownVerdict(number)?.note ?? columns.plain.verdict_note[number] ?? "";
}

function say(number, change) {
  const text = columns.plain.text_id[number];
  const before = said[text] ?? {};
  said[text] = { ...before, ...change, at: new Date().toISOString() };
  keepVerdicts();
}

// The same verdict again removes it; if the report has one, perhaps of somebody else, only if
// confirmed, and the removal is stored too.
function judge(number, verdict) {
  if (verdictOf(number) !== verdict) say(number, { verdict });
  else if (columns.plain.verdict[number]) {
    if (confirm(`The report has the verdict "${verdict}" on this text. Take it back?`)) say(number, { verdict: TAKEN_BACK });
  } else {
    const text = columns.plain.text_id[number];
    const { note, at } = said[text];
    if (note) said[text] = { note, at }; // keep a typed note for the next verdict
    else delete said[text];
    keepVerdicts();
  }
}

// A note without a verdict cannot be imported.
function exportable() {
  const place = textPlaces();
  return Object.entries(said)
    .filter(([text]) => place.has(text))
    .map(([text, { verdict, note, at }]) => [place.get(text), verdict ?? columns.plain.verdict[place.get(text)], note, at])
    .filter(([number, verdict, note]) => verdict && !isKnown(number, verdict, note))
    .sort(([a], [b]) => a - b);
}

// Already imported: the report has the same verdict and note.
function isKnown(number, verdict, note) {
  const { verdict: before, verdict_note: noteBefore } = columns.plain;
  return verdict === before[number] && (note ?? noteBefore[number] ?? "") === (noteBefore[number] ?? "");
}

let places = null;
function textPlaces() {
  places ??= new Map(columns.plain.text_id.map((text, number) => [text, number]));
  return places;
}

function verdictLine([number, verdict, note, at], by) {
  const line = {
    pair: columns.plain.text_id[number],
    fingerprint: columns.plain.fingerprint[number],
    verdict,
    note: note ?? columns.plain.verdict_note[number] ?? "",
    by,
    at,
    benchmark: named("benchmark", number),
    split: named("split", number),
    instance_index: columns.plain.instance_index[number],
    shard: named("shard_name", number),
    row: columns.plain.row[number],
  };
  // Some readers treat these characters as line ends.
  return JSON.stringify(line).replace(/[\u0085\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function openSaving() {
  const lines = exportable();
  element("saving-told").textContent = lines.length
    ? `You gave verdicts on ${counted(lines.length)} ${lines.length === 1 ? "text" : "texts"}.`
    : "No verdicts yet: open a text and choose one.";
  element("save").disabled = element("forget").disabled = !lines.length;
  element("saving").showModal();
}

function saveVerdicts() {
  const by = element("by").value.trim();
  keep("decon-reviewer", by);
  const lines = exportable().map((one) => `${verdictLine(one, by)}\n`);
  saveFile("verdicts.jsonl", lines, "application/jsonl");
}

function forgetVerdicts() {
  if (!confirm("Delete your verdicts on this report's texts from this browser?")) return;
  for (const text of textPlaces().keys()) delete said[text];
  keepVerdicts();
  element("saving").close();
  refresh();
}
