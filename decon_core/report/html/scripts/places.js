// The address names what is shown: a view, its filter, and what is open in it.

// Of each view with a list: the list, its search field, and what shows a link's parameters.
const LISTS = { texts: "list", documents: "grid" };
const SEARCH_FIELDS = { texts: "q", documents: "d-q" };
const SHOWN = { texts: showTexts, documents: (params) => showDocuments(params).catch(tellTrouble) };

let viewNow = "overview";

// A value that is empty is left out.
function address(view, values) {
  const wanted = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  return wanted.length ? `#${view}?${new URLSearchParams(wanted)}` : `#${view}`;
}
const textsHash = (filter) => address("texts", filter);

// Put the address of what is shown, without a new entry in the history.
function putAddress(hash) {
  if (location.hash !== hash) history.replaceState(null, "", hash);
  tellMissing([]);
}

function route() {
  const [, name, query] = /^#?([^?]*)\??(.*)$/s.exec(location.hash);
  const params = new URLSearchParams(query);
  const view = SHOWN[name] ? name : "overview";
  showView(view);
  (SHOWN[name] ?? ((values) => showLinkedSection(name, values)))(params);
}

// Follow a link of this page.
function follow(hash) {
  history.pushState(null, "", hash);
  route();
}

// A link in a view that is no longer shown has lost the focus.
function onLink() {
  route();
  if (document.activeElement === document.body || !document.activeElement.checkVisibility()) element(LISTS[viewNow] ?? "main").focus({ preventScroll: true });
}

function showView(view) {
  viewNow = view;
  for (const one of ["overview", ...Object.keys(SHOWN)]) {
    element(`${one}-view`).hidden = one !== view;
    if (one === view) element(`to-${one}`).setAttribute("aria-current", "page");
    else element(`to-${one}`).removeAttribute("aria-current");
  }
  document.body.classList.toggle("is-list", view !== "overview");
  document.body.classList.remove("is-open");
  // Printing does not wait: load the chart library before any figure is visible.
  if (view === "overview") (window.requestIdleCallback ?? setTimeout)(() => charting().catch(tellTrouble));
}

// Say what a link names and this page does not have: a report that is made again may have lost it.
function tellMissing(missing, more = "") {
  const words = missing.length ? `This page does not have everything that the link refers to. Missing: ${missing.join("; ")}. ` : "";
  element("missing").textContent = words + more;
  element("missing").hidden = !(words || more);
}

const quoted = (name, value) => `${name} “${plain(value)}”`;

// Parameters that no part of the page reads.
function unknownSettings(params, known) {
  return [...params.keys()].filter((name) => !known.includes(name)).map((name) => quoted("setting", name));
}

// A form of filters. A value that this report does not have stays chosen, as an option of its own:
// nothing passes it, and the link is still good for a report that has it.
function filterForm(prefix, names) {
  const field = (name) => element(prefix + name);

  function put(params) {
    const missing = [];
    for (const name of names) {
      const node = field(name);
      const value = params.get(name) ?? "";
      node.querySelector(".is-missing")?.remove();
      node.value = node.type === "number" && Number.isNaN(Number(value)) ? "" : value; // else the browser warns
      if (node.value === value || node.type === "search") continue;
      missing.push(quoted(node.labels[0].textContent.toLowerCase(), value));
      if (node.matches("select")) node.append(made("option", { class: "is-missing", value, text: `${plain(value)} (not in this report)`, selected: true }));
    }
    return missing;
  }

  const now = () => Object.fromEntries(names.map((name) => [name, field(name).value.trim()]));
  return { put, now };
}

function fillOptions(id, values) {
  const all = made("option", { value: "", text: "all" });
  element(id).replaceChildren(all, ...values.map((value) => made("option", { value, text: plain(value) })));
}
