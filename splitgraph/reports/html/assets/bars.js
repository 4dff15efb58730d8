// The bar of a split: one segment for each part, as wide as the part is long. `splitgraph report --svg` draws the same.

// Segments of one bar that are drawn; of more parts, the first and the last ones.
const MOST_SEGMENTS = 32;
const FIRST_SEGMENTS = 24;
const LAST_SEGMENTS = 2;
const GAP = 2;
const NARROWEST = 3;
const BAR_FONT = "500 12px mono";
const CAPTION_FONT = "11px mono";
const CAPTION_HEIGHT = 13;
const PART_COLOURS = 8;

/** The colour class of a part; neighbours differ. */
function partClass(part) {
  return `part-${part % PART_COLOURS}`;
}

/** The width at which every label of the bar fits, within reason. */
function barWidth(split) {
  if (split.kind === "string") return 220;
  const parts = shownParts(split);
  const total = parts.reduce((sum, part) => sum + part.weight, 0) || parts.length;
  const wanted = parts.map((part) => ((textWidth(part.text, BAR_FONT) + 16) * total) / (part.weight || total));
  return Math.round(Math.min(460, Math.max(200, parts.length * 6, ...wanted)));
}

/** The parts that are drawn; a run of parts that is left out is one part with `hidden`, their number. */
function shownParts(split) {
  if (!split.parts.length) return [{ text: "parts of unknown length", weight: 1, part: 0, unknown: true }];
  if (split.parts.length <= MOST_SEGMENTS) return split.parts;
  const first = split.parts.slice(0, FIRST_SEGMENTS);
  const last = split.parts.slice(-LAST_SEGMENTS);
  const hidden = split.parts.length - first.length - last.length;
  const mean = first.reduce((sum, part) => sum + part.weight, 0) / first.length || 1;
  return [
    ...first,
    { text: `… ${hidden.toLocaleString("en")} more …`, weight: 6 * mean, part: first.length, hidden },
    ...last,
  ];
}

/** Segments from left to right: { x, width, text, part, hidden }; `text` is empty where it does not fit. */
function segments(split, width, gap = GAP) {
  const parts = shownParts(split);
  const room = width - gap * (parts.length - 1);
  const total = parts.reduce((sum, part) => sum + part.weight, 0);
  let widths = parts.map((part) => Math.max(NARROWEST, total ? (part.weight / total) * room : room / parts.length));
  // What narrow parts take more than their share, the wide ones give.
  const excess = widths.reduce((sum, each) => sum + each, 0) - room;
  const wide = widths.filter((each) => each > 4 * NARROWEST).reduce((sum, each) => sum + each, 0);
  if (excess > 0 && wide > excess) {
    widths = widths.map((each) => (each > 4 * NARROWEST ? each * (1 - excess / wide) : each));
  }
  let x = 0;
  return parts.map((part, place) => {
    const segment = { ...part, x, width: widths[place] };
    x += widths[place] + gap;
    segment.full = part.text;
    segment.text = textWidth(part.text, BAR_FONT) + 6 <= segment.width ? part.text : "";
    return segment;
  });
}

/** The x of the middle of an output's segment, relative to the left end of the bar. */
function outputX(split, output, width) {
  if (split.kind === "sequence") return width / 2;
  if (split.kind === "string") return (width * (2 * output + 1)) / (2 * Math.max(2, split.outputs.length));
  const found = segments(split, width);
  const exact = found.find((each) => each.part === output && !each.hidden);
  const segment = exact ?? found.find((each) => each.hidden) ?? found.at(-1);
  return segment.x + segment.width / 2;
}

/** The labels that do not fit into their segments, for a row below the bar: { x, text, part }, as many as fit there. */
function narrowCaptions(split, width) {
  if (split.kind !== "split" && split.kind !== "variadic") return [];
  const captions = [];
  let free = 0;
  for (const segment of segments(split, width)) {
    if (segment.text || segment.hidden) continue;
    const half = textWidth(segment.full, CAPTION_FONT) / 2;
    const x = Math.min(Math.max(segment.x + segment.width / 2, half), width - half);
    if (x - half < free || x + half > width + 1) continue;
    captions.push({ x, text: segment.full, part: segment.part });
    free = x + half + 6;
  }
  return captions;
}

/** The bar as an SVG group at (0, 0). */
function drawBar(split, width, height) {
  const bar = svg("g", { class: `bar ${split.kind}` });
  if (split.kind === "string") return drawStringBar(bar, width, height);
  for (const segment of segments(split, width)) {
    const kind = segment.hidden || segment.unknown ? "part-more" : partClass(segment.part);
    const rest = split.rest === segment.part && !segment.hidden;
    const title = `${segment.full}${rest ? " (-1: the rest)" : ""}${outputName(split, segment)}`;
    bar.append(
      svg(
        "g",
        { class: `segment ${kind}`, transform: `translate(${segment.x.toFixed(1)})` },
        svg("title", {}, title),
        svg("rect", { class: "fill", width: segment.width.toFixed(1), height, rx: 3 }),
        svg("rect", { class: "edge", y: height - 4, width: segment.width.toFixed(1), height: 4, rx: 2 }),
        rest && svg("rect", { class: "rest", width: segment.width.toFixed(1), height, rx: 3 }),
        segment.text && svg("text", { x: (segment.width / 2).toFixed(1), y: height / 2 + 2.5 }, segment.text),
      ),
    );
  }
  for (const { x, text, part } of narrowCaptions(split, width)) {
    const caption = svg("text", { class: `narrow ${partClass(part)}`, x: x.toFixed(1), y: height + 11 }, text);
    bar.append(caption);
  }
  if (split.kind === "sequence") bar.append(drawBracket(width, height));
  return bar;
}

function outputName(split, segment) {
  const output = split.kind === "sequence" || segment.hidden ? null : split.outputs[segment.part];
  return output && output[0] ? ` · ${output[0]}` : "";
}

/** The parts of a sequence stay together: one bracket below the bar, from which one value leaves. */
function drawBracket(width, height) {
  const y = height + 4;
  return svg("path", {
    class: "bracket",
    d: `M1 ${y} v4 q0 3 3 3 H${width / 2 - 4} l4 4 l4 -4 H${width - 4} q3 0 3 -3 v-4`,
  });
}

/** StringSplit cuts the text of each element, not an axis. */
function drawStringBar(bar, width, height) {
  bar.append(svg("rect", { class: "fill", width, height, rx: 3 }));
  const text = "“ one ┊ two ┊ … ”";
  bar.append(svg("text", { x: width / 2, y: height / 2 + 4 }, text));
  bar.append(svg("title", {}, "each string is cut into pieces; the second output counts them"));
  return bar;
}

/** What stands beside the operator: the axis, or what is cut instead of an axis. */
function axisText(split) {
  if (split.kind === "string") return "cuts text";
  return split.axis === null ? "axis ?" : `axis ${split.axis}`;
}

/** How the parts are given back, in words. */
function kindText(split) {
  switch (split.kind) {
    case "sequence":
      return split.parts.length ? `one sequence of ${count(split.parts.length, "tensor")}` : "one sequence of tensors";
    case "string":
      return "pieces of each string";
    case "variadic":
      return `${count(split.outputs.length, "part")}${split.rest === undefined ? "" : `, part ${split.rest + 1} is the rest (-1)`}`;
    default:
      return count(split.outputs.length, "part");
  }
}
