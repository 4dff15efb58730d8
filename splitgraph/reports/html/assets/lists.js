// The list at the side: splits, findings, nodes or changes; only the rows in view exist.

const ROW_HEIGHT = 52;
const ROWS_BEYOND = 6;

class List {
  constructor(element, { reason, choose, open, press }) {
    Object.assign(this, { element, reason, choose, open, press, entries: [], current: -1 });
    this.inner = html("div", { class: "rows", role: "presentation" });
    element.append(this.inner);
    element.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(element);
  }

  /** rows: how entries become rows, of ROWS. */
  set(entries, rows, current = -1) {
    this.entries = entries;
    this.rows = rows;
    this.named = withoutSharedFront(entries.map(rows.name), rows.most);
    this.current = current;
    if (current < 0) this.element.scrollTop = 0;
    this.inner.style.height = `${entries.length * ROW_HEIGHT}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_HEIGHT) - ROWS_BEYOND);
    const visible = Math.ceil(this.element.clientHeight / ROW_HEIGHT) + 2 * ROWS_BEYOND;
    const rows = this.entries.slice(first, first + visible).map((entry, place) => {
      const index = first + place;
      const row = this.rows.make(entry, this.named(this.rows.name(entry)), this.reason(entry));
      row.classList.add("row");
      row.id = `row-${index}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", index === this.current);
      row.setAttribute("aria-setsize", this.entries.length);
      row.setAttribute("aria-posinset", index + 1);
      row.style.top = `${index * ROW_HEIGHT}px`;
      row.addEventListener("click", () => {
        this.go(index);
        this.press(entry);
      });
      row.addEventListener("dblclick", () => this.open(entry));
      return row;
    });
    if (!this.entries.length) rows.push(html("p", { class: "nothing" }, this.nothing ?? "Nothing here."));
    this.inner.replaceChildren(...rows);
    if (this.current >= 0) this.element.setAttribute("aria-activedescendant", `row-${this.current}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Choose an entry, and scroll it into view. */
  go(index) {
    if (!this.entries.length) return;
    this.current = Math.min(this.entries.length - 1, Math.max(0, index));
    const top = this.current * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + clientHeight) this.element.scrollTop = top + ROW_HEIGHT - clientHeight;
    this.draw();
    this.choose(this.entries[this.current]);
  }

  step(by) {
    this.go(this.current < 0 && by > 0 ? 0 : this.current + by);
  }
}

/** A row of a split: name, operator, axis and lengths, and its bar. */
function splitRow({ split }, name, reason) {
  const bar = svg("svg", { class: "mini", viewBox: "0 0 260 8", preserveAspectRatio: "none", "aria-hidden": true });
  if (split.kind === "string") bar.append(svg("rect", { class: "part-more-fill", width: 260, height: 8, rx: 3 }));
  for (const segment of split.kind === "string" ? [] : segments(split, 260)) {
    const kind = segment.hidden || segment.unknown ? "part-more" : partClass(segment.part);
    const box = { class: "edge", x: segment.x, width: segment.width, height: 8, rx: 2 };
    bar.append(svg("g", { class: `segment ${kind}` }, svg("rect", box)));
  }
  const shown = split.kind === "string" ? kindText(split) : split.lengthsText || kindText(split);
  const facts = `${split.op} · ${axisText(split)} · ${shown}`;
  return row("split-row", split.loc, lineOne(html("b", {}, name)), reason ?? html("div", { class: "lengths" }, facts), bar);
}

function findingRow({ finding }, name, reason) {
  const code = html("b", { class: finding.severity }, `${SIGNS[finding.severity]} ${finding.code}`);
  const text = html("div", { class: "text" }, finding.message);
  return row("finding-row", finding.loc, lineOne(code, html("span", {}, name)), text, reason);
}

function nodeRow({ graph, node }, name, reason) {
  const where = graph.number ? html("span", {}, fromTheEnd(graph.title, 24)) : null;
  const label = html("div", { class: "text mono" }, name);
  const title = `${graph.loc}/${graph.label(node)}`;
  return row("node-row", title, lineOne(html("b", {}, graph.op(node)), where), label, reason);
}

function changeRow({ change, group }, name, reason) {
  const kind = change.kind;
  if (!group) {
    const label = html("div", { class: "text mono" }, name);
    return row("change-row", change.loc, lineOne(html("b", { class: kind }, changeTitle(change))), label, reason);
  }
  const number = html("span", {}, group.clusters.length.toLocaleString("en"));
  const text = html("div", { class: "text" }, `${group.isOpen ? "▾" : "▸"} ${groupText(group) || `${name}, …`}`);
  return row("change-row group-row", "", lineOne(html("b", { class: kind }, group.title), number), text);
}

function row(kind, title, ...lines) {
  return html("div", { class: kind, title }, ...lines);
}

function lineOne(...parts) {
  return html("div", { class: "line-one" }, ...parts);
}

// How a row is made in each list, the name in it, and how many characters of the name fit.
const ROWS = {
  splits: { make: splitRow, name: ({ split }) => split.name, most: 39 },
  findings: { make: findingRow, name: ({ finding }) => finding.loc, most: 29 },
  nodes: { make: nodeRow, name: ({ graph, node }) => graph.label(node), most: 40 },
  changes: { make: changeRow, name: ({ change }) => change.name, most: 40 },
};
