// Untrusted texts: shared characters are marked, invisible ones are shown.

const PARTS = ["question", "answer", "passage"];

// Control, direction and zero-width characters. Joiners are needed by scripts and emoji.
const HIDDEN = /(?![\n\t\u200c\u200d]|\r\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const HIDDEN_PARTS = new RegExp(`(${HIDDEN.source})`, "u");

const codeOf = (character) =>
  `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// A name or id as text on one line.
function plain(text) {
  const line = String(text ?? "");
  return line.split(HIDDEN_PARTS).map((piece) => (HIDDEN.test(piece) ? `⟨${codeOf(piece)}⟩` : piece)).join("");
}

function appendText(node, text) {
  for (const piece of text.split(HIDDEN_PARTS)) {
    if (!piece) continue;
    if (HIDDEN.test(piece)) node.append(made("span", { class: "hidden-character", text: codeOf(piece) }));
    else node.append(piece);
  }
}

// Marks count code points, as Python does; JavaScript strings count UTF-16 units.
function markedText(text, marks) {
  const node = made("div", { class: "text", dir: "auto" });
  const characters = Array.from(text);
  for (const [start, stop, parts] of segments(characters.length, marks)) {
    const piece = characters.slice(start, stop).join("");
    if (parts) {
      const names = PARTS.filter((_, number) => parts & (1 << number));
      const mark = made("mark", { class: names.map((name) => `of-${name}`).join(" "), title: names.join(", ") });
      appendText(mark, piece);
      node.append(mark);
    } else appendText(node, piece);
  }
  return node;
}

// The segments between the edges of all marks, each with its parts as bits.
function segments(length, marks) {
  const edges = new Set([0, length]);
  for (let at = 0; at < marks.length; at += 3) {
    edges.add(Math.max(0, Math.min(marks[at], length)));
    edges.add(Math.max(0, Math.min(marks[at + 1], length)));
  }
  const sorted = [...edges].sort((a, b) => a - b);
  const found = [];
  for (let number = 0; number + 1 < sorted.length; number++) {
    let parts = 0;
    for (let at = 0; at < marks.length; at += 3) {
      if (marks[at] <= sorted[number] && sorted[number + 1] <= marks[at + 1]) parts |= 1 << marks[at + 2];
    }
    const last = found[found.length - 1];
    if (last && last[2] === parts) last[1] = sorted[number + 1];
    else found.push([sorted[number], sorted[number + 1], parts]);
  }
  return found;
}
