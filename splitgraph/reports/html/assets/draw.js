// Draws placed boxes and edges as SVG.

/** A smooth line through points that come from top to bottom. */
function linePath(points) {
  const parts = [`M${points[0].map(round).join(" ")}`];
  for (let index = 1; index < points.length; index++) {
    const [[x0, y0], [x1, y1]] = [points[index - 1], points[index]];
    const bend = (y1 - y0) / 2;
    parts.push(`C${[x0, y0 + bend, x1, y1 - bend, x1, y1].map(round).join(" ")}`);
  }
  return parts.join("");
}

function round(number) {
  return Math.round(number * 10) / 10;
}

/** The contents of a band or a frame: edges below boxes, types above edges. */
function drawLayout(layout, graph, actions) {
  const lines = svg("g", { class: "lines" });
  const labels = svg("g", { class: "labels" });
  const boxes = svg("g", { class: "boxes" });
  for (const edge of layout.edges) {
    lines.append(drawEdge(edge, graph));
    if (edge.label.length) labels.append(drawLabel(edge, graph));
  }
  for (const box of layout.boxes) boxes.append(drawBox(box, graph, actions));
  return svg("g", {}, lines, boxes, drawStubs(layout.edges), labels);
}

/** The part of an edge that is inside the card of a split: from the bar to the lower edge of the card. */
function drawStubs(edges) {
  const stubs = svg("g", { class: "stubs" });
  for (const edge of edges.filter((each) => each.from.kind === "split")) {
    const [x, bottom] = edge.points[0];
    const part = partOf(edge);
    const kind = part >= 0 ? `line of-stub ${partClass(part)}` : "line";
    // Below the label of a narrow part, or the bracket of a sequence.
    const { y, barTop, barBottom, narrow } = edge.from;
    const top = y + (part >= 0 && !narrow.has(part) ? barTop + BAR_HEIGHT : barBottom);
    stubs.append(svg("path", { class: kind, d: `M${round(x)} ${round(top)} V${round(bottom)}` }));
  }
  return stubs;
}

/** The part of a split from which an edge comes; -1 for another edge. */
function partOf(edge) {
  const split = edge.from.kind === "split" && edge.from.split;
  return split && ["split", "variadic"].includes(split.kind) ? edge.from.outputs.indexOf(edge.value) : -1;
}

function drawEdge(edge, graph) {
  const part = partOf(edge);
  const rail = edge.to.kind.startsWith("rail") || edge.from.kind.startsWith("rail");
  const kinds = ["line", part >= 0 && partClass(part), edge.values.length > 1 && "several", rail && "rail-line"];
  const path = svg("path", { d: linePath(edge.points), class: kinds.filter(Boolean).join(" ") });
  const [x, y] = edge.points.at(-1);
  const head = rail && edge.to.kind.startsWith("rail") ? null : svg("path", { class: "head", d: arrow(x, y) });
  const names = edge.values.map((value) => typedName(graph, value));
  const title = names.slice(0, 12).join("\n") + (names.length > 12 ? `\n… ${names.length - 12} more` : "");
  return svg(
    "g",
    { class: part >= 0 ? `edge of-part ${partClass(part)}` : "edge" },
    svg("title", {}, title),
    path,
    head,
  );
}

function arrow(x, y) {
  return `M${round(x - 3.5)} ${round(y - 6)} L${round(x)} ${round(y - 0.5)} L${round(x + 3.5)} ${round(y - 6)}Z`;
}

/** The name of a value and its type. */
function typedName(graph, value) {
  return `${graph.value(value)}: ${graph.type(value) || "unknown type"}`;
}

function drawLabel(edge, graph) {
  const full = edge.values.map((value) => typedName(graph, value));
  const kind = edge.values.length === 1 && !graph.type(edge.value) ? "type unknown" : "type";
  const [x, y] = edge.at.map(round);
  const width = round(Math.max(...edge.label.map((text) => textWidth(text, LABEL_FONT))) + 8);
  const height = edge.label.length * LABEL_LINE + 2;
  const top = -height / 2;
  return svg(
    "g",
    { class: kind, transform: `translate(${x} ${y})` },
    svg("title", {}, full.slice(0, 12).join("\n")),
    svg("rect", { x: -width / 2, y: top, width, height, rx: 4 }),
    ...edge.label.map((text, line) => svg("text", { y: top + 11 + line * LABEL_LINE }, text)),
  );
}

/** A box as a group that can be focused, selected and opened. */
function drawBox(box, graph, actions) {
  if (box.kind.startsWith("rail")) return drawRail(box, graph, actions);
  const drawn = svg("g", {
    class: `box ${box.kind} ${(box.tags ?? []).map((tag) => `has-${tag.kind}`).join(" ")}`,
    transform: `translate(${round(box.x)} ${round(box.y)})`,
    "data-key": box.key,
    tabindex: 0,
    role: "button",
    "aria-label": spoken(box),
    click: (event) => {
      event.stopPropagation();
      actions.select(box);
    },
    dblclick: (event) => {
      event.stopPropagation();
      actions.open(box);
    },
    keydown: (event) => {
      if ((event.key !== "Enter" && event.key !== " ") || event.target !== event.currentTarget) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Enter" && actions.canOpen(box)) actions.open(box);
      else actions.select(box);
    },
  });
  DRAWING[box.kind in DRAWING ? box.kind : "node"](drawn, box, graph, actions);
  drawTags(drawn, box);
  return drawn;
}

/** What a screen reader says of a box. */
function spoken(box) {
  if (box.kind === "split") return `${box.op} ${box.name}, ${axisText(box.split)}, ${box.split.lengthsText}`;
  if (box.kind === "repeat") return `${box.count} equal layers, folded; Enter opens them`;
  if (box.kind === "stretch") return `${box.title} folded: ${box.caption}; Enter opens them`;
  if (box.kind === "open") return `${box.title}, open; Enter folds them`;
  return `${box.op ?? box.kind} ${box.name}`;
}

const DRAWING = {
  node(drawn, box, graph, actions) {
    drawn.append(card(box, 7));
    const x = box.w / 2;
    drawn.append(svg("text", { class: "op", x, y: box.name ? 19 : 21.5 }, shortened(box.op, 40)));
    if (box.name) drawn.append(svg("text", { class: "name", x, y: 34 }, shortened(box.name, LONGEST_NAME)));
    (box.bodies ?? []).forEach((body, row) => drawn.append(bodyRow(box, body, row, actions)));
  },
  split(drawn, box) {
    const { split } = box;
    drawn.append(card(box, 9), svg("text", { class: "op", x: SPLIT_PAD, y: 22 }, box.op));
    const after = SPLIT_PAD + textWidth(box.op, "600 13px sans") + 10;
    const axis = axisText(split);
    const room = box.w - after - textWidth(axis, "11px sans") - 40;
    const name = fitted(shortened(box.name, LONGEST_NAME), room, LABEL_FONT);
    drawn.append(svg("text", { class: "name left", x: after, y: 22 }, name));
    const width = textWidth(axis, "600 11px sans") + 14;
    const chip = svg("g", { class: "chip", transform: `translate(${round(box.w - SPLIT_PAD - width)} 9)` });
    chip.append(svg("rect", { width: round(width), height: 17, rx: 8.5 }));
    chip.append(svg("text", { x: round(width / 2), y: 12 }, axis));
    const bar = drawBar(split, box.w - 2 * SPLIT_PAD, BAR_HEIGHT);
    bar.setAttribute("transform", `translate(${SPLIT_PAD} ${box.barTop})`);
    if (box.needs) {
      const needs = fitted(box.needs, box.w - 2 * SPLIT_PAD, LABEL_FONT);
      drawn.append(svg("text", { class: "name left needs", x: SPLIT_PAD, y: SPLIT_HEAD + 6 }, needs));
    }
    drawn.append(chip, bar);
  },
  stretch(drawn, box) {
    drawn.append(svg("rect", { class: "sheet", x: 5, y: 5, width: box.w - 4, height: box.h - 1, rx: 7 }));
    drawn.append(card(box, 7));
    drawn.append(svg("text", { class: "op", x: box.w / 2, y: 20 }, box.title));
    drawn.append(svg("text", { class: "caption", x: box.w / 2, y: 36 }, fitted(box.caption, box.w - 20, "11px sans")));
  },
  input(drawn, box) {
    drawn.append(card(box, 18));
    box.rows.forEach((row, place) => {
      const left = (box.w - box.role - textWidth(row.name, "600 11px mono")) / 2;
      const top = 17 + place * PILL_ROW;
      drawn.append(svg("text", { class: "role", x: left, y: top }, box.kind));
      drawn.append(svg("text", { class: "value", x: left + box.role, y: top }, row.name));
      drawn.append(svg("text", { class: "name", x: box.w / 2, y: top + 13.5 }, row.type));
    });
  },
  repeat(drawn, box, graph, actions) {
    frame(drawn, box, graph, actions, "open the layers", "⤢");
    const width = textWidth(box.title, "700 13px sans") + 18;
    const badge = svg("g", { class: "badge", transform: "translate(12 9)" });
    badge.append(svg("rect", { width: round(width), height: 21, rx: 10.5 }));
    badge.append(svg("text", { x: round(width / 2), y: 15 }, box.title));
    const room = box.w - width - 66;
    const caption = fitted(box.caption, room, "11px mono");
    drawn.append(badge, svg("text", { class: "name left", x: width + 22, y: 24 }, caption));
  },
  open(drawn, box, graph, actions) {
    frame(drawn, box, graph, actions, "fold these nodes", "−");
    drawn.append(svg("text", { class: "op left", x: 14, y: 24 }, box.title));
  },
};
DRAWING.output = DRAWING.captured = DRAWING.input;

/** The body of an If or a loop, or of the function that a node calls: a click shows it. */
function bodyRow(box, body, row, actions) {
  const y = box.h - 4 - (box.bodies.length - row) * BODY_ROW;
  const press = (event) => {
    event.stopPropagation();
    actions.enter(body.graph);
  };
  const group = svg("g", { class: "body-row", transform: `translate(6 ${y})`, click: press });
  group.append(svg("title", {}, `show ${body.graph.title}`));
  group.append(svg("rect", { width: round(box.w - 12), height: BODY_ROW - 3, rx: 5 }));
  group.append(
    svg("text", { x: 9, y: 13.5 }, body.text),
    svg("text", { class: "go", x: round(box.w - 24), y: 13.5 }, "›"),
  );
  return group;
}

function card(box, radius) {
  return svg("rect", { class: "card", width: round(box.w), height: round(box.h), rx: radius });
}

function frame(drawn, box, graph, actions, title, sign) {
  drawn.append(
    card(box, 12),
    corner(box, sign, title, () => actions.open(box)),
  );
  const inner = drawLayout(box.inner, graph, actions);
  inner.setAttribute("transform", `translate(${FRAME_PAD} ${FRAME_HEAD})`);
  drawn.append(inner);
}

/** A small button at the top right corner of a box. */
function corner(box, sign, title, act) {
  const press = (event) => {
    event.stopPropagation();
    act();
  };
  return svg(
    "g",
    { class: "corner", transform: `translate(${round(box.w - 30)} ${box.inner ? 8 : 6})`, click: press },
    svg("title", {}, title),
    svg("rect", { width: 22, height: 22, rx: 6 }),
    svg("text", { x: 11, y: 15.5 }, sign),
  );
}

/** The codes of findings and the kind of change, on the lower edge of the box. */
function drawTags(drawn, box) {
  let x = box.w - (box.tagWidth ?? 0) - 2;
  for (const tag of box.tags ?? []) {
    const width = textWidth(tag.text, "600 11px sans") + 22;
    const group = svg("g", { class: `tag ${tag.kind}`, transform: `translate(${round(x)} -13)` });
    group.append(
      svg("rect", { width: round(width), height: 17, rx: 8.5 }),
      svg("text", { class: "sign", x: 6.5, y: 12 }, SIGNS[tag.kind]),
    );
    group.append(svg("text", { x: 17, y: 12 }, tag.text));
    drawn.append(group);
    x += width + 4;
  }
}

// Severities and changes differ in more than their colours.
const SIGNS = { error: "✕", warning: "!", info: "i", added: "+", removed: "−", changed: "~" };

/** The values that enter or leave a band or a frame, one dot each. */
function drawRail(rail, graph, actions) {
  const group = svg("g", { class: `rail ${rail.kind}`, transform: `translate(${round(rail.x)} ${round(rail.y)})` });
  group.append(svg("rect", { y: 2, width: round(rail.w), height: 8, rx: 4 }));
  for (const value of rail.values) {
    const dot = svg("circle", { cx: round(dotX(rail, value)), cy: 6, r: 3.5, click: () => actions.value(value) });
    dot.append(svg("title", {}, `${graph.value(value)}: ${graph.type(value) || "unknown type"}`));
    group.append(dot);
  }
  return group;
}
