// What is drawn of a graph: splits and their neighbours one by one, the nodes between them folded into stretches.
//
// An item is one box of the drawing: a split, a node, a stretch of nodes, an input or an output. Items come in
// topological order. Constants are not drawn, and neither is arithmetic on shapes, unless it is asked for.

// Consumers of a split's parts that are drawn one by one; a split may have thousands.
const MOST_NEIGHBOURS = 12;
const SHAPE_SOURCES = new Set(["Shape", "Size", "ShapeOf"]);
// Nodes of an opened stretch that are drawn one by one. A larger stretch opens as stretches of CHUNK nodes.
const MOST_OPENED = 120;
const CHUNK = 40;
const MOST_FIRST = 8;
// Nodes of a graph without splits that are drawn one by one; a larger graph opens as stretches.
const MOST_UNFOLDED = 1500;

/** Marks the nodes that only compute with sizes: what depends on nothing but Shape nodes and constants. */
function shapeArithmetic(graph) {
  const marks = new Uint8Array(graph.nodeCount);
  for (let node = 0; node < graph.nodeCount; node++) {
    const op = graph.op(node).split("::").pop();
    if (SHAPE_SOURCES.has(op)) {
      marks[node] = 1;
      continue;
    }
    if (graph.isConstant(node) || graph.inner.has(node)) continue;
    const read = graph.data.ins[node].filter((value) => value >= 0 && !graph.constants[value]);
    if (!read.length) continue;
    const small = graph.data.outs[node].every((value) => value < 0 || /^int(32|64)\[[^,]*\]$/.test(graph.type(value)));
    if (small && read.every((value) => graph.producer[value] >= 0 && marks[graph.producer[value]])) marks[node] = 1;
  }
  // What the graph gives as a result is drawn.
  for (const value of graph.data.outputs)
    if (value >= 0 && graph.producer[value] >= 0) marks[graph.producer[value]] = 0;
  return marks;
}

/** Nodes that have a box of their own: splits, findings, changes, nodes around a split, nodes with splits in bodies. */
function keptNodes(graph, hidden) {
  const kept = new Uint8Array(graph.nodeCount);
  for (const node of graph.findingsOf.keys()) kept[node] = 1;
  for (const node of graph.changeOf.keys()) if (!hidden[node] && !graph.isConstant(node)) kept[node] = 1;
  for (const [node, graphs] of graph.inner) if (graphs.some((inner) => graph.model.hasSplits(inner))) kept[node] = 1;
  for (const node of graph.splitOf.keys()) {
    kept[node] = 1;
    const source = graph.producer[graph.data.ins[node][0]] ?? -1;
    if (source >= 0 && !hidden[source]) kept[source] = 1;
    let left = MOST_NEIGHBOURS;
    for (const value of graph.data.outs[node]) {
      for (const consumer of value < 0 || left <= 0 ? [] : graph.consumers[value]) {
        if (left-- > 0 && !hidden[consumer]) kept[consumer] = 1;
      }
    }
  }
  return kept;
}

class Item {
  constructor(kind, nodes, order) {
    this.kind = kind;
    this.nodes = nodes;
    this.order = order;
    // Of inputs and outputs: the values.
    this.values = [];
    this.ins = new Set();
    this.outs = new Set();
    this.index = -1;
  }

  get node() {
    return this.nodes[0];
  }
}

/** The items of a graph as a level: in topological order, each with the values that it reads and gives. */
function graphLevel(graph, showShapes) {
  let hidden = showShapes ? new Uint8Array(graph.nodeCount) : shapeArithmetic(graph);
  if (hidden.every((mark, node) => mark || graph.isConstant(node))) hidden = new Uint8Array(graph.nodeCount);
  const kept = keptNodes(graph, hidden);
  for (let node = 0; node < graph.nodeCount; node++) if (kept[node]) hidden[node] = 0;
  const drawn = (node) => !hidden[node] && (!graph.isConstant(node) || kept[node]);
  const isUnmarked = !kept.includes(1);
  if (isUnmarked) unfold(kept, drawn);
  const itemOf = new Array(graph.nodeCount).fill(null);
  const items = stretches(graph, kept, drawn, itemOf);
  const level = new Level(graph, inOrder(connected(graph, items, itemOf, drawn)), new Set());
  level.isUnmarked = isUnmarked;
  return level;
}

/** Where nothing is marked, nothing can be folded around it: each node has a box, as long as these can be read. */
function unfold(kept, drawn) {
  const nodes = [...kept.keys()].filter(drawn);
  if (nodes.length <= MOST_UNFOLDED) for (const node of nodes) kept[node] = 1;
}

/** The items inside a stretch: its nodes, or stretches of CHUNK nodes where there are too many. */
function stretchLevel(graph, stretch) {
  const size = stretch.nodes.length > MOST_OPENED ? Math.max(CHUNK, Math.ceil(stretch.nodes.length / MOST_OPENED)) : 1;
  const inside = new Set(stretch.nodes);
  const items = [];
  const itemOf = new Map();
  for (let start = 0; start < stretch.nodes.length; start += size) {
    const nodes = stretch.nodes.slice(start, start + size);
    const item = new Item(nodes.length > 1 ? "stretch" : "node", nodes, nodes[0]);
    for (const node of nodes) itemOf.set(node, item);
    items.push(item);
  }
  for (const item of items) {
    for (const node of item.nodes) {
      const read = [...graph.data.ins[node], ...(graph.inner.has(node) ? graph.captured(node) : [])];
      for (const value of read) {
        const source = value < 0 ? undefined : itemOf.get(graph.producer[value]);
        if (source === item) continue;
        if (source) source.outs.add(value);
        if (source || stretch.ins.has(value)) item.ins.add(value);
      }
      for (const value of graph.data.outs[node]) if (stretch.outs.has(value)) item.outs.add(value);
    }
  }
  return new Level(graph, inOrder(items), stretch.outs);
}

/** Items that are drawn together. exported: the values that are read outside of the level. */
class Level {
  constructor(graph, items, exported) {
    this.graph = graph;
    this.items = items;
    this.exported = exported;
    this.source = new Map();
    this.lastUse = new Map();
    items.forEach((item, index) => {
      item.index = index;
      for (const value of item.outs) this.source.set(value, item);
    });
    for (const item of items) for (const value of item.ins) this.lastUse.set(value, item.index);
  }

  /** True for a value that is read by an item from this index on, or outside of the level. */
  isReadFrom(value, index) {
    return this.exported.has(value) || (this.lastUse.get(value) ?? -1) >= index;
  }
}

/** Boxes for nodes. Plain nodes that are connected, and have equally many boxes before them, are one stretch: so no
 * stretch can both feed a box and depend on it. */
function stretches(graph, kept, drawn, itemOf) {
  const depth = new Int32Array(graph.nodeCount);
  const union = new Int32Array(graph.nodeCount).map((_, node) => node);
  const root = (node) => {
    while (union[node] !== node) node = union[node] = union[union[node]];
    return node;
  };
  for (let node = 0; node < graph.nodeCount; node++) {
    if (!drawn(node)) continue;
    const sources = sourceNodes(graph, node).filter(drawn);
    for (const source of sources) depth[node] = Math.max(depth[node], depth[source] + kept[source]);
    if (kept[node]) continue;
    for (const source of sources) {
      if (!kept[source] && depth[source] === depth[node]) union[root(source)] = root(node);
    }
  }
  const groups = new Map();
  for (let node = 0; node < graph.nodeCount; node++) {
    if (!drawn(node)) continue;
    const key = kept[node] ? node : root(node);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(node);
  }
  return [...groups.values()].map((nodes) => {
    const kind = nodes.length > 1 ? "stretch" : graph.splitOf.has(nodes[0]) ? "split" : "node";
    const item = new Item(kind, nodes, nodes[0]);
    for (const node of nodes) itemOf[node] = item;
    return item;
  });
}

function sourceNodes(graph, node) {
  const found = [];
  for (const value of graph.data.ins[node])
    if (value >= 0 && graph.producer[value] >= 0) found.push(graph.producer[value]);
  if (graph.inner.has(node)) {
    for (const value of graph.captured(node)) if (graph.producer[value] >= 0) found.push(graph.producer[value]);
  }
  return found;
}

/** Adds inputs and outputs of the graph, and the values that go from item to item. */
function connected(graph, items, itemOf, drawn) {
  const sources = new Map();
  const inputs = new Set(graph.data.inputs);
  const readEverywhere = new Set();
  const far = Math.max(40, graph.nodeCount / 8);
  const feed = (value, item) => {
    const producer = graph.producer[value];
    if (graph.constants[value] || (producer >= 0 && (!drawn(producer) || itemOf[producer] === item))) return;
    if (producer < 0 && !sources.has(value)) {
      const kind = inputs.has(value) ? "input" : "captured";
      // Inputs of one item stay in the order in which it reads them: equal layers must have equal orders.
      const input = new Item(kind, [], item.order - 0.5 + sources.size * 1e-7);
      input.values.push(value);
      sources.set(value, input);
    } else if (producer < 0 && item.order - sources.get(value).order > far) {
      readEverywhere.add(sources.get(value));
    }
    item.ins.add(value);
    (producer < 0 ? sources.get(value) : itemOf[producer]).outs.add(value);
  };
  for (const item of items) {
    for (const node of item.nodes) {
      for (const value of graph.data.ins[node]) if (value >= 0) feed(value, item);
      if (graph.inner.has(node)) for (const value of graph.captured(node)) feed(value, item);
    }
  }
  for (const value of new Set(graph.data.outputs)) {
    if (value < 0 || (graph.producer[value] >= 0 && !drawn(graph.producer[value]))) continue;
    const producer = graph.producer[value];
    const output = new Item("output", [], producer < 0 ? graph.nodeCount : itemOf[producer].nodes.at(-1) + 0.5);
    output.values.push(value);
    feed(value, output);
    items.push(output);
  }
  // A few inputs that are read all over the graph come first, and belong to no layer.
  if (readEverywhere.size <= MOST_FIRST) for (const input of readEverywhere) input.order = -1;
  return inColumns([...items, ...sources.values()]);
}

/** Inputs that only one item reads become one item, and so do outputs of one item: a column instead of a row. */
function inColumns(items) {
  const source = new Map();
  const readers = new Map();
  for (const item of items) {
    for (const value of item.outs) source.set(value, item);
    for (const value of item.ins) readers.set(value, [...(readers.get(value) ?? []), item]);
  }
  const columns = new Map();
  return items.filter((item) => {
    const [value] = item.values;
    if (value === undefined) return true;
    const isOutput = item.kind === "output";
    const other = isOutput ? source.get(value) : readers.get(value)?.length === 1 && readers.get(value)[0];
    if (!other) return true;
    const key = columns.get(other) ?? {};
    columns.set(other, key);
    const first = key[item.kind];
    if (!first) {
      key[item.kind] = item;
      return true;
    }
    first.values.push(value);
    (isOutput ? first.ins : first.outs).add(value);
    return false;
  });
}

/** Topological order; among items that are ready, the order of the file. Items on a cycle come last. */
function inOrder(items) {
  const source = new Map();
  for (const item of items) for (const value of item.outs) source.set(value, item);
  const waitingFor = new Map();
  const next = new Map(items.map((item) => [item, []]));
  for (const item of items) {
    const before = new Set([...item.ins].map((value) => source.get(value)).filter(Boolean));
    waitingFor.set(item, before.size);
    for (const each of before) next.get(each).push(item);
  }
  const heap = new Heap((item) => item.order);
  for (const item of items) if (!waitingFor.get(item)) heap.push(item);
  const ordered = [];
  while (heap.size) {
    const item = heap.pop();
    ordered.push(item);
    for (const each of next.get(item)) {
      waitingFor.set(each, waitingFor.get(each) - 1);
      if (!waitingFor.get(each)) heap.push(each);
    }
  }
  const placed = new Set(ordered);
  ordered.push(...items.filter((item) => !placed.has(item)).sort((a, b) => a.order - b.order));
  return ordered;
}
