// Keyboard shortcuts, and the dialog that lists them.

const SHORTCUTS = [
  {
    title: "Everywhere",
    isHere: () => true,
    keys: [
      [["o"], "overview", () => goTo("to-overview")],
      [["m"], "matched texts", () => goTo("to-texts")],
      [["d"], "documents", () => goTo("to-documents")],
      [["/"], "search", toSearch],
      [["?"], "this list", openKeys],
    ],
  },
  {
    title: "Figures (press Tab to reach one)",
    isHere: () => false, // points.js listens in the figure itself
    keys: [
      [["ArrowRight", "ArrowDown"], "next point"],
      [["ArrowLeft", "ArrowUp"], "previous point"],
      [["Home", "End"], "first or last point"],
      [["Enter"], "show the matched texts for the selected point"],
    ],
  },
  {
    title: "Matched texts",
    isHere: () => viewNow === "texts",
    keys: [
      [["j", "ArrowDown"], "next text", () => step(1)],
      [["k", "ArrowUp"], "previous text", () => step(-1)],
      [["Enter"], "read the text", openDetail],
      [["Escape"], "back to the list", closeDetail],
      ...Object.entries(VERDICTS).map(([key, verdict]) => [[key], `verdict: ${verdict}`, () => judgeShown(verdict)]),
      [["n"], "write a note", () => element("note")?.focus()],
      [["e"], "save the list of texts as CSV", () => element("csv").click()],
    ],
  },
  {
    title: "Documents",
    isHere: () => viewNow === "documents",
    keys: [
      [["j", "ArrowDown"], "next row", () => stepLine(1)],
      [["k", "ArrowUp"], "previous row", () => stepLine(-1)],
      [["Home"], "first row", () => chooseLine(0)],
      [["End"], "last row", () => chooseLine(lines.length)],
      [["ArrowRight"], "expand the document", goRight],
      [["ArrowLeft"], "collapse the document", goLeft],
      [["Enter"], "expand or collapse the document; read the text", openLine],
      [["e"], "save the documents shown as CSV", () => element("d-csv").click()],
    ],
  },
];
const SIGNS = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

// Speech input and slips of the hand can press letters, so they can be switched off.
const letterSetting = "decon-letters";
const hasLetters = () => kept(letterSetting) !== "off";

function fillKeys() {
  const name = (key) => made("kbd", { text: SIGNS[key] ?? key });
  for (const { title, keys } of SHORTCUTS) {
    const list = made("dl");
    for (const [names, words] of keys) list.append(made("dt", {}, ...names.flatMap((key) => [name(key), " "])), made("dd", { text: words }));
    element("key-list").append(made("section", {}, made("h3", { text: title }), list));
  }
  element("letters").checked = hasLetters();
  element("letters").addEventListener("change", ({ target }) => keep(letterSetting, target.checked ? "on" : "off"));
}

// A modal dialog keeps the focus in it, and gives it back when it closes.
function openKeys() {
  element("keys").showModal();
}

function goTo(link) {
  follow(element(link).hash);
  element(LISTS[viewNow] ?? "main").focus({ preventScroll: true });
}

function toSearch() {
  if (viewNow === "overview") follow(element("to-texts").hash);
  const field = element(SEARCH_FIELDS[viewNow]);
  field.focus();
  field.select();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) return void onKeyWhileWriting(event);
  const act = actOf(event);
  if (!act) return;
  event.preventDefault();
  act();
}

function actOf({ key, target }) {
  if (key === "Enter" && target.closest("button, a, summary")) return undefined;
  if (key.length === 1 && !hasLetters()) return undefined;
  // Arrow keys scroll what is open.
  if (key.startsWith("Arrow") && target.closest("#detail")) return undefined;
  const here = SHORTCUTS.filter(({ isHere }) => isHere()).flatMap(({ keys }) => keys);
  return here.find(([names]) => names.includes(key))?.[2];
}

function onKeyWhileWriting(event) {
  const isDone = event.key === "Escape" || (event.key === "Enter" && event.target.matches("[type=search], #note"));
  if (!isDone) return;
  event.preventDefault();
  event.target.blur();
  element(event.target.id === "note" ? "detail" : LISTS[viewNow]).focus({ preventScroll: true });
}
