// The columns of the index page: how each is shown and sorted.

const COLUMNS = [
  { title: "model", kind: "" },
  { title: "status", kind: "" },
  { title: "opset before", kind: "text" },
  { title: "after", kind: "text" },
  { title: "nodes", kind: "number" },
  { title: "splits", kind: "number" },
  { title: "errors", kind: "number error" },
  { title: "warnings", kind: "number warning" },
  { title: "notes", kind: "number info" },
  { title: "seconds", kind: "number" },
  { title: "message", kind: "message" },
];
const [NAME, STATUS, BEFORE, AFTER, SECONDS, MESSAGE, LINK] = [0, 1, 2, 3, 9, 10, 11];

const collator = new Intl.Collator("en", { numeric: true });

/** Orders two rows by a column; what is unknown comes last either way. */
function compareRows(column, descending) {
  return (a, b) => {
    const [x, y] = [a[column], b[column]];
    const [xMissing, yMissing] = [x === null || x === "", y === null || y === ""];
    if (xMissing || yMissing) return xMissing - yMissing || a.order - b.order;
    const order = typeof x === "number" ? x - y : collator.compare(x, y);
    return (descending ? -order : order) || a.order - b.order;
  };
}

/** The columns in which any row has something, as { title, kind, column }. */
function filledColumns(rows) {
  const columns = COLUMNS.map((each, column) => ({ ...each, column }));
  const filled = columns.filter(({ kind, column }) => column === NAME || rows.some((row) => isFilled(row[column], kind)));
  const before = filled.find(({ column }) => column === BEFORE);
  if (before && !filled.some(({ column }) => column === AFTER)) before.title = "opset";
  return filled;
}

/** False for what is unknown or empty, and for no finding. */
function isFilled(value, kind) {
  return value !== null && value !== "" && !(isFindings(kind) && !value);
}

function isFindings(kind) {
  return kind.startsWith("number ");
}

/** A row with these columns. front: what the names of all rows have in front, which is shown once. */
function tableRow(row, { tones, columns, front }) {
  const cells = columns.map(({ title, kind, column }) => {
    const value = row[column];
    if (column === NAME) return html("th", { scope: "row", class: "name", title: row[NAME] }, nameOf(row, front));
    const cell = { class: kind, "data-title": title };
    if (!isFilled(value, kind)) return html("td", { ...cell, class: `${kind} none` }, isFindings(kind) ? "·" : "");
    if (column === STATUS) return html("td", cell, html("span", { class: `status ${tones[value] ?? "plain"}` }, value));
    if (!kind.startsWith("number")) return html("td", cell, value);
    return html("td", cell, column === SECONDS ? value.toFixed(2) : value.toLocaleString("en"));
  });
  return html("tr", {}, ...cells);
}

function nameOf(row, front) {
  const name = row[NAME].slice(front.length);
  return row[LINK] ? html("a", { href: row[LINK] }, name) : name;
}
