// Data embedded in the file, read on demand.

const element = (id) => document.getElementById(id);

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

async function inflated(name) {
  const holder = document.querySelector(`script.data[data-name="${name}"]`);
  if (!holder) throw new Error(`this file is incomplete: ${name} is missing`);
  const packed = new Blob([bytesOf(holder.textContent)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const dataOf = async (name) => JSON.parse(await inflated(name));

const wholeFile = new Promise((resolve) => {
  if (document.readyState !== "loading") resolve();
  else document.addEventListener("DOMContentLoaded", () => resolve(), { once: true });
});

// Chunks of texts; the last few stay inflated, because neighbouring ones are opened in turn.
const recentChunks = new Map();
const MOST_RECENT = 6;

async function chunkOf(number) {
  if (!recentChunks.has(number)) {
    await wholeFile;
    const chunk = dataOf(`texts-${number}`);
    recentChunks.set(number, chunk);
    if (recentChunks.size > MOST_RECENT) recentChunks.delete(recentChunks.keys().next().value);
  }
  return recentChunks.get(number);
}

const numbers = new Intl.NumberFormat("en");
const counted = (n) => numbers.format(n);

function percent(value) {
  const hundred = 100 * value;
  if (hundred === 0) return "0 %";
  return hundred >= 0.1 ? `${hundred.toFixed(1)} %` : `${hundred.toPrecision(2)} %`;
}

// Create an element. Texts are set as text, never as markup.
function made(tag, options = {}, ...children) {
  const { text, ...attributes } = options;
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  if (text != null) node.textContent = text;
  node.append(...children);
  return node;
}
