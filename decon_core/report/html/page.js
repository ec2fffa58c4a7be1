// Views, keyboard shortcuts, theme and startup.

function tellTrouble(error) {
  const line = element("trouble");
  line.hidden = false;
  line.textContent = `Error: ${error.message ?? error}`;
}

const tell = (words) => {
  element("said").textContent = words;
};

// Place --------------------------------------------------------------------------------------------

const isPairs = () => !element("pairs-view").hidden;

function putHash() {
  const pair = chosen >= 0 ? columns.plain.pair[order[chosen]] : "";
  const hash = pairsHash({ ...filterNow(), pair });
  if (location.hash !== hash) history.replaceState(null, "", hash);
  element("to-pairs").href = hash;
}

function route() {
  const [view, query] = location.hash.slice(1).split("?", 2);
  showView(view === "pairs");
  if (view === "pairs") showPairs(new URLSearchParams(query ?? ""));
  else if (view) element(view)?.scrollIntoView();
}

function showView(pairs) {
  element("pairs-view").hidden = !pairs;
  element("overview-view").hidden = pairs;
  document.body.classList.toggle("is-pairs", pairs);
  element("to-pairs").toggleAttribute("aria-current", pairs);
  element("to-overview").toggleAttribute("aria-current", !pairs);
}

function showPairs(filter) {
  putFilter(filter);
  const words = element("q").value.trim();
  const open = () => openLinked(filter.get("pair") ?? "");
  if (words === searchedFor) open();
  else runSearch(words).then((isDone) => isDone && open(), tellTrouble);
}

function openLinked(pair) {
  applyFilter();
  const place = order.indexOf(pairPlaces().get(pair) ?? -1);
  if (place >= 0) choose(place);
  else {
    chosen = -1;
    showNothing();
  }
  document.body.classList.toggle("is-open", place >= 0);
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

// Keys ---------------------------------------------------------------------------------------------

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  Enter: openDetail,
  Escape: closeDetail,
  n: () => element("note")?.focus(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const isWriting = event.target.closest("input, textarea, select");
  if (isWriting) return void onKeyWhileWriting(event);
  const isOnControl = event.target.closest("button, a, summary") && event.key === "Enter";
  const act = event.key === "/" ? toSearch : event.key === "?" ? () => element("keys").showModal() : pairKey(event);
  if (!act || isOnControl) return;
  event.preventDefault();
  act();
}

function pairKey({ key, target }) {
  if (!isPairs()) return undefined;
  // Arrow keys scroll the texts of an open pair.
  if (key.startsWith("Arrow") && target.closest("#detail")) return undefined;
  if (VERDICTS[key] && showing >= 0) return () => judgeShown(VERDICTS[key]);
  return KEYS[key];
}

function onKeyWhileWriting(event) {
  const isDone = event.key === "Escape" || (event.key === "Enter" && event.target.matches("#q, #note"));
  if (!isDone) return;
  event.preventDefault();
  event.target.blur();
  element(event.target.id === "note" ? "detail" : "list").focus({ preventScroll: true });
}

function toSearch() {
  if (!isPairs()) location.hash = "#pairs";
  showView(true);
  element("q").focus();
  element("q").select();
}

// Theme --------------------------------------------------------------------------------------------

const isDarkOutside = matchMedia("(prefers-color-scheme: dark)");

function putTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  redrawCharts();
}

function switchTheme() {
  const now = document.documentElement.dataset.theme ?? (isDarkOutside.matches ? "dark" : "light");
  const theme = now === "dark" ? "light" : "dark";
  keep("decon-theme", theme);
  putTheme(theme);
}

// Printing uses the light theme and draws every figure.
let themeOfScreen;

window.addEventListener("beforeprint", () => {
  themeOfScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  if (!isPairs()) drawForPaper();
});

window.addEventListener("afterprint", () => {
  if (themeOfScreen) document.documentElement.dataset.theme = themeOfScreen;
  else delete document.documentElement.dataset.theme;
  redrawForScreen();
});

// Start --------------------------------------------------------------------------------------------

function listen() {
  let pause = 0;
  element("q").addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      runSearch(element("q").value.trim()).then((isDone) => isDone && onFilter(), tellTrouble);
      putHash();
    }, 150);
  });
  for (const id of FILTERS.slice(1)) element(id).addEventListener("input", onFilter);
  element("more").addEventListener("click", () => {
    const isUnfolded = element("filters").classList.toggle("is-unfolded");
    element("more").setAttribute("aria-expanded", String(isUnfolded));
  });
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  element("clear").addEventListener("click", () => {
    location.hash = "#pairs";
    if (location.hash === "#pairs") route();
  });
  element("item-chip").addEventListener("click", () => {
    itemFilter = "";
    onFilter();
  });
  element("list").addEventListener("scroll", () => requestAnimationFrame(drawVisible), { passive: true });
  new ResizeObserver(drawVisible).observe(element("list"));
  element("theme").addEventListener("click", switchTheme);
  element("help").addEventListener("click", () => element("keys").showModal());
  element("export").addEventListener("click", openSaving);
  element("save").addEventListener("click", saveVerdicts);
  element("forget").addEventListener("click", forgetVerdicts);
  element("close-saving").addEventListener("click", () => element("saving").close());
  isDarkOutside.addEventListener("change", redrawCharts);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", route);
}

async function start() {
  if (!window.DecompressionStream) throw new Error("this browser cannot decompress the file: use a version of 2023 or later");
  putTheme(kept("decon-theme"));
  const [run, overview, own] = await Promise.all(["run", "overview", "columns"].map(dataOf));
  columns = own;
  element("n-pairs").textContent = counted(columns.n);
  showOverview(overview, run);
  recallVerdicts();
  window.addEventListener("storage", ({ key }) => {
    if (key !== verdictKey) return; // another tab
    recallVerdicts();
    refresh();
  });
  fillFilters();
  listen();
  route();
  document.body.classList.add("is-ready");
  // Printing does not wait: load the chart library before any figure is visible.
  (window.requestIdleCallback ?? setTimeout)(() => charting().catch(tellTrouble));
}

start().catch(tellTrouble);
