// Repeated layers: one frame that shows the first layer, and stands for all of them.

/** The frame of a run of equal layers, with its first layer inside. */
function repeatBox(level, block, setting) {
  const box = { block, key: block.key, kind: "repeat", count: block.count };
  const items = level.items.slice(block.from, block.to);
  const inside = new Set(items.flatMap((item) => [...item.outs]));
  box.ins = new Set(items.flatMap((item) => [...item.ins]).filter((value) => !inside.has(value)));
  box.outs = new Set([...inside].filter((value) => level.isReadFrom(value, block.to)));
  box.standsFor = represented(level, block);
  box.title = `× ${block.count.toLocaleString("en")}`;
  box.caption = layerNames(level, block);
  const least = textWidth(box.title, "700 14px sans") + textWidth(box.caption, "11px mono") + 90;
  const first = [];
  for (let index = block.from; index < block.from + Math.min(block.period, MOST_IN_FRAME); index++) {
    first.push(itemBlock(level, index));
  }
  const inner = layoutBlocks(level, first, insideFrame(setting), { top: true, bottom: true });
  return framed(box, inner, within(Math.max(220, least), setting));
}

/** For each value that any of the layers reads from outside, or gives to the outside, that of the first layer. */
function represented(level, block) {
  const found = new Map();
  for (let index = block.from; index < block.to; index++) {
    const item = level.items[index];
    const first = level.items[block.from + ((index - block.from) % block.period)];
    const [ins, outs] = [[...first.ins], [...first.outs]];
    [...item.ins].forEach((value, place) => found.has(value) || found.set(value, ins[place]));
    [...item.outs].forEach((value, place) => found.set(value, outs[place] ?? value));
  }
  return found;
}

/** The names of the first and the last layer, by the part in which their nodes' names differ. */
function layerNames(level, block) {
  const named = level.items.slice(block.from, block.from + block.period).find((item) => item.kind === "split");
  const item = named ?? level.items[block.from];
  if (item.values.length) return "";
  const last = level.items[item.index + (block.count - 1) * block.period];
  if (!last || last.values.length) return "";
  const [from, to] = [item, last].map((each) => level.graph.label(each.node));
  return shortened(`${from} … ${to}`, 60);
}

/** The item of the first layer that stands for an item of any layer of a run. */
function representative(level, block, index) {
  return level.items[block.from + ((index - block.from) % block.period)];
}
