// Printing: the drawing in pieces of a page each, then every change, split and finding.

const MOST_PRINTED = 500;
// What fits on a page of A4 or Letter, in pixels; the scale at which the drawing is cut into columns, each of which may
// be somewhat smaller; and the pages that a drawing may take.
const PAPER = { width: 680, height: 840 };
const LEAST_PRINTED = 0.6;
const SHRUNK = 1.25;
const MOST_PAGES = 24;
// Pixels above a box that the marks of findings and changes take.
const MARK = 14;

function enablePrinting(page) {
  window.addEventListener("beforeprint", () => byId("printed").replaceChildren(...printedParts(page)));
  window.addEventListener("afterprint", () => byId("printed").replaceChildren());
}

function printedParts(page) {
  const { splits, findings } = page.model;
  const changes = groupedChanges(
    page.changes.map((change) => ({ change })),
    page.groups,
    new Set(),
  );
  const parts = printedDrawing(page.stage);
  if (changes.length) parts.push(html("h2", {}, "Changes"), ...limited(changes, printedChange));
  if (splits.length) parts.push(html("h2", {}, "Splits"), ...limited(splits, printedSplit));
  if (findings.length) parts.push(html("h2", {}, "Findings"), ...limited(findings, printedFinding));
  return parts;
}

/** The drawing of the graph that is shown, cut into pieces; where it would take too many pages, where to find it. */
function printedDrawing(stage) {
  const pieces = [];
  for (const band of stage.bands) {
    const layout = stage.layOut(band);
    pieces.push(...piecesOf(layout).map((piece) => ({ layout, ...piece })));
    if (pieces.length > MOST_PAGES) return [tooLarge(stage)];
  }
  return pieces.map((piece, place) => printedPiece(stage, piece, `${place + 1} of ${pieces.length}`));
}

function tooLarge(stage) {
  const address = html("a", { href: location.href }, location.href);
  const text = `The drawing of ${count(stage.graph.nodeCount, "node")} takes more than ${MOST_PAGES} pages. It is at `;
  return html("p", { class: "too-large" }, text, address, ", where SVG saves it as one picture.");
}

/** The pieces of a layout: { x, y, width, height, scale }, in units of the layout, from top to bottom. */
function piecesOf(layout) {
  const columns = Math.max(1, Math.ceil((layout.width * LEAST_PRINTED) / PAPER.width / SHRUNK));
  const scale = Math.min(1, (PAPER.width * columns) / layout.width);
  const [most, across] = [PAPER.height / scale, layout.width / columns];
  const whole = uncut(layout, 0);
  const pieces = [];
  for (let y = 0; y < layout.height; ) {
    const end = layout.height - y <= most ? layout.height : cutBetween(whole, y, y + most);
    for (let column = 0; column < columns; column++)
      pieces.push({ x: column * across, y, width: across, height: end - y, scale });
    y = end;
  }
  return pieces;
}

/** What no cut should go through, from top to bottom: boxes with the marks above them, heads of frames, types. */
function uncut(layout, y) {
  const boxes = layout.boxes.flatMap((box) => {
    const top = y + box.y;
    const head = { top: top - MARK, bottom: top + (box.inner ? FRAME_HEAD : box.h) };
    return box.inner ? [head, ...uncut(box.inner, top + FRAME_HEAD)] : [head];
  });
  const labels = layout.edges.map(({ at, label }) => ({
    top: y + at[1] - (label.length * LABEL_LINE) / 2,
    bottom: y + at[1] + (label.length * LABEL_LINE) / 2,
  }));
  return [...boxes, ...labels];
}

/** The lowest place up to `most` that cuts through nothing; `most` itself if that is far up. */
function cutBetween(whole, from, most) {
  for (let place = most; place > (from + most) / 2; ) {
    const cut = whole.filter(({ top, bottom }) => top < place && place < bottom).map(({ top }) => top);
    if (!cut.length) return place;
    place = Math.min(...cut);
  }
  return most;
}

function printedPiece(stage, { layout, x, y, width, height, scale }, place) {
  const size = { width: Math.floor(width * scale), height: Math.floor(height * scale) };
  const drawing = svg("svg", { class: "drawing", viewBox: [x, y, width, height].map(round).join(" "), ...size });
  drawing.append(drawLayout(layout, stage.graph, stage.actions));
  return html("figure", { class: "piece" }, drawing, html("figcaption", {}, `${stage.graph.title}, ${place}`));
}

function limited(entries, draw) {
  const drawn = entries.slice(0, MOST_PRINTED).map(draw);
  if (entries.length > MOST_PRINTED)
    drawn.push(html("p", {}, `${(entries.length - MOST_PRINTED).toLocaleString("en")} more are not printed.`));
  return drawn;
}

function printedSplit(split) {
  const width = 460;
  const drawing = svg(
    "svg",
    { viewBox: `-1 -1 ${width + 2} ${BAR_HEIGHT + 14}`, class: "printed-bar" },
    drawBar(split, width, BAR_HEIGHT),
  );
  const outputs = split.outputs.slice(0, 12).map(([name, type]) => `${name}: ${split.type(type)}`);
  return html(
    "section",
    { class: "printed-split" },
    html("h3", {}, `${split.op} · ${axisText(split)} · ${split.loc}`),
    html("p", {}, `${split.input[0]}: ${split.inputType}`),
    drawing,
    html("p", {}, outputs.join(", ") + (split.outputs.length > 12 ? ", …" : "")),
  );
}

function printedFinding(finding) {
  return html(
    "section",
    { class: "printed-split" },
    html("h3", {}, `${finding.code} · ${finding.severity} · ${finding.loc}`),
    html("p", {}, finding.message),
    finding.help && html("p", {}, finding.help),
  );
}

function printedChange({ change, group }) {
  const names = (group?.clusters ?? []).slice(0, 12).map(([each]) => each.name);
  const more = group && group.clusters.length > names.length ? ", …" : "";
  return html(
    "section",
    { class: "printed-split" },
    html("h3", {}, group ? `${group.title} · ${group.clusters.length} times` : `${changeTitle(change)} · ${change.loc}`),
    html("p", {}, group ? groupText(group) : change.why),
    group && html("p", {}, names.join(", ") + more),
  );
}
