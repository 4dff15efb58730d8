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
const [NAME, STATUS, SECONDS, MESSAGE, LINK] = [0, 1, 9, 10, 11];

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

function tableRow(row, tones) {
  const cells = COLUMNS.map(({ kind }, column) => {
    const value = row[column];
    if (column === NAME) return html("th", { scope: "row", class: "name" }, nameOf(row));
    if (column === STATUS) return html("td", {}, html("span", { class: `status ${tones[value] ?? "plain"}` }, value));
    if (!kind.startsWith("number")) return html("td", { class: kind }, value);
    const text = value === null ? "" : column === SECONDS ? value.toFixed(2) : value.toLocaleString("en");
    const isFinding = kind.includes(" ");
    return html("td", { class: isFinding && !value ? "number none" : kind }, isFinding && !value ? "·" : text);
  });
  return html("tr", {}, ...cells);
}

function nameOf(row) {
  return row[LINK] ? html("a", { href: row[LINK] }, row[NAME]) : row[NAME];
}
