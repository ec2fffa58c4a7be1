// Messages, theme, print and startup.

function tellTrouble(error) {
  const line = element("trouble");
  line.hidden = false;
  line.textContent = `Error: ${error.message ?? error}`;
}

const tell = (words) => {
  element("said").textContent = words;
};

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
  if (viewNow === "overview") drawForPaper();
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
  for (const button of document.querySelectorAll(".more")) {
    button.addEventListener("click", () => button.setAttribute("aria-expanded", String(button.form.classList.toggle("is-unfolded"))));
  }
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  element("clear").addEventListener("click", () => {
    follow("#texts");
  });
  element("item-chip").addEventListener("click", () => {
    itemFilter = "";
    onFilter();
  });
  textList.listen(() => textList.mark(chosen));
  element("theme").addEventListener("click", switchTheme);
  element("help").addEventListener("click", openKeys);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address names what is shown
    element(LISTS[viewNow] ?? "main").focus();
  });
  element("csv").addEventListener("click", () => saveTexts().catch(tellTrouble));
  element("export").addEventListener("click", openSaving);
  element("save").addEventListener("click", saveVerdicts);
  element("forget").addEventListener("click", forgetVerdicts);
  element("close-saving").addEventListener("click", () => element("saving").close());
  isDarkOutside.addEventListener("change", redrawCharts);
  listenToDocuments();
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", onLink);
}

async function start() {
  if (!window.DecompressionStream) throw new Error("this browser cannot decompress the file: use a browser version from 2023 or later");
  putTheme(kept("decon-theme"));
  const [run, overview, own] = await Promise.all(["run", "overview", "columns"].map(dataOf));
  columns = own;
  element("n-texts").textContent = counted(columns.n);
  element("n-documents").textContent = counted(columns.n_listed_documents);
  showOverview(overview, run);
  recallVerdicts();
  window.addEventListener("storage", ({ key }) => {
    if (key !== verdictKey) return; // another tab
    recallVerdicts();
    refresh();
  });
  fillFilters();
  fillKeys();
  listen();
  route();
  document.body.classList.add("is-ready");
}

start().catch(tellTrouble);
