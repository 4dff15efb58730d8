// The boxes of a drawing: what is written on each, and how large it is.

const FRAME_HEAD = 38;
const FRAME_PAD = 12;
// Room for edges beside a frame.
const PASSING = 32;
const LEAST_BOX = 200;
const BAR_HEIGHT = 32;
const SPLIT_HEAD = 34;
const SPLIT_PAD = 12;
const NEEDS_HEIGHT = 15;
const LABEL_FONT = "11px mono";
const LABEL_LINE = 13;
const PILL_ROW = 30;
// Inputs or outputs that are written in one box.
const MOST_IN_COLUMN = 6;
const BODY_ROW = 22;
const MOST_BODIES = 4;
const LONGEST_TYPE = 34;
const SHORT_TYPE = 17;
const LONGEST_NAME = 34;
// Boxes of one call of dagre, and of a repeated layer that is drawn; dots of one rail.
const MOST_BOXES = 36;
const MOST_IN_FRAME = 60;
const MOST_DOTS = 24;

/** A block as a box with its size. setting: as of layoutBlocks. */
function measured(level, block, setting) {
  if (block.kind === "repeat") return repeatBox(level, block, setting);
  const { item } = block;
  const box = { block, item, key: block.key, kind: item.kind, ins: item.ins, outs: item.outs };
  if (item.kind === "stretch") return setting.isOpen(block.key) ? openStretch(level, box, setting) : stretchBox(level, box, setting);
  if (item.values.length) return pillBox(level, box);
  const graph = level.graph;
  const split = graph.splitOf.get(item.node);
  box.tags = tagsOf(graph, item.node);
  box.op = split ? split.op : graph.op(item.node);
  box.name = graph.name(item.node);
  if (split) {
    Object.assign(box, { kind: "split", split, outputs: graph.data.outs[item.node] });
    const head = textWidth(box.op, "600 13px sans") + textWidth(axisText(split), "11px sans") + 56;
    const name = Math.min(300, textWidth(shortened(box.name, LONGEST_NAME), LABEL_FONT) + head);
    box.needs = needsText(split);
    const needs = Math.min(300, textWidth(box.needs, LABEL_FONT));
    box.w = within(Math.max(barWidth(split), name, needs) + 2 * SPLIT_PAD, setting);
    const narrow = narrowCaptions(split, box.w - 2 * SPLIT_PAD);
    box.narrow = new Set(narrow.map((caption) => caption.part));
    const captions = narrow.length ? CAPTION_HEIGHT : 0;
    box.barTop = SPLIT_HEAD + (box.needs ? NEEDS_HEIGHT : 0);
    box.h = box.barTop + BAR_HEIGHT + SPLIT_PAD + Math.max(captions, split.kind === "sequence" ? 12 : 0);
    box.barBottom = box.barTop + BAR_HEIGHT + (split.kind === "sequence" ? 11 : captions);
  } else {
    const name = textWidth(shortened(box.name, LONGEST_NAME), LABEL_FONT);
    box.w = Math.max(84, textWidth(box.op, "600 13px sans") + 28, name + 28);
    box.h = box.name ? 44 : 34;
    box.enters = graph.inner.get(item.node);
    if (box.enters) addBodies(box);
  }
  return withTags(box);
}

/** What must hold for a split to be valid, in a line: "requires N % 3 == 0". */
function needsText(split) {
  const { needs = [] } = split;
  return needs.length ? `requires ${needs[0]}${needs.length > 1 ? `, … ${needs.length - 1} more` : ""}` : "";
}

/** A row for each body of a node, with the number of splits in the body. */
function addBodies(box) {
  box.bodies = box.enters.slice(0, MOST_BODIES).map((graph) => {
    const name = graph.title.split(" · ").at(-1);
    const splits = graph.splitOf.size ? ` · ${count(graph.splitOf.size, "split")}` : "";
    return { graph, text: `${shortened(name, 30)}${splits}` };
  });
  box.w = Math.max(box.w, ...box.bodies.map((body) => textWidth(body.text, "11px sans") + 50));
  box.h += 6 + box.bodies.length * BODY_ROW;
}

function withTags(box) {
  if (box.tags?.length) {
    box.tagWidth = box.tags.reduce((sum, tag) => sum + textWidth(tag.text, "600 11px sans") + 26, 0);
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
  const { values } = box.item;
  const shown = values.length > MOST_IN_COLUMN ? values.slice(0, MOST_IN_COLUMN - 1) : values;
  box.rows = shown.map((value) => ({
    name: shortened(level.graph.value(value), LONGEST_NAME),
    type: shortened(level.graph.type(value) || "unknown type", LONGEST_TYPE),
  }));
  const hidden = values.length - shown.length;
  if (hidden) box.rows.push({ name: `… ${hidden.toLocaleString("en")} more`, type: "" });
  box.name = level.graph.value(box.item.values[0]);
  box.role = textWidth(box.kind, "600 11px sans") + 8;
  const widths = box.rows.map((row) =>
    Math.max(textWidth(row.name, "600 11px mono") + box.role, textWidth(row.type, LABEL_FONT)),
  );
  box.w = Math.max(...widths) + 28;
  box.h = 10 + box.rows.length * PILL_ROW;
  return box;
}

function stretchBox(level, box, setting) {
  box.caption = operatorCaption(level.graph, box.item.nodes);
  box.title = count(box.item.nodes.length, "node");
  box.w = within(Math.max(130, textWidth(box.caption, "11px sans") + 36), setting);
  box.h = 46;
  return box;
}

/** The commonest operators of a stretch: "MatMul × 4 · Add × 3 · Softmax · …". */
function operatorCaption(graph, nodes) {
  const counts = new Map();
  for (const node of nodes)
    if (!graph.isConstant(node)) counts.set(graph.op(node), (counts.get(graph.op(node)) ?? 0) + 1);
  const common = [...counts].sort((a, b) => b[1] - a[1]);
  const words = common.slice(0, 3).map(([op, times]) => shortened(op, 20) + (times > 1 ? ` × ${times}` : ""));
  return [...words, ...(common.length > 3 ? ["…"] : [])].join(" · ");
}

function openStretch(level, box, setting) {
  box.kind = "open";
  box.title = count(box.item.nodes.length, "node");
  box.level = level.opened.get(box.key) ?? stretchLevel(level.graph, box.item);
  level.opened.set(box.key, box.level);
  const blocks = box.level.items.map((_, index) => itemBlock(box.level, index));
  return framed(box, layoutBlocks(box.level, blocks, insideFrame(setting), { top: true, bottom: true }), 150);
}

/** The setting of what is drawn in a frame: its sides, and the edges that pass it, take some of the room. */
function insideFrame({ isOpen, room }) {
  return { isOpen, room: room - 2 * FRAME_PAD - PASSING };
}

/** A width that leaves room for edges beside the box, as far as its text can be shortened. */
function within(width, { room }) {
  return Math.min(width, Math.max(LEAST_BOX, room - 2 * PASSING));
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
