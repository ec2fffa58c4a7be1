// What a person says of pairs: kept in this browser until it is saved to a file.

const VERDICTS = { l: "leak", t: "template", c: "common source", u: "unsure" };
const TAKEN_BACK = "none";

// Of all reports alike: a pair says what was found, in whichever report, so a verdict outlives
// the report in which it was given. A page counts and saves those of the pairs that it has.
const verdictKey = "decon-verdicts";
let said = {};

function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // a browser that keeps nothing for files
  }
}

function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    tellTrouble(new Error("this browser keeps nothing for this file: save your verdicts before you close it"));
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

// The verdict that counts here: what was said in this browser, else what the report has.
function verdictOf(number) {
  const own = said[columns.plain.pair[number]]?.verdict;
  if (own === TAKEN_BACK) return null;
  return own ?? columns.plain.verdict[number];
}

function noteOf(number) {
  return said[columns.plain.pair[number]]?.note ?? columns.plain.verdict_note[number] ?? "";
}

function say(number, change) {
  const pair = columns.plain.pair[number];
  const before = said[pair] ?? {};
  said[pair] = { ...before, ...change, at: new Date().toISOString() };
  keepVerdicts();
}

// The same verdict again takes it back; where the report has one, that has to be said as well.
function judge(number, verdict) {
  if (verdictOf(number) !== verdict) say(number, { verdict });
  else if (columns.plain.verdict[number]) say(number, { verdict: TAKEN_BACK });
  else {
    const pair = columns.plain.pair[number];
    const { note, at } = said[pair];
    if (note) said[pair] = { note, at }; // it was typed, and may be for the next verdict
    else delete said[pair];
    keepVerdicts();
  }
}

// A note alone says nothing that could be imported.
function exportable() {
  const place = pairPlaces();
  return Object.entries(said)
    .filter(([pair]) => place.has(pair))
    .map(([pair, { verdict, note, at }]) => [place.get(pair), verdict ?? columns.plain.verdict[place.get(pair)], note, at])
    .filter(([number, verdict, note]) => verdict && !isKnown(number, verdict, note))
    .sort(([a], [b]) => a - b);
}

// Brought in already: the report says the same.
function isKnown(number, verdict, note) {
  const { verdict: before, verdict_note: noteBefore } = columns.plain;
  return verdict === before[number] && (note ?? noteBefore[number] ?? "") === (noteBefore[number] ?? "");
}

let places = null;
function pairPlaces() {
  places ??= new Map(columns.plain.pair.map((pair, number) => [pair, number]));
  return places;
}

function verdictLine([number, verdict, note, at], by) {
  const line = {
    pair: columns.plain.pair[number],
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
  // Some readers of lines take these for the end of one.
  return JSON.stringify(line).replace(/[\u0085\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function openSaving() {
  const lines = exportable();
  element("saving-told").textContent = lines.length
    ? `${counted(lines.length)} ${lines.length === 1 ? "pair has" : "pairs have"} a verdict of yours.`
    : "None yet: open a pair, and say what you think of it.";
  element("save").disabled = element("forget").disabled = !lines.length;
  element("saving").showModal();
}

function saveVerdicts() {
  const by = element("by").value.trim();
  keep("decon-reviewer", by);
  const lines = exportable().map((one) => `${verdictLine(one, by)}\n`);
  const url = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  made("a", { href: url, download: "verdicts.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function forgetVerdicts() {
  if (!confirm("Forget your verdicts on the pairs of this report, in this browser?")) return;
  for (const pair of pairPlaces().keys()) delete said[pair];
  keepVerdicts();
  element("saving").close();
  refresh();
}
