// The list at the side: splits, findings, nodes or changes; only the rows in view exist.

const ROW_HEIGHT = 52;
const ROWS_BEYOND = 6;

class List {
  constructor(element, { row, choose, open }) {
    Object.assign(this, { element, row, choose, open, entries: [], current: -1 });
    this.inner = html("div", { class: "rows", role: "presentation" });
    element.append(this.inner);
    element.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(element);
  }

  set(entries, current = -1) {
    this.entries = entries;
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
      const row = this.row(entry);
      row.classList.add("row");
      row.id = `row-${index}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", index === this.current);
      row.setAttribute("aria-setsize", this.entries.length);
      row.setAttribute("aria-posinset", index + 1);
      row.style.top = `${index * ROW_HEIGHT}px`;
      row.addEventListener("click", () => this.go(index));
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

/** A row of a split: name, operator, axis, and its bar. */
function splitRow({ split }) {
  const bar = svg("svg", { class: "mini", viewBox: "0 0 260 8", preserveAspectRatio: "none", "aria-hidden": true });
  if (split.kind === "string") bar.append(svg("rect", { class: "part-more-fill", width: 260, height: 8, rx: 3 }));
  for (const segment of split.kind === "string" ? [] : segments(split, 260)) {
    const kind = segment.hidden || segment.unknown ? "part-more" : partClass(segment.part);
    const box = { class: "edge", x: segment.x, width: segment.width, height: 8, rx: 2 };
    bar.append(svg("g", { class: `segment ${kind}` }, svg("rect", box)));
  }
  const shown = split.kind === "string" ? kindText(split) : split.lengthsText || kindText(split);
  return html(
    "div",
    { class: "split-row", title: split.loc },
    html(
      "div",
      { class: "line-one" },
      html("b", {}, shortened(split.name, 30)),
      html("span", {}, `${split.op} · ${axisText(split)}`),
    ),
    html("div", { class: "lengths" }, shortened(shown, 46)),
    bar,
  );
}

function findingRow({ finding }) {
  return html(
    "div",
    { class: "finding-row", title: finding.loc },
    html(
      "div",
      { class: "line-one" },
      html("b", { class: finding.severity }, `${SIGNS[finding.severity]} ${finding.code}`),
      html("span", {}, shortened(finding.loc, 34)),
    ),
    html("div", { class: "text" }, finding.message),
  );
}

function nodeRow({ graph, node }) {
  return html(
    "div",
    { class: "node-row", title: `${graph.loc}/${graph.label(node)}` },
    html(
      "div",
      { class: "line-one" },
      html("b", {}, shortened(graph.op(node), 30)),
      html("span", {}, shortened(graph.title, 30)),
    ),
    html("div", { class: "text mono" }, shortened(graph.label(node), 44)),
  );
}

function changeRow({ change }) {
  const forms = [change.before, change.after].filter(Boolean);
  return html(
    "div",
    { class: "change-row", title: change.loc },
    html("div", { class: "line-one" }, html("b", { class: change.kind }, `${SIGNS[change.kind]} ${forms.join(" → ")}`)),
    html("div", { class: "text mono" }, shortened(change.name, 44)),
  );
}

const ROWS = { splits: splitRow, findings: findingRow, nodes: nodeRow, changes: changeRow };
