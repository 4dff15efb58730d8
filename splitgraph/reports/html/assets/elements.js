// Makes elements of HTML and SVG. Every text becomes a text node: no string is ever read as markup.

const SVG_SPACE = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    // States of ARIA have the values "true" and "false"; other attributes are there or not.
    if (typeof value === "boolean" && !name.startsWith("aria-") && !value) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** An HTML element. A function among the attributes is a listener of the event of that name. */
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element; arguments as for `html`. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

/** A number with its noun: "1 node", "1,204 nodes". */
function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** The text in at most so many characters; of a longer one, its two ends, because names differ in both. */
function shortened(text, most) {
  if (text.length <= most) return text;
  const tail = Math.floor((most - 1) * 0.6);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** A function that shows each of these names in at most so many characters: without the parts of a path that all of
 * them have in front; of a name that is still too long, its end. */
function withoutSharedFront(names, most) {
  if (names.every((name) => name.length <= most)) return (name) => name;
  const front = sharedFront(names);
  return (name) => {
    const rest = front.length ? `…${name.slice(front.length)}` : name;
    return fromTheEnd(rest, most);
  };
}

/** The text in at most so many characters; of a longer one, its end. */
function fromTheEnd(text, most) {
  return text.length <= most ? text : `…${text.slice(text.length - most + 1)}`;
}

/** What all names have in front, whole parts of a path: up to a "/", or up to a "." of names without one. */
function sharedFront(names) {
  let [shared = ""] = names;
  for (const name of names) {
    let length = 0;
    while (length < shared.length && name[length] === shared[length]) length++;
    shared = shared.slice(0, length);
  }
  return shared.slice(0, (shared.includes("/") ? shared.lastIndexOf("/") : shared.lastIndexOf(".")) + 1);
}

const measuring = document.createElement("canvas").getContext("2d");
const MONO = 'ui-monospace, "SF Mono", "Cascadia Code", "DejaVu Sans Mono", Menlo, Consolas, monospace';
const SANS = 'system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif';
const widths = new Map();

/** The width of a text in pixels. font: "11px mono" or "600 13px sans". */
function textWidth(text, font) {
  const key = `${font}\n${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    measuring.font = font.replace("mono", MONO).replace("sans", SANS);
    width = measuring.measureText(text).width;
    if (widths.size > 20000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** The text cut to a width in pixels. */
function fitted(text, width, font) {
  if (textWidth(text, font) <= width) return text;
  const each = textWidth(text, font) / text.length;
  return shortened(text, Math.max(2, Math.floor(width / each)));
}

/** Light or dark, whatever the system has. */
function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  byId("theme").setAttribute("aria-pressed", !dark);
}
