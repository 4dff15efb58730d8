// Places boxes with dagre: a few boxes at a time, so that the cost is bounded whatever the size of the model.

const SPACE = { nodesep: 30, ranksep: 30, edgesep: 18, marginx: 14, marginy: 10 };
const FRAME_HEAD = 38;
const FRAME_PAD = 12;
const BAR_HEIGHT = 32;
const SPLIT_HEAD = 34;
const SPLIT_PAD = 12;
const LABEL_FONT = "10.5px mono";
const LONGEST_TYPE = 34;
const LONGEST_NAME = 34;
// Boxes of one call of dagre, and of a repeated layer that is drawn; dots of one rail.
const MOST_BOXES = 36;
const MOST_IN_FRAME = 60;
const MOST_DOTS = 24;

/** Places blocks of a level: { width, height, boxes, edges }. isOpen: tells by its key whether a stretch is open. */
function layoutBlocks(level, blocks, isOpen, rails) {
  const boxes = blocks.map((block) => measured(level, block, isOpen));
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
  return placed(level, boxes, merged(reads.filter((each) => each.from && each.to)));
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

/** At most one edge between two boxes for a value, and one edge for all values where there are more than three. */
function merged(reads) {
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
      if (group.length <= 3) edges.push(...group.map((read) => ({ ...read, values: [read.value] })));
      else edges.push({ ...group[0], values: group.map((read) => read.value) });
    }
  }
  return edges;
}

function placed(level, boxes, edges) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", ...SPACE });
  graph.setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box, index) => {
    box.id = String(index);
    graph.setNode(box.id, { width: box.w, height: box.h });
  });
  const labelled = new Map();
  edges.forEach((edge, index) => {
    edge.label = edgeLabel(level, edge, labelled);
    const width = edge.label ? textWidth(edge.label, LABEL_FONT) + 10 : 0;
    const weight = edge.from.kind === "input" || edge.to.kind === "output" ? 1 : 3;
    const size = { width, height: edge.label ? 15 : 0, labelpos: "c", weight };
    graph.setEdge(edge.from.id, edge.to.id, size, String(index));
  });
  dagre.layout(graph);
  for (const box of boxes) {
    const { x, y } = graph.node(box.id);
    box.x = x - box.w / 2;
    box.y = y - box.h / 2;
  }
  edges.forEach((edge, index) => {
    const { points, x, y } = graph.edge(edge.from.id, edge.to.id, String(index));
    edge.points = anchored(edge, points.map((point) => [point.x, point.y]));
    edge.at = [x, y];
  });
  const { width, height } = graph.graph();
  return { width: Math.max(width, 60), height: Math.max(height, 30), boxes, edges };
}

/** The type beside an edge. A value that goes to many boxes has its type at the first two edges. */
function edgeLabel(level, edge, labelled) {
  if (edge.from.kind === "rail-top" && edge.to.kind === "repeat") return "";
  if (edge.values.length > 1) return count(edge.values.length, "value");
  const times = labelled.get(edge.value) ?? 0;
  labelled.set(edge.value, times + 1);
  return times > 1 ? "" : shortened(level.graph.type(edge.value) || "unknown type", LONGEST_TYPE);
}

/** The points of an edge, from the segment, dot or box that it leaves to the one that it enters. */
function anchored(edge, points) {
  const { from, to } = edge;
  points[0] = [from.x + leaveX(from, edge.value), from.y + from.h - (from.kind === "split" ? SPLIT_PAD - 2 : 0)];
  if (from.kind === "split" && from.split.kind === "sequence") points[0][1] += 10;
  points[points.length - 1] = [to.x + enterX(to, edge.value), to.y];
  return points;
}

function leaveX(box, value) {
  if (box.kind === "split") return SPLIT_PAD + outputX(box.split, box.outputs.indexOf(value), box.w - 2 * SPLIT_PAD);
  if (box.kind.startsWith("rail")) return dotX(box, value);
  return railX(box, "rail-bottom", box.standsFor?.get(value) ?? value) ?? box.w / 2;
}

function enterX(box, value) {
  if (box.kind.startsWith("rail")) return dotX(box, value);
  return railX(box, "rail-top", box.standsFor?.get(value) ?? value) ?? box.w / 2;
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

/** A block as a box with its size. */
function measured(level, block, isOpen) {
  if (block.kind === "repeat") return repeatBox(level, block, isOpen);
  const { item } = block;
  const box = { block, item, key: block.key, kind: item.kind, ins: item.ins, outs: item.outs };
  if (item.kind === "stretch") return isOpen(block.key) ? openStretch(level, box, isOpen) : stretchBox(level, box);
  if (item.value >= 0) return pillBox(level, box);
  const graph = level.graph;
  const split = graph.splitOf.get(item.node);
  box.tags = tagsOf(graph, item.node);
  box.op = graph.op(item.node);
  box.name = graph.name(item.node);
  if (split) {
    Object.assign(box, { kind: "split", split, outputs: graph.data.outs[item.node] });
    const head = textWidth(box.op, "600 13px sans") + textWidth(axisText(split), "11px sans") + 56;
    const name = Math.min(300, textWidth(shortened(box.name, LONGEST_NAME), LABEL_FONT) + head);
    box.w = Math.max(barWidth(split), name) + 2 * SPLIT_PAD;
    box.h = SPLIT_HEAD + BAR_HEIGHT + SPLIT_PAD + (split.kind === "sequence" ? 12 : 0);
  } else {
    const name = textWidth(shortened(box.name, LONGEST_NAME), LABEL_FONT);
    box.w = Math.max(84, textWidth(box.op, "600 13px sans") + 28, name + 28);
    box.h = box.name ? 44 : 34;
    box.enters = graph.inner.get(item.node);
    if (box.enters) box.w += 26;
  }
  return withTags(box);
}

function withTags(box) {
  if (box.tags?.length) {
    box.tagWidth = box.tags.reduce((sum, tag) => sum + textWidth(tag.text, "600 10.5px sans") + 26, 0);
    box.w = Math.max(box.w, box.tagWidth + 12);
  }
  return box;
}

/** Marks at the corner of a box: its findings by code, and what a rewrite did to the node. */
function tagsOf(graph, node) {
  const tags = [];
  const codes = new Map((graph.findingsOf.get(node) ?? []).map((each) => [each.code, each.severity]));
  for (const [text, kind] of [...codes].slice(0, 3)) tags.push({ text, kind });
  if (graph.changeOf.has(node)) tags.push({ text: graph.changeOf.get(node).kind, kind: graph.changeOf.get(node).kind });
  return tags;
}

function pillBox(level, box) {
  box.name = level.graph.value(box.item.value);
  box.w = Math.max(60, textWidth(shortened(box.name, LONGEST_NAME), "11px mono") + textWidth(box.kind, "10px sans") + 36);
  box.h = 26;
  return box;
}

function stretchBox(level, box) {
  box.caption = operatorCaption(level.graph, box.item.nodes);
  box.title = count(box.item.nodes.length, "node");
  box.w = Math.max(130, textWidth(box.caption, "11px sans") + 36);
  box.h = 46;
  return box;
}

/** The commonest operators of a stretch: "MatMul × 4 · Add × 3 · Softmax · …". */
function operatorCaption(graph, nodes) {
  const counts = new Map();
  for (const node of nodes) if (!graph.isConstant(node)) counts.set(graph.op(node), (counts.get(graph.op(node)) ?? 0) + 1);
  const common = [...counts].sort((a, b) => b[1] - a[1]);
  const words = common.slice(0, 3).map(([op, times]) => shortened(op, 20) + (times > 1 ? ` × ${times}` : ""));
  return [...words, ...(common.length > 3 ? ["…"] : [])].join(" · ");
}

function openStretch(level, box, isOpen) {
  box.kind = "open";
  box.title = count(box.item.nodes.length, "node");
  box.level = level.opened.get(box.key) ?? stretchLevel(level.graph, box.item);
  level.opened.set(box.key, box.level);
  const blocks = box.level.items.map((_, index) => itemBlock(box.level, index));
  return framed(box, layoutBlocks(box.level, blocks, isOpen, { top: true, bottom: true }), 150);
}

function framed(box, inner, least) {
  box.inner = inner;
  box.w = Math.max(inner.width + 2 * FRAME_PAD, least);
  inner.x = (box.w - inner.width) / 2;
  // Rails are found relative to FRAME_PAD.
  for (const each of inner.boxes) each.x += inner.x - FRAME_PAD;
  for (const edge of inner.edges) {
    edge.points = edge.points.map(([x, y]) => [x + inner.x - FRAME_PAD, y]);
    edge.at = [edge.at[0] + inner.x - FRAME_PAD, edge.at[1]];
  }
  box.h = inner.height + FRAME_HEAD + 6;
  return box;
}
