// Places a few boxes at a time, so that the cost is bounded whatever the size of the model: with dagre, or in a column.

// How boxes are arranged, the roomiest way first: side by side with the types on the edges; closer, with the types where
// one points at an edge; below one another.
const ARRANGEMENTS = [
  { space: { nodesep: 30, ranksep: 30, edgesep: 18, marginx: 14, marginy: 10 }, hasTypes: true },
  { space: { nodesep: 16, ranksep: 26, edgesep: 10, marginx: 8, marginy: 10 } },
  { isColumn: true },
];

/** Places blocks of a level: { width, height, boxes, edges }. setting: isOpen tells by its key whether a stretch is open;
 * room is the width that the layout should take at most. The first arrangement that fits is taken, or the narrowest. */
function layoutBlocks(level, blocks, setting, rails) {
  const measuredOnce = blocks.map((block) => measured(level, block, setting));
  let narrowest = null;
  for (const arrangement of ARRANGEMENTS) {
    const boxes = measuredOnce.map((box) => ({ ...box }));
    const layout = arranged(level, boxes, rails, { ...arrangement, room: setting.room });
    if (layout.width <= setting.room) return layout;
    if (!narrowest || layout.width < narrowest.width) narrowest = layout;
  }
  return narrowest;
}

function arranged(level, boxes, rails, arrangement) {
  const reads = wiring(level, boxes);
  if (rails.top) addRail(boxes, "rail-top", new Set(reads.filter((each) => !each.from).map((each) => each.value)));
  if (rails.bottom) addRail(boxes, "rail-bottom", leaving(level, boxes));
  const top = boxes.find((box) => box.kind === "rail-top");
  const bottom = boxes.find((box) => box.kind === "rail-bottom");
  for (const read of reads) read.from ??= top;
  if (bottom) {
    const source = sourceBoxes(boxes);
    for (const value of bottom.values) reads.push({ from: source.get(value), to: bottom, value });
  }
  return placed(
    level,
    boxes,
    merged(
      level,
      reads.filter((each) => each.from && each.to),
    ),
    arrangement,
  );
}

/** Which box reads which value from which other box; without `from` where the value comes from outside. */
function wiring(level, boxes) {
  const source = sourceBoxes(boxes);
  const reads = [];
  for (const box of boxes) {
    for (const value of box.ins) {
      const from = source.get(value);
      if (from !== box) reads.push({ from, to: box, value });
    }
  }
  return reads;
}

function sourceBoxes(boxes) {
  const source = new Map();
  for (const box of boxes) for (const value of box.outs ?? []) source.set(value, box);
  return source;
}

/** The values of the boxes that are read further down, or outside of the level. */
function leaving(level, boxes) {
  const end = Math.max(...boxes.map((box) => box.block?.to ?? 0));
  return new Set(boxes.flatMap((box) => [...(box.outs ?? [])].filter((value) => level.isReadFrom(value, end))));
}

function addRail(boxes, kind, values) {
  if (!values.size) return;
  const shown = [...values].slice(0, MOST_DOTS);
  const rail = { kind, values: shown, total: values.size, w: Math.max(26, shown.length * 14 + 8), h: 12 };
  rail.ins = rail.outs = new Set();
  boxes.push(rail);
}

/** One edge between two boxes for each value; one edge for all values that have one type or that are more than three. */
function merged(level, reads) {
  const pairs = new Map();
  for (const read of reads) {
    const key = read.from;
    if (!pairs.has(key)) pairs.set(key, new Map());
    const held = pairs.get(key);
    held.set(read.to, [...(held.get(read.to) ?? []), read]);
  }
  const edges = [];
  for (const held of pairs.values()) {
    for (const group of held.values()) {
      const types = new Set(group.map((read) => level.graph.data.types[read.value]));
      const isSplit = group[0].from.kind === "split";
      const isApart = isSplit || group[0].from.kind.startsWith("rail") || group[0].to.kind.startsWith("rail");
      const isColumn = isPill(group[0].from) || isPill(group[0].to);
      if (group.length <= 3 && !isColumn && (types.size > 1 || isApart))
        edges.push(...group.map((read) => ({ ...read, values: [read.value] })));
      else edges.push({ ...group[0], values: group.map((read) => read.value) });
    }
  }
  return edges;
}

function placed(level, boxes, edges, arrangement) {
  const { width, height } = arrangement.isColumn
    ? placedBelow(boxes, edges, arrangement.room)
    : placedByDagre(level, boxes, edges, arrangement);
  sortDots(boxes, edges);
  const ends = {
    from: spread(edges, "from", (edge) => edge.points[1][0]),
    to: spread(edges, "to", (edge) => edge.points.at(-2)[0]),
  };
  for (const edge of edges) anchor(edge, ends);
  return { width: Math.max(width, 60), height: Math.max(height, 30), boxes, edges };
}

function placedByDagre(level, boxes, edges, { space, hasTypes }) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", ...space });
  graph.setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box, index) => {
    box.id = String(index);
    graph.setNode(box.id, { width: box.w, height: box.h });
  });
  const labelled = new Map();
  edges.forEach((edge, index) => {
    edge.label = hasTypes ? edgeLabel(level, edge, labelled) : [];
    const width = Math.max(0, ...edge.label.map((text) => textWidth(text, LABEL_FONT))) + (edge.label.length ? 10 : 0);
    const weight = edge.from.kind === "input" || edge.to.kind === "output" ? 1 : 3;
    const size = { width, height: edge.label.length * LABEL_LINE + (edge.label.length ? 2 : 0), labelpos: "c", weight };
    graph.setEdge(edge.from.id, edge.to.id, size, String(index));
  });
  dagre.layout(graph, {
    customOrder: (layered, order) => order(layered, { constraints: partOrder(layered, boxes, edges) }),
  });
  for (const box of boxes) {
    const { x, y } = graph.node(box.id);
    box.x = x - box.w / 2;
    box.y = y - box.h / 2;
  }
  edges.forEach((edge, index) => {
    const { points, x, y } = graph.edge(edge.from.id, edge.to.id, String(index));
    edge.points = points.map((point) => [point.x, point.y]);
    edge.at = [x ?? edge.points[0][0], y ?? edge.points[0][1]];
  });
  return widened(boxes, edges, graph.graph(), space.marginx);
}

/** The size of a layout with room for all edges: dagre counts boxes and labels alone. */
function widened(boxes, edges, { width, height }, margin) {
  const across = edges.flatMap((edge) => edge.points.map(([x]) => x));
  const left = Math.max(0, margin - Math.min(...across));
  const right = Math.max(0, Math.max(...across) + margin - width);
  for (const box of boxes) box.x += left;
  for (const edge of edges) {
    edge.points = edge.points.map(([x, y]) => [x + left, y]);
    edge.at = [edge.at[0] + left, edge.at[1]];
  }
  return { width: width + left + right, height };
}

/** Constraints that keep the edges of a split's parts, and the boxes that read them, in the order of the parts: on each
 * layer of dagre's graph, whose edges are chains of dummy nodes. */
function partOrder(layered, boxes, edges) {
  const splits = new Map(boxes.filter((box) => box.kind === "split").map((box) => [box.id, box]));
  const layers = new Map();
  const note = (box, part, id) => {
    const key = `${box.id} ${layered.node(id).rank}`;
    if (!layers.has(key)) layers.set(key, []);
    layers.get(key).push([part, id]);
  };
  for (const id of layered.nodes()) {
    const { dummy, edgeObj } = layered.node(id);
    const box = dummy && edgeObj && splits.get(edgeObj.v);
    if (box) note(box, box.outputs.indexOf(edges[Number(edgeObj.name)].value), id);
  }
  for (const { from, to, value } of edges) {
    if (splits.has(from.id) && layered.hasNode(to.id)) note(from, from.outputs.indexOf(value), to.id);
  }
  return [...layers.values()].flatMap(betweenParts);
}

/** Each of a part's dummies is left of each of the next part's; those of one part are free. */
function betweenParts(layer) {
  const parts = new Map();
  for (const [part, id] of layer) if (!parts.has(id) || part < parts.get(id)) parts.set(id, part);
  const groups = new Map();
  for (const [id, part] of [...parts].sort((a, b) => a[1] - b[1])) groups.set(part, [...(groups.get(part) ?? []), id]);
  const ordered = [...groups.values()];
  return ordered
    .slice(1)
    .flatMap((right, place) => ordered[place].flatMap((left) => right.map((id) => ({ left, right: id }))));
}

/** The lines of text on an edge: its type. A value that goes to several boxes has its type at the first edge; the type of
 * an input or output is in its own box. */
function edgeLabel(level, edge, labelled) {
  const { from, to, values } = edge;
  const types = new Set(values.map((value) => level.graph.type(value)));
  if (from.kind === "rail-top" && to.kind === "repeat") return [];
  if (types.size > 1) return [count(values.length, "value")];
  if (values.every((value) => labelled.has(value)) || isPill(from) || isPill(to)) return [];
  values.forEach((value) => labelled.set(value, true));
  const times = values.length > 1 ? `${values.length} × ` : "";
  return typeLines(times + (level.graph.type(edge.value) || "unknown type"));
}

function isPill(box) {
  return ["input", "output", "captured"].includes(box.kind);
}

/** A type in one line, or a long one in two: the element type above the shape. */
function typeLines(text) {
  if (text.length <= SHORT_TYPE) return [text];
  const shape = text.indexOf("[");
  const lines = shape > 0 ? [text.slice(0, shape), text.slice(shape)] : [text];
  return lines.map((line) => shortened(line, LONGEST_TYPE));
}

/** The dots of a rail come in the order of the edges, so that these do not cross. */
function sortDots(boxes, edges) {
  for (const rail of boxes.filter((box) => box.kind.startsWith("rail"))) {
    const xs = new Map();
    for (const edge of edges) {
      if (edge.from === rail) for (const value of edge.values) xs.set(value, edge.points[1][0]);
      if (edge.to === rail) for (const value of edge.values) xs.set(value, edge.points.at(-2)[0]);
    }
    rail.values.sort((a, b) => (xs.get(a) ?? 0) - (xs.get(b) ?? 0));
  }
}

/** Where each edge meets a plain box, relative to the middle of the box: side by side, in the order of the edges. */
function spread(edges, end, key) {
  const byBox = new Map();
  for (const edge of edges) byBox.set(edge[end], [...(byBox.get(edge[end]) ?? []), edge]);
  const offsets = new Map();
  for (const [box, group] of byBox) {
    group.sort((a, b) => key(a) - key(b));
    const step = Math.min(16, (box.w * 0.6) / group.length);
    group.forEach((edge, place) => offsets.set(edge, (place - (group.length - 1) / 2) * step));
  }
  return offsets;
}

/** Moves the ends of an edge to the segment, dot or box that it leaves and enters. */
function anchor(edge, ends) {
  const { from, to, points } = edge;
  points[0] = [from.x + (leaveX(from, edge.value) ?? from.w / 2 + ends.from.get(edge)), from.y + from.h];
  points[points.length - 1] = [to.x + (enterX(to, edge.value) ?? to.w / 2 + ends.to.get(edge)), to.y];
}

function leaveX(box, value) {
  if (box.kind === "split") return SPLIT_PAD + outputX(box.split, box.outputs.indexOf(value), box.w - 2 * SPLIT_PAD);
  if (box.kind.startsWith("rail")) return dotX(box, value);
  return railX(box, "rail-bottom", box.standsFor?.get(value) ?? value);
}

function enterX(box, value) {
  if (box.kind.startsWith("rail")) return dotX(box, value);
  return railX(box, "rail-top", box.standsFor?.get(value) ?? value);
}

function dotX(rail, value) {
  const place = rail.values.indexOf(value);
  return place < 0 ? rail.w / 2 : rail.w / 2 + (place - (rail.values.length - 1) / 2) * 14;
}

/** Where the dot of a value is on a rail of a frame; undefined without one. */
function railX(box, kind, value) {
  const rail = box.inner?.boxes.find((each) => each.kind === kind);
  if (!rail || !rail.values.includes(value)) return undefined;
  return FRAME_PAD + rail.x + dotX(rail, value);
}
