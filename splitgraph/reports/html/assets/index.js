// Starts the index page: search, counts by status, sorting. Rows are added as the table is scrolled.

const CHUNK_OF_ROWS = 250;

class Index {
  constructor(data) {
    const names = data.rows.map((row) => row[NAME]);
    this.shape = { tones: data.tones, columns: filledColumns(data.rows), front: folderOf(names) };
    this.rows = data.rows.map((row, order) =>
      Object.assign(row, { order, text: `${row[NAME]}\n${row[STATUS]}\n${row[MESSAGE]}`.toLowerCase() }),
    );
    this.sorted = { column: null, descending: false };
    this.status = "";
    this.query = "";
    this.headings = this.shape.columns.map(({ title, kind, column }) => this.heading(title, kind, column));
    byId("folder").textContent = this.shape.front;
    byId("head").append(...this.headings);
    new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && this.addRows(), {
      rootMargin: "600px",
    }).observe(byId("more"));
    this.showStatuses();
    this.refresh();
  }

  heading(title, kind, column) {
    const button = html("button", { click: () => this.sort(column) }, title);
    return html("th", { scope: "col", class: kind, "aria-sort": "none" }, button);
  }

  showStatuses() {
    const counts = new Map();
    for (const row of this.rows) counts.set(row[STATUS], (counts.get(row[STATUS]) ?? 0) + 1);
    const entries = [["", this.rows.length], ...[...counts].sort((a, b) => b[1] - a[1])];
    const buttons = entries.map(([status, number]) => {
      const choose = () => this.filter(status);
      const tone = status ? (this.shape.tones[status] ?? "plain") : "";
      return html(
        "button",
        { class: `status ${tone}`, "data-status": status, "aria-pressed": status === this.status, click: choose },
        `${status || "all"} `,
        html("b", {}, number.toLocaleString("en")),
      );
    });
    byId("statuses").replaceChildren(...buttons);
  }

  sort(column) {
    const again = this.sorted.column === column;
    // Numbers are looked at from the largest one down.
    const descending = again ? !this.sorted.descending : COLUMNS[column].kind.startsWith("number");
    this.sorted = { column, descending };
    this.headings.forEach((heading, place) => {
      heading.setAttribute("aria-sort", this.shape.columns[place].column !== column ? "none" : descending ? "descending" : "ascending");
    });
    this.refresh();
  }

  filter(status) {
    this.status = status;
    this.showStatuses();
    this.refresh();
  }

  search(query) {
    this.query = query;
    this.refresh();
  }

  refresh() {
    const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = this.rows.filter(
      (row) => (!this.status || row[STATUS] === this.status) && words.every((word) => row.text.includes(word)),
    );
    if (this.sorted.column !== null) this.shown.sort(compareRows(this.sorted.column, this.sorted.descending));
    byId("found").textContent = this.shown.length ? count(this.shown.length, "model") : "No model matches.";
    byId("rows").replaceChildren();
    this.addRows();
  }

  addRows() {
    const first = byId("rows").childElementCount;
    const next = this.shown.slice(first, first + CHUNK_OF_ROWS);
    if (next.length) byId("rows").append(...next.map((row) => tableRow(row, this.shape)));
  }
}

/** The folder that all models are in, with a "/" at the end; "" for none. */
function folderOf(names) {
  const front = sharedFront(names);
  return front.slice(0, front.lastIndexOf("/") + 1);
}

const data = JSON.parse(byId("data").textContent);
document.title = `${data.title} · splitgraph`;
byId("title").textContent = data.title;
const index = new Index(data);
byId("search").addEventListener("input", (event) => index.search(event.target.value));
byId("theme").addEventListener("click", () => toggleTheme());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target === byId("search")) {
    byId("search").value = "";
    index.search("");
    byId("search").blur();
  }
  if (event.target.matches("input")) return;
  if (event.key === "t") toggleTheme();
  if (event.key !== "/") return;
  event.preventDefault();
  byId("search").focus();
});
window.addEventListener("beforeprint", () => {
  while (byId("rows").childElementCount < index.shown.length) index.addRows();
});
document.documentElement.dataset.ready = "true";
