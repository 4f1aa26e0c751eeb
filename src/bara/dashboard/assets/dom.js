// Elements and numbers. Text enters a page only as text: nothing here or elsewhere parses HTML.

const SVG = "http://www.w3.org/2000/svg";

export const get = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element. */
export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** An SVG element. */
export const s = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** A name that somebody else chose, kept to itself whichever way it is written. */
export const named = (text) => h("bdi", {}, text);

/** What an address answers: [the JSON, null], or [null, why there is none]. */
export async function ask(address) {
  try {
    const answer = await fetch(address);
    return answer.ok ? [await answer.json(), null] : [null, await answer.text()];
  } catch {
    return [null, "The dashboard does not answer."];
  }
}

const fixed = (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const [whole, two] = [fixed(0), fixed(2)];
const upTo = [0, 1, 2, 3, 4].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

export const count = (value) => whole.format(value);
/** An amount as one writes it in the run's currency, where it has one. */
export const moneyIn = (currency) => {
  if (!currency) return (value) => (value === null || value === undefined ? "–" : two.format(value));
  const { maximumFractionDigits: digits } = new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions();
  const shown = fixed(digits);
  return (value) => (value === null || value === undefined ? "–" : `${shown.format(value)} ${currency}`);
};
let inCurrency = moneyIn(null);
export const setCurrency = (currency) => { inCurrency = moneyIn(currency); };
export const money = (value) => inCurrency(value);
export const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
export const number = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return upTo[size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4].format(value);
};

/** Seconds as people say them. */
export function duration(seconds) {
  if (seconds < 90) return `${Math.max(Math.round(seconds), 1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} days`;
}

/** A table with a head; the first column names the row, numbers are shown by each column's own format. */
export function table(columns, rows, caption) {
  const cell = (column, row) => (column.format ?? String)(row[column.key] ?? null);
  return h("table", {},
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: c.left && "left" }, c.label)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((c, i) =>
      h(i ? "td" : "th", i ? { class: c.left && "left" } : { scope: "row" }, c.name ? named(cell(c, row)) : cell(c, row)))))));
}

/** Hands a file to the visitor. */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** How many things need a person, in words; nothing where none does. */
export const needing = (count_) => (count_ ? `${count(count_)} ${count_ === 1 ? "thing needs" : "things need"} you` : "");

/** A command with a button that copies it, also where a page without TLS may not use the clipboard's own interface.
    Where there is a choice ("COMMAND, or VERB"), the first is copied. */
export function command(text) {
  const [first, ...others] = text.split(", or ");
  const code = h("code", {}, first);
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${first}`, onclick: () => {
    getSelection().selectAllChildren(code);
    button.textContent = document.execCommand("copy") ? "copied" : "selected";
  } }, "copy");
  return h("span", { class: "command" }, code, others.map((other) => `, or ${other}`), " ", button);
}

/** The state of a run, in its place at the top of a page. */
export function showState(host, state, lost = false) {
  const ago = duration((Date.now() - Date.parse(state.at)) / 1000);
  const words = {
    running: state.training ? `round ${count(state.training)} is training · last news ${ago} ago` : `running · last news ${ago} ago`,
    finished: `finished: ${state.ended}`,
    paused: "paused by the operator",
    waiting: `has waited ${ago} for an answer`,
    stopped: `stopped ${ago} ago; resume with: ${state.resume}`,
  };
  host.dataset.word = lost ? "lost" : state.word;
  const needs = state.word === "finished" ? "" : needing(state.needs?.length);
  const said = [words[state.word] ?? "nothing known yet", needs].filter(Boolean).join(" · ");
  const text = lost ? "connection lost, trying again" : said;
  if (host.textContent !== text) host.textContent = text;
}
