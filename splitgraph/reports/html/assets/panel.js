// The panel at the right: what is selected, with its parts, types, findings, and what a rewrite did to it.

/** Everything about the model, shown while nothing is selected. */
function modelPanel(page) {
  const { model } = page;
  const { completeness: known, symbols, obligations, assumptions } = model.data;
  const facts = [
    [
      "format",
      model.data.opset.startsWith(model.data.format) ? model.data.opset : `${model.data.format}, ${model.data.opset}`,
    ],
    ...(model.data.about ?? []),
    ["nodes", model.nodeTotal.toLocaleString("en")],
    ["graphs", model.graphs.length.toLocaleString("en")],
    ["splits", model.splits.length.toLocaleString("en")],
    [
      "dimensions",
      `${known.known.toLocaleString("en")} of ${known.dims.toLocaleString("en")} known, ${known.symbolic.toLocaleString("en")} symbolic`,
    ],
  ];
  return [
    html("h2", {}, "Model"),
    factTable(facts),
    ...(page.models.length > 1 ? differenceParts(page) : []),
    ...conditions("Requires", obligations, "What must hold for the model to be valid."),
    ...conditions("Assumes", assumptions, "What was taken for granted; a valid model may violate it."),
    ...folding("Symbols", "What is known of each symbolic dimension.", symbols, symbolTable, ([, , , rank]) => rank),
    ...tableOf("Operator sets", model.data.imports),
    ...tableOf("Metadata", model.data.metadata),
    html(
      "p",
      { class: "hint" },
      "Click a box to see its types. Double-click what is folded to open it. Press ? for the keys.",
    ),
  ];
}

// The rank of what is said of a symbol that is splitgraph's own.
const GENERATED = 2;

function conditions(title, entries, meaning) {
  return folding(title, meaning, entries, conditionList, ([, , rank]) => rank);
}

function conditionList(entries) {
  const rows = entries.slice(0, 200).map(([text, locations]) => html("li", { title: locations.join("\n") }, text));
  if (entries.length > 200)
    rows.push(html("li", { class: "more" }, `${entries.length - 200} more: splitgraph infer lists all`));
  return html("ul", { class: "conditions" }, ...rows);
}

function symbolTable(symbols) {
  const rows = symbols.slice(0, 200).map(([name, low, high]) => [name, `${low} … ${high ?? "∞"}`]);
  return factTable(rows, "mono");
}

/** A section in which entries about generated symbols are folded. */
function folding(title, meaning, entries, draw, rank) {
  if (!entries.length) return [];
  const plain = entries.filter((entry) => rank(entry) < GENERATED);
  const generated = entries.filter((entry) => rank(entry) === GENERATED);
  const summary = `${generated.length.toLocaleString("en")} with symbols that splitgraph made (unk0, …)`;
  return [
    html("h3", { title: meaning }, title),
    plain.length ? draw(plain) : null,
    generated.length ? html("details", {}, html("summary", {}, summary), draw(generated)) : null,
  ].filter(Boolean);
}

function tableOf(title, rows = []) {
  return rows.length ? [html("h3", {}, title), factTable(rows)] : [];
}

function factTable(rows, kind = "") {
  return html(
    "table",
    { class: `facts ${kind}` },
    ...rows.map(([name, ...cells]) =>
      html("tr", {}, html("th", {}, name), ...cells.map((cell) => html("td", {}, cell))),
    ),
  );
}

/** A node: its split, findings, change, and all values. */
function nodePanel(page, graph, node, split) {
  const reported = split ?? graph.splitOf.get(node);
  const change = graph.changeOf.get(node);
  return [
    html("h2", {}, html("span", {}, graph.op(node)), closeButton(page)),
    html("p", { class: "where mono" }, `${graph.loc}/${graph.label(node)}`),
    ...foldedNote(page, graph, node),
    ...(change ? changeParts(change) : []),
    ...findingParts(graph.findingsOf.get(node) ?? []),
    ...(reported ? splitParts(reported) : []),
    ...tableOf("Attributes", graph.attributes(node)),
    ...valueTable(page, graph, "Inputs", graph.data.ins[node]),
    ...valueTable(page, graph, "Outputs", graph.data.outs[node]),
    ...innerLinks(page, graph, node),
  ];
}

function closeButton(page) {
  return html(
    "button",
    { class: "icon", title: "close (Esc)", "aria-label": "close the panel", click: () => page.deselect() },
    "✕",
  );
}

function foldedNote(page, graph, node) {
  const folded = page.foldedAt(graph, node);
  if (!folded) return [];
  const open = html("button", { class: "link", click: () => page.openFold(graph, node, folded) }, "Open");
  return [html("p", { class: "note" }, `${folded.text} `, open)];
}

/** A split on its own: the bar, its parts in a table, and its conditions. */
function splitParts(split, title = "") {
  const width = 304;
  const bar = drawBar(split, width, BAR_HEIGHT);
  const captions = narrowCaptions(split, width).length ? CAPTION_HEIGHT : 0;
  const height = BAR_HEIGHT + (split.kind === "sequence" ? 16 : captions + 2);
  const drawing = svg(
    "svg",
    { class: "panel-bar", viewBox: `-1 -1 ${width + 2} ${height}`, role: "img", "aria-label": split.lengthsText },
    bar,
  );
  const parts = split.kind === "split" || split.kind === "variadic";
  const rows = split.outputs.slice(0, 400).map(([name, type], part) => {
    const colour = html("i", { class: `swatch ${parts ? partClass(part) : "part-more"}` });
    const length = parts ? (split.parts[part]?.text ?? "?") + (split.rest === part ? " (-1)" : "") : "";
    return html(
      "tr",
      {},
      html("td", {}, colour),
      html("td", { class: "length" }, length),
      html("td", {}, html("b", {}, name || "(omitted)"), html("span", { class: "type-text" }, split.type(type))),
    );
  });
  if (split.outputs.length > 400)
    rows.push(html("tr", {}, html("td", { colspan: 3 }, `${split.outputs.length - 400} more`)));
  return [
    ...(title ? [html("h3", {}, title)] : []),
    html("p", { class: "kind" }, html("span", { class: "pill" }, axisText(split)), kindText(split)),
    html(
      "p",
      { class: "value-line" },
      html("b", {}, split.input[0]),
      html("span", { class: "type-text" }, split.inputType),
    ),
    drawing,
    html("table", { class: "parts" }, ...rows),
    ...(split.kind === "sequence" && split.parts.length
      ? [html("p", { class: "kind" }, `lengths: ${shortened(split.lengthsText, 300)}`)]
      : []),
    ...(split.needs
      ? [
          html("h3", {}, "Requires"),
          html("ul", { class: "conditions" }, ...split.needs.map((each) => html("li", {}, each))),
        ]
      : []),
  ];
}

function findingParts(findings) {
  return findings
    .slice(0, 50)
    .map((finding) =>
      html(
        "section",
        { class: `finding ${finding.severity}` },
        html(
          "h3",
          {},
          html("span", { class: `code ${finding.severity}` }, `${SIGNS[finding.severity]} ${finding.code}`),
          finding.severity,
        ),
        html("p", {}, finding.message),
        finding.help && html("p", { class: "help" }, finding.help),
      ),
    );
}

function valueTable(page, graph, title, values) {
  const rows = values.slice(0, 200).map((value, place) => {
    if (value < 0) return html("li", { class: "omitted" }, `${place}: omitted`);
    const constant = graph.constants[value] ? html("span", { class: "pill" }, "constant") : null;
    const link = html(
      "button",
      { class: "link value", click: () => page.showValue(graph, value, title === "Inputs") },
      graph.value(value),
    );
    return html(
      "li",
      {},
      link,
      constant,
      html("span", { class: "type-text" }, graph.type(value) || "unknown type"),
      ...elementsText(graph.elements(value)),
    );
  });
  if (values.length > 200) rows.push(html("li", { class: "omitted" }, `${values.length - 200} more`));
  return rows.length ? [html("h3", {}, title), html("ul", { class: "values" }, ...rows)] : [];
}

/** The first elements of a constant, and their range. */
function elementsText([first, range] = []) {
  return [first && html("span", { class: "elements" }, first), range && html("span", { class: "range" }, range)];
}

function innerLinks(page, graph, node) {
  const inner = graph.inner.get(node) ?? [];
  if (!inner.length) return [];
  const links = inner.map((each) =>
    html("li", {}, html("button", { class: "link", click: () => page.showGraph(each) }, each.title)),
  );
  return [html("h3", {}, "Inside"), html("ul", { class: "values" }, ...links)];
}

/** A folded stretch, an input or an output, or a run of layers. */
function boxPanel(page, graph, box) {
  const head = [html("h2", {}, html("span", {}, box.title ?? box.kind), closeButton(page))];
  if (box.item?.values.length) {
    const kinds = {
      input: "inputs of the graph",
      output: "outputs of the graph",
      captured: "values of the graph around",
    };
    return [
      ...head,
      html("p", { class: "kind" }, kinds[box.kind] ?? ""),
      ...valueTable(page, graph, "Values", box.item.values),
    ];
  }
  const open = html(
    "button",
    { class: "primary", click: () => page.toggle(box.key) },
    box.kind === "open" ? "Fold" : "Open",
  );
  if (box.kind === "repeat") {
    const text = `${box.count} layers have the same structure and types. The drawing shows the first one.`;
    return [...head, html("p", {}, text), html("p", { class: "where mono" }, box.caption), open];
  }
  const rows = box.item.nodes.slice(0, 300).map((node) => {
    const show = () => page.showNode(graph, node, null, false);
    return html(
      "li",
      {},
      html("button", { class: "link", click: show }, graph.op(node)),
      html("span", { class: "type-text" }, graph.name(node)),
    );
  });
  if (box.item.nodes.length > 300) rows.push(html("li", { class: "omitted" }, `${box.item.nodes.length - 300} more`));
  return [...head, html("p", {}, "Connected nodes between splits."), open, html("ul", { class: "values" }, ...rows)];
}
