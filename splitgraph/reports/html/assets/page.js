// The page: what is shown, selected and searched; every control calls one of these methods.

class Page {
  constructor(data) {
    this.data = data;
    this.models = data.models.map((each, side) => new Model(each, side));
    this.changes = (data.changes ?? []).map((each) => ({ ...each }));
    markChanges(this.models, this.changes);
    this.groups = groupsOf(data.groups ?? [], this.changes);
    this.openGroups = new Set();
    this.showShapes = false;
    this.stage = new Stage(byId("drawing"), {
      select: (box) => this.selectBox(box),
      open: (box) => this.openBox(box),
      canOpen: (box) => this.canOpen(box),
      enter: (graph) => this.showGraph(graph),
      value: (value) => this.showValue(this.graph, value, true),
    });
    this.list = new List(byId("list"), {
      reason: (entry) => this.search.reason(entry),
      choose: (entry) => this.choose(entry),
      open: () => this.openSelected(),
      press: (entry) => this.press(entry),
    });
    // After a rewrite, the result is what people look at first.
    this.tab = this.firstTab(this.models.at(-1));
    this.showModel(this.models.length - 1);
    this.showFirstError();
  }

  /** What people look for first: what is wrong, what changed, splits, or all nodes. */
  firstTab(model) {
    if (model.findingCount("error")) return "findings";
    if (this.changes.length) return "changes";
    return model.splits.length ? "splits" : "nodes";
  }

  showFirstError() {
    const place = this.list.entries.findIndex(({ finding }) => finding?.severity === "error");
    if (place >= 0) this.list.go(place);
    showPane(place >= 0 ? "details" : "drawing");
  }

  // Models and graphs

  /** Show one of the models; the node that is selected stays so, if the model has it. */
  showModel(side) {
    const before = this.selected?.node === undefined ? null : this.selected;
    const graphBefore = this.graph;
    this.side = side;
    this.model = this.models[side];
    this.search = this.search?.forModel(this.model) ?? new Search(this.model, this.changes);
    fillFilters(this);
    for (const [number, button] of [...document.querySelectorAll("#sides button")].entries()) {
      button.setAttribute("aria-pressed", number === side);
    }
    showHead(this);
    this.showGraph(this.model.graphLike(graphBefore));
    // The changes are the same in both models.
    this.refreshList(this.tab === "changes" ? this.list.current : -1);
    if (before) this.showCounterpart(before);
  }

  showCounterpart({ graph, node }) {
    const change = graph.changeOf.get(node);
    const [at, place] = change ? (change.nodes[this.side] ?? []) : [this.graph.number, this.graph.counterpart(graph, node)];
    if (place >= 0) this.showNode(this.model.graphs[at], place, null);
    else if (change) this.showOnlyChange(change);
  }

  /** The panel of a change whose node the model that is shown does not have. */
  showOnlyChange(change) {
    const side = change.nodes.findIndex(Boolean);
    const [graph, node] = change.nodes[side] ?? [];
    // Whoever goes back to the other model finds the node again.
    this.selected = side < 0 ? null : { graph: this.models[side].graphs[graph], node };
    this.setPanel(html("h2", {}, html("span", {}, change.name), closeButton(this)), ...changeParts(change));
  }

  showGraph(graph) {
    this.graph = graph;
    this.stage.show(graph, this.showShapes);
    showTrail(this);
    this.deselect();
  }

  setShapes(shown) {
    this.showShapes = shown;
    byId("shapes").setAttribute("aria-pressed", shown);
    this.stage.show(this.graph, shown);
  }

  // Selection

  deselect() {
    this.selected = null;
    this.stage.select(null);
    byId("panel").replaceChildren(...modelPanel(this));
  }

  setPanel(...parts) {
    byId("panel").replaceChildren(...parts);
    byId("panel").scrollTop = 0;
  }

  selectBox(box) {
    this.selected = box;
    this.stage.select(box.key);
    const plain = box.item && box.item.nodes.length === 1;
    if (plain) this.selected = { ...box, graph: this.graph, node: box.item.node };
    showPane("details");
    this.setPanel(...(plain ? nodePanel(this, this.graph, box.item.node) : boxPanel(this, this.graph, box)));
  }

  /** Show a node and everything known about it; the box that stands for it is scrolled into view. split: the report of
   * one call, where the node is in a function. */
  showNode(graph, node, split, brings = true) {
    if (graph !== this.graph) this.showGraph(graph);
    let place = this.placeOf(graph, node);
    if (!place && !this.showShapes && !graph.isConstant(node)) {
      this.setShapes(true);
      place = this.placeOf(graph, node);
    }
    this.selected = place && { ...place, graph, node };
    this.stage.select(place?.key ?? null);
    if (place && brings) this.stage.bring(place.key);
    this.stage.markSelected();
    this.setPanel(...nodePanel(this, graph, node, split));
  }

  showValue(graph, value, atProducer) {
    const node = atProducer ? graph.producer[value] : (graph.consumers[value][0] ?? graph.producer[value]);
    if (node >= 0 && node !== undefined) this.showNode(graph, node, null);
    else this.selectBoxOf(`input ${value}`);
  }

  selectBoxOf(key) {
    this.stage.bring(key);
    this.stage.select(key);
  }

  choose(entry) {
    showPane("drawing");
    if (entry.group) this.showGroup(entry.group);
    else if (entry.change) this.showChange(entry.change);
    else if (entry.at) this.showNode(this.model.graphs[entry.at[0]], entry.at[1], entry.split ?? null);
    else if (entry.split)
      this.setPanel(
        html("h2", {}, html("span", {}, entry.split.op), closeButton(this)),
        html("p", { class: "where mono" }, entry.split.loc),
        ...splitParts(entry.split),
      );
    else
      this.setPanel(
        html("h2", {}, html("span", {}, "Finding"), closeButton(this)),
        html("p", { class: "where mono" }, entry.finding.loc),
        ...findingParts([entry.finding]),
      );
  }

  /** Bring the first node of a group that is drawn into view, and mark all that are. */
  showGroup(group) {
    const drawn = (change) => {
      const [at, node] = change.nodes[this.side] ?? [];
      return at === this.graph.number ? this.placeOf(this.graph, node) : null;
    };
    const named = group.clusters.map(([first]) => first);
    this.showChange(named.find(drawn) ?? named[0]);
    this.selected = null;
    this.stage.markGroup(group.clusters.flat().flatMap((change) => drawn(change)?.key ?? []));
    this.setPanel(...groupParts(this, group));
  }

  showChange(change) {
    const here = change.nodes[this.side] ?? null;
    const side = here ? this.side : change.nodes.findIndex(Boolean);
    if (side >= 0 && side !== this.side) this.showModel(side);
    const [graph, node] = change.nodes[side] ?? [];
    if (node !== undefined) this.showNode(this.model.graphs[graph], node, null);
    else this.showOnlyChange(change);
  }

  // Folding

  /** The box that stands for a node: { key, kind, text }; text says why where it is folded. */
  placeOf(graph, node) {
    const view = this.stage.view(graph);
    let item = view.level.items.find((each) => each.nodes.includes(node));
    if (!item) return null;
    const block = view.blocks.find((each) => each.kind === "repeat" && item.index >= each.from && item.index < each.to);
    let text = "";
    if (block && !view.open.has(block.key)) {
      const layer = Math.floor((item.index - block.from) / block.period) + 1;
      const first = representative(view.level, block, item.index);
      if (layer > 1) text = `In layer ${layer} of ${block.count}, which are folded; the drawing shows the first one.`;
      const inFrame = first.index - block.from < MOST_IN_FRAME;
      item = inFrame && layer > 1 ? first : item;
      if (!inFrame) return { key: block.key, kind: "repeat", text, fold: block.key };
      if (layer > 1) return { key: itemKey(first), kind: first.kind, text, fold: block.key };
    }
    return this.placeInside(view, view.level, item, node, text);
  }

  placeInside(view, level, item, node, text) {
    const key = itemKey(item);
    if (item.nodes.length === 1) return { key, kind: item.kind, text };
    const folded = `Inside a folded box of ${count(item.nodes.length, "node")}.`;
    if (!view.open.has(key)) return { key, kind: "stretch", text: text || folded, fold: key };
    const inner = view.level.opened.get(key) ?? stretchLevel(level.graph, item);
    view.level.opened.set(key, inner);
    return this.placeInside(
      view,
      inner,
      inner.items.find((each) => each.nodes.includes(node)),
      node,
      text,
    );
  }

  foldedAt(graph, node) {
    const place = this.placeOf(graph, node);
    return place?.fold && place.text ? place : null;
  }

  openFold(graph, node, folded) {
    this.stage.view(graph).open.add(folded.fold);
    this.stage.rebuild();
    this.showNode(graph, node, null);
  }

  canOpen(box) {
    return Boolean(["repeat", "stretch", "open"].includes(box.kind) || box.enters);
  }

  openBox(box) {
    if (box.enters) this.showGraph(box.enters[0]);
    else if (this.canOpen(box)) this.toggle(box.key);
    else this.selectBox(box);
  }

  toggle(key) {
    this.stage.toggle(key);
    this.stage.select(key);
    const box = this.boxWith(key);
    if (box) this.selectBox(box);
  }

  boxWith(key) {
    const found = (boxes) => {
      for (const box of boxes) {
        if (box.key === key) return box;
        const inner = box.inner && found(box.inner.boxes);
        if (inner) return inner;
      }
      return null;
    };
    for (const band of this.stage.bands) {
      const box = band.layout && found(band.layout.boxes);
      if (box) return box;
    }
    return null;
  }

  /** What a click on a row does besides choosing it: a group of changes opens or closes. */
  press({ group }) {
    if (!group) return;
    if (!this.openGroups.delete(group.first)) this.openGroups.add(group.first);
    this.refreshList(this.list.current);
  }

  /** Open the selected box or group; or what hides the node that was chosen in a list. */
  openSelected() {
    const entry = this.list.entries[this.list.current];
    if (entry?.group) return this.press(entry);
    const box = this.selected && this.boxWith(this.selected.key);
    const { graph, node, fold, text } = this.selected ?? {};
    if (fold && text) this.openFold(graph, node, { fold });
    else if (box && this.canOpen(box)) this.openBox(box);
  }

  // Lists

  setTab(tab) {
    this.tab = tab;
    this.refreshList();
  }

  setFilter(name, value) {
    this.search[name] = value;
    if (name === "graph" && value !== "") this.showGraph(this.model.graphs[Number(value)]);
    this.showResults();
  }

  setQuery(query) {
    this.search.query = query;
    this.showResults();
  }

  /** List what was found; where this list has none of it, show the first one that has. */
  showResults() {
    const found = (tab) => this.search.entries(tab).length > 0;
    if (!found(this.tab)) this.tab = tabsOf(this).find(([tab]) => found(tab))?.[0] ?? this.tab;
    this.refreshList();
  }

  /** current: the entry that stays chosen. */
  refreshList(current = -1) {
    showTabs(this);
    const found = this.search.entries(this.tab);
    const entries = this.tab === "changes" ? groupedChanges(found, this.groups, this.openGroups) : found;
    this.list.nothing = this.search.isFiltered ? "Nothing matches." : `No ${this.tab}.`;
    this.list.set(entries, ROWS[this.tab], current);
    byId("found").textContent = `${count(found.length, "result")}`;
  }
}
