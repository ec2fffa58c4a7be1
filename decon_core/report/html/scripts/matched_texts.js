// The list of matched texts: only the visible rows are in the page.

let order = []; // the filtered matched texts, sorted
let chosen = -1; // place in `order`

const ROW_PIXELS = 64;
const textList = longList(element("list"), element("rows"), ROW_PIXELS, listRow);

function putHash() {
  const text = chosen >= 0 ? columns.plain.text_id[order[chosen]] : "";
  const hash = textsHash({ ...filterNow(), text });
  putAddress(hash);
  element("to-texts").href = hash;
}

function showTexts(params) {
  const missing = [...unknownSettings(params, [...FILTERS, ITEM, "text"]), ...textFilter.put(params)];
  itemFilter = params.get(ITEM) ?? "";
  const text = params.get("text") ?? "";
  if (text && !textPlaces().has(text)) missing.push(quoted("text", text) + (columns.n < columns.n_all ? ` (this page has only the first ${counted(columns.n)} of ${counted(columns.n_all)} texts)` : ""));
  const words = element("q").value.trim();
  tellMissing(missing);
  const open = () => openLinked(text, missing);
  if (words === searchedFor) open();
  else runSearch(words).then((isDone) => isDone && open(), tellTrouble);
}

function openLinked(text, missing) {
  applyFilter();
  const number = textPlaces().get(text) ?? -1;
  const place = order.indexOf(number);
  if (place >= 0) choose(place);
  else {
    chosen = -1;
    showNothing();
    element("to-texts").href = location.hash;
    // The first matched text lies beside the list, though nobody has chosen it.
    if (!text && order.length) showDetail(order[0]).catch(tellTrouble);
  }
  document.body.classList.toggle("is-open", place >= 0);
  tellMissing(missing, number >= 0 && place < 0 ? "A filter in this link hides the text." : "");
}

function refresh() {
  applyFilter();
  if (showing >= 0) showDetail(showing).catch(tellTrouble);
}

function onFilter() {
  applyFilter();
  if (chosen < 0) showNothing();
  putHash();
}

function drawList() {
  textList.reset(order.length);
  element("no-text").textContent = columns.n ? "No text matches." : "Nothing was found.";
  element("no-text").hidden = order.length > 0;
  textList.mark(chosen);
}

function listRow(place) {
  const number = order[place];
  const n = columns.plain.n_documents[number];
  const verdict = verdictOf(number);
  const node = made(
    "div",
    { class: "row", role: "option", id: `text-${place}`, "aria-posinset": place + 1, "aria-setsize": order.length },
    made("span", { class: `score is-${outcomeOf(number)}`, text: columns.scores.score[number].toFixed(2) }),
    made("span", { class: "item" }, made("span", { text: splitName(number) }), made("span", { text: itemIndex(number) })),
    made("span", { class: "where", text: `${plain(named("source", number))}${n > 1 ? ` × ${counted(n)}` : ""}` }),
    made("span", { class: "head", dir: "auto", text: columns.head[number] || "–" }),
  );
  for (const child of node.children) child.title = child.textContent;
  const outcome = outcomeOf(number);
  const badges = [["no-answer", "review"].includes(outcome) ? OUTCOMES[outcome] : null, named("kind", number)].filter(Boolean);
  if (badges.length && !verdict) node.append(made("span", { class: `kind is-${outcome}`, text: badges.join(", ") }));
  if (verdict) node.append(made("span", { class: "verdict", text: plain(verdict) }));
  node.addEventListener("click", () => {
    choose(place);
    openDetail();
  });
  return node;
}

function refreshRow(number) {
  textList.refresh(order.indexOf(number));
  textList.mark(chosen);
}

function choose(place) {
  if (!order.length) return;
  chosen = Math.max(0, Math.min(place, order.length - 1));
  textList.reveal(chosen);
  textList.mark(chosen);
  showDetail(order[chosen]).catch(tellTrouble);
  putHash();
}

const step = (by) => choose(chosen < 0 ? 0 : chosen + by);

// On narrow screens, an open matched text covers the list.
function openDetail() {
  if (chosen < 0) choose(0);
  document.body.classList.add("is-open");
  element("detail").focus({ preventScroll: true });
}

function closeDetail() {
  document.body.classList.remove("is-open");
  element("list").focus({ preventScroll: true });
}
