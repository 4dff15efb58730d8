// The controls around the drawing: tabs, filters, the trail of graphs, the theme, the keys.

const TABS = [
  ["changes", "Changes"],
  ["splits", "Splits"],
  ["findings", "Findings"],
  ["nodes", "Nodes"],
];

function tabsOf(page) {
  return TABS.filter(([tab]) => tab !== "changes" || page.models.length > 1);
}

function showTabs(page) {
  const buttons = tabsOf(page).map(([tab, title]) => {
    const number = tab === "nodes" && !page.search.isFiltered ? page.model.nodeTotal : page.search.entries(tab).length;
    return html(
      "button",
      { role: "tab", "aria-selected": tab === page.tab, class: "tab", "data-tab": tab, click: () => page.setTab(tab) },
      title,
      html("span", { class: "number" }, number.toLocaleString("en")),
    );
  });
  byId("tabs").replaceChildren(...buttons);
}

function fillFilters(page) {
  const ops = [...page.model.data.ops].sort((a, b) => a.localeCompare(b));
  fillSelect(
    page,
    "operator",
    "operator",
    ops.map((op) => [op, op]),
  );
  const severities = ["error", "warning", "info"].filter((each) => page.model.findingCount(each));
  fillSelect(
    page,
    "severity",
    "severity",
    severities.map((each) => [each, each]),
  );
  const graphs = page.model.graphs.slice(0, 2000).map((graph) => [graph.number, shortened(graph.title, 40)]);
  fillSelect(page, "graph", "graph", graphs);
}

function fillSelect(page, name, any, entries) {
  const select = byId(`filter-${name}`);
  const options = entries.map(([value, text]) => html("option", { value }, text));
  select.replaceChildren(html("option", { value: "" }, any), ...options);
  select.value = String(page.search[name]);
  if (select.selectedIndex < 0) select.value = page.search[name] = "";
  select.disabled = entries.length < 1;
  select.onchange = () => page.setFilter(name, select.value);
}

/** The graphs around the one that is shown, each a button. */
function showTrail(page) {
  const trail = [];
  for (let graph = page.graph; graph; graph = graph.data.parent && page.model.graphs[graph.data.parent[0]])
    trail.unshift(graph);
  const parts = trail.flatMap((graph, place) => {
    const current = graph === page.graph;
    const button = html(
      "button",
      { class: "crumb", "aria-current": current && "page", click: () => page.showGraph(graph) },
      shortened(graph.title, 44),
    );
    return place ? [html("span", { "aria-hidden": true }, "›"), button] : [button];
  });
  byId("trail").replaceChildren(...parts);
}

function showHead(page) {
  const { model } = page;
  document.title = `${page.data.title} · splitgraph`;
  byId("title").textContent = page.data.title;
  byId("title").title = page.models.map((each) => each.data.name).join("\n");
  const facts = [[model.data.opset], [count(model.nodeTotal, "node")], [count(model.splits.length, "split")]];
  if (page.models.length > 1) {
    const opsets = [...new Set(page.models.map((each) => each.data.opset))].join(" → ");
    facts.splice(0, 3, [opsets], [count(page.changes.length, "change")]);
  }
  for (const severity of ["error", "warning", "info"]) {
    const number = model.findingCount(severity);
    const noun = severity === "info" ? "note" : severity;
    if (number) facts.push([`${SIGNS[severity]} ${count(number, noun)}`, severity]);
  }
  if (!model.findings.length) facts.push(["✓ no findings", "clean"]);
  byId("facts").replaceChildren(...facts.map(([text, kind]) => html("li", { class: kind ?? "" }, text)));
}

const KEYS = [
  ["/", "search", () => byId("search").focus()],
  ["j ↓", "next in the list", (page) => page.list.step(1)],
  ["k ↑", "previous in the list", (page) => page.list.step(-1)],
  ["Enter", "open what is folded, or enter a body", (page) => page.openSelected()],
  ["Esc", "close, or clear the search", (page) => leave(page)],
  [
    "u",
    "to the graph around",
    (page) => page.graph.data.parent && page.showGraph(page.model.graphs[page.graph.data.parent[0]]),
  ],
  ["+ =", "zoom in", (page) => page.stage.setZoom(page.stage.zoom * 1.25)],
  ["-", "zoom out", (page) => page.stage.setZoom(page.stage.zoom / 1.25)],
  ["0", "zoom to 100%", (page) => page.stage.setZoom(1)],
  ["b", "before or after", (page) => page.models.length > 1 && page.showModel(1 - page.side)],
  ["s", "show or hide arithmetic on shapes", (page) => byId("shapes").click()],
  ["t", "light or dark", () => toggleTheme()],
  ["?", "these keys", () => byId("help").showModal()],
];
const NAMES = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

function enableKeys(page) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const key = NAMES[event.key] ?? event.key;
    const typing = event.target.matches("input, select");
    if (typing && !["Esc", "↓", "↑"].includes(key)) return;
    if (typing && event.target.matches("select") && key !== "Esc") return;
    // A button that has the focus is pressed by Enter.
    if (key === "Enter" && event.target.closest("button, .box")) return;
    const found = KEYS.find(([keys]) => keys.split(" ").includes(key));
    if (!found || byId("help").open) return;
    event.preventDefault();
    found[2](page);
  });
  const rows = KEYS.filter(([key]) => key !== "b" || page.models.length > 1);
  byId("keys").replaceChildren(
    ...rows.map(([keys, meaning]) =>
      html("tr", {}, html("th", {}, ...keys.split(" ").map((key) => html("kbd", {}, key))), html("td", {}, meaning)),
    ),
  );
}

function leave(page) {
  if (document.activeElement === byId("search")) {
    byId("search").value = "";
    page.setQuery("");
    document.activeElement.blur();
  } else page.deselect();
}

// On a narrow screen, one of these is shown at a time.
const PANES = ["list", "drawing", "details"];

function showPane(name) {
  document.body.dataset.pane = name;
  for (const each of PANES) byId(`show-${each}`).setAttribute("aria-selected", each === name);
}

function enableControls(page) {
  for (const each of PANES) byId(`show-${each}`).addEventListener("click", () => showPane(each));
  byId("save").addEventListener("click", () => saveDrawing(page));
  byId("search").addEventListener("input", (event) => page.setQuery(event.target.value));
  byId("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    page.list.go(0);
  });
  byId("zoom-in").addEventListener("click", () => page.stage.setZoom(page.stage.zoom * 1.25));
  byId("zoom-out").addEventListener("click", () => page.stage.setZoom(page.stage.zoom / 1.25));
  byId("zoom").addEventListener("click", () => page.stage.setZoom(1));
  byId("theme").addEventListener("click", toggleTheme);
  byId("print").addEventListener("click", () => window.print());
  byId("show-help").addEventListener("click", () => byId("help").showModal());
  byId("close-help").addEventListener("click", () => byId("help").close());
  byId("shapes").addEventListener("click", () => page.setShapes(!page.showShapes));
  if (page.models.length > 1) {
    byId("sides").hidden = false;
    for (const [side, title] of ["Before", "After"].entries()) {
      const button = html("button", { "aria-pressed": side === page.side, click: () => page.showModel(side) }, title);
      byId("sides").append(button);
    }
  }
}
