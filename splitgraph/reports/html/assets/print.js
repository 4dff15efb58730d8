// Printing: every split with its bar, and every finding, below the part of the drawing that was laid out.

const MOST_PRINTED = 500;

function enablePrinting(page) {
  window.addEventListener("beforeprint", () => byId("printed").replaceChildren(...printedParts(page)));
  window.addEventListener("afterprint", () => byId("printed").replaceChildren());
}

function printedParts(page) {
  const { splits, findings } = page.model;
  const parts = [];
  if (page.changes.length) parts.push(html("h2", {}, "Changes"), ...limited(page.changes, printedChange));
  if (splits.length) parts.push(html("h2", {}, "Splits"), ...limited(splits, printedSplit));
  if (findings.length) parts.push(html("h2", {}, "Findings"), ...limited(findings, printedFinding));
  return parts;
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

function printedChange(change) {
  const forms = [change.before, change.after].filter(Boolean).join(" → ");
  return html(
    "section",
    { class: "printed-split" },
    html("h3", {}, `${change.kind} · ${forms} · ${change.loc}`),
    change.why && html("p", {}, change.why),
  );
}
