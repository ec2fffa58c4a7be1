// The open matched text: facts, verdict, documents and both texts.

let showing = -1;

// Everything but the texts is drawn at once, so that no key acts on the previous one; the texts
// follow when they are inflated.
async function showDetail(number) {
  showing = number;
  const detail = element("detail");
  const texts = made("div", { class: "texts" });
  detail.replaceChildren(detailHead(number), verdictBar(number), facts(number), texts);
  detail.scrollTop = 0;
  detail.dataset.text = columns.plain.text_id[number];
  const chunk = await chunkOf(Math.floor(number / columns.texts_per_chunk));
  const own = chunk[number % columns.texts_per_chunk];
  texts.append(...placesOf(number, own), legend(own), sides(number, own));
}

// The documents that contain the text; if there are too many, the first ones and a query for all.
function placesOf(number, texts) {
  const n = columns.plain.n_documents[number];
  if (!(n > 1)) return [];
  const own = texts[PLACES_AT];
  const items = own.map(([source, shard, row, id]) =>
    made(
      "li",
      {},
      made("a", { href: documentLink(source, shard, row), text: `${plain(source)} · ${plain(shard)}${row === null ? "" : ` · row ${counted(row)}`}` }),
      ...(id === null ? [] : [" ", made("code", { text: plain(id) })]),
    ),
  );
  const node = made("details", { class: "places", open: n <= OPEN_PLACES }, made("summary", { text: `In ${counted(n)} documents` }), made("ol", {}, ...items));
  if (own.length < n) {
    const query = `FROM text_documents WHERE text_id = '${plain(columns.plain.text_id[number])}'`;
    node.append(made("p", {}, `This page lists ${counted(own.length)} of them; ${counted(n - own.length)} more are in the report: `, made("code", { text: `decon-assets report --query "${query}"` })));
  }
  return [node];
}

function showNothing() {
  showing = -1;
  const words = order.length ? "Choose a text: click it, or press j or k." : "No text to show.";
  element("detail").replaceChildren(made("p", { class: "empty", text: words }));
  delete element("detail").dataset.text;
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
    button("↑", "Previous text (k)", () => step(-1)),
    button("↓", "Next text (j)", () => step(1)),
  );
}

function verdictBar(number) {
  const bar = made("div", { class: "verdicts", role: "group", "aria-label": "Your verdict" });
  const now = verdictOf(number);
  for (const [key, verdict] of Object.entries(VERDICTS)) {
    const node = made("button", { type: "button", "aria-pressed": String(verdict === now), "aria-keyshortcuts": key, "data-verdict": verdict, title: MEANINGS[verdict] });
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
  if (chosen < 0) choose(order.indexOf(number)); // so that the next text is the one after it
  judge(number, verdict);
  tell(`${itemName(number)}: ${verdictOf(number) ?? "no verdict"}`);
  const hadFocus = document.activeElement?.dataset?.verdict;
  element("detail").querySelector(".verdicts").replaceWith(verdictBar(number));
  if (hadFocus) element("detail").querySelector(`[data-verdict="${hadFocus}"]`).focus();
  refreshRow(number);
}

function facts(number) {
  const list = made("dl", { class: "facts" });
  const put = (name, ...values) => {
    if (values.some((value) => value !== null && value !== "")) list.append(made("div", {}, made("dt", { text: name }), made("dd", {}, ...values)));
  };
  const { plain: own, scores } = columns;
  const outcome = outcomeOf(number);
  const isAsScored = ["review", "also"].includes(outcome) || columns.is_leak[number] === columns.is_by_score[number];
  if (named("benchmarks", number) !== named("benchmark", number)) put("benchmarks", `${plain(named("benchmarks", number))}: a verdict applies to the items of all of them`);
  put("score", `${scores.score[number].toFixed(3)} · ${OUTCOMES[outcome]}${isAsScored ? "" : ", by a verdict"}`);
  put("kind", plain(named("kind", number)));
  put("detector", detectorsOf(number).map((detector) => detectorName(detector, named("benchmark", number))).join(", "));
  for (const part of PARTS) {
    const share = scores[`${part}_overlap`][number];
    if (share !== null) put(`${part} found`, meter(share, part), ` ${percent(share)}`);
  }
  if (outcome === "no-answer") put("no answer", "the question was found without its answer: neither a leak nor clean");
  if (outcome === "review") put("review", "similar text that nobody has reviewed: only a verdict makes it a leak");
  put("probability", plain(named("probability", number)));
  // Folded: a reviewer should decide before looking.
  if (own.judgement[number]) put("judged", made("details", {}, made("summary", { text: "by a model or a file" }), made("span", { text: plain(own.judgement[number]) })));
  put("documents", counted(own.n_documents[number]));
  put("source", plain(named("source", number)));
  put("shard", plain(named("shard_name", number)));
  put("row", own.row[number] === null ? null : counted(own.row[number]));
  put("id", plain(own.doc_id[number]));
  put("part", plain(named("text_part", number)));
  put("subset", plain(named("config", number)));
  put("text id", made("a", { href: textsHash({ text: own.text_id[number] }) }, made("code", { text: plain(own.text_id[number]) })));
  if (own.row[number] !== null) put("document", made("a", { href: documentLink(named("source", number), named("shard_name", number), own.row[number]), text: "all matched texts of this document" }));
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
  if (!side.querySelector(".text")) side.append(made("p", { class: "empty", text: "The text of the item is not in this report." }));
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
  if (!columns.has_snippets) return "Snippets are off: this file contains no training data. Look up the document by shard and row.";
  const why = named("why_no_text", number);
  return why ? `No text: ${plain(why)}.` : "The report does not contain the text. Look up the document by shard and row.";
}
