// The list of pairs: only the visible rows are in the page.

let order = []; // the filtered pairs, sorted
let chosen = -1; // place in `order`

const ROW_PIXELS = 64;
const pairList = longList(element("list"), element("rows"), ROW_PIXELS, listRow);

function putHash() {
  const pair = chosen >= 0 ? columns.plain.pair[order[chosen]] : "";
  const hash = pairsHash({ ...filterNow(), pair });
  putAddress(hash);
  element("to-pairs").href = hash;
}

function showPairs(params) {
  const missing = [...unknownSettings(params, [...FILTERS, ITEM, "pair"]), ...pairFilter.put(params)];
  itemFilter = params.get(ITEM) ?? "";
  const pair = params.get("pair") ?? "";
  if (pair && !pairPlaces().has(pair)) missing.push(quoted("pair", pair) + (columns.n < columns.n_all ? ` (it has the first ${counted(columns.n)} of ${counted(columns.n_all)} pairs)` : ""));
  const words = element("q").value.trim();
  tellMissing(missing);
  const open = () => openLinked(pair, missing);
  if (words === searchedFor) open();
  else runSearch(words).then((isDone) => isDone && open(), tellTrouble);
}

function openLinked(pair, missing) {
  applyFilter();
  const number = pairPlaces().get(pair) ?? -1;
  const place = order.indexOf(number);
  if (place >= 0) choose(place);
  else {
    chosen = -1;
    showNothing();
    element("to-pairs").href = location.hash;
    // The first pair lies beside the list, though nobody has chosen it.
    if (!pair && order.length) showDetail(order[0]).catch(tellTrouble);
  }
  document.body.classList.toggle("is-open", place >= 0);
  tellMissing(missing, number >= 0 && place < 0 ? "The pair of this link does not pass the filter of this link." : "");
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
  pairList.reset(order.length);
  element("no-pair").textContent = columns.n ? "No pair matches." : "Nothing was found.";
  element("no-pair").hidden = order.length > 0;
  pairList.mark(chosen);
}

function listRow(place) {
  const number = order[place];
  const n = columns.plain.n_documents[number];
  const verdict = verdictOf(number);
  const node = made(
    "div",
    { class: "row", role: "option", id: `pair-${place}`, "aria-posinset": place + 1, "aria-setsize": order.length },
    made("span", { class: `score is-${callOf(number)}`, text: columns.scores.score[number].toFixed(2) }),
    made("span", { class: "item", text: itemName(number) }),
    made("span", { class: "where", text: `${plain(named("source", number))}${n > 1 ? ` × ${counted(n)}` : ""}` }),
    made("span", { class: "head", dir: "auto", text: columns.head[number] || "–" }),
  );
  for (const child of node.children) child.title = child.textContent;
  const call = callOf(number);
  const badges = [["no-answer", "review"].includes(call) ? CALLS[call] : null, named("kind", number)].filter(Boolean);
  if (badges.length && !verdict) node.append(made("span", { class: `kind is-${call}`, text: badges.join(", ") }));
  if (verdict) node.append(made("span", { class: "verdict", text: plain(verdict) }));
  node.addEventListener("click", () => {
    choose(place);
    openDetail();
  });
  return node;
}

function refreshRow(number) {
  pairList.refresh(order.indexOf(number));
  pairList.mark(chosen);
}

function choose(place) {
  if (!order.length) return;
  chosen = Math.max(0, Math.min(place, order.length - 1));
  pairList.reveal(chosen);
  pairList.mark(chosen);
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
