// Before and after: what a rewrite did to each node.

/** Links changes to the nodes of both models. A change has `nodes`: its place before and after, null where it has none. */
function markChanges(models, changes) {
  for (const change of changes) {
    change.nodes.forEach((place, side) => {
      if (place) models[side].graphs[place[0]].changeOf.set(place[1], change);
    });
    change.splits = change.nodes.map(
      (place, side) => place && (models[side].graphs[place[0]].splitOf.get(place[1]) ?? null),
    );
  }
}

/** What was done to a node, why, and both forms of a split side by side. */
function changeParts(change) {
  const forms = ["before", "after"].map((side, place) => {
    const split = change.splits[place];
    const text = change[side] || (place ? "removed" : "not there");
    return html(
      "section",
      { class: `form ${side}` },
      html("h4", {}, side),
      html("b", {}, text),
      split ? miniature(split) : null,
    );
  });
  return [
    html(
      "section",
      { class: `change ${change.kind}` },
      html("h3", {}, html("span", { class: `code ${change.kind}` }, `${SIGNS[change.kind]} ${change.kind}`)),
      change.why && html("p", {}, change.why),
      ...(change.details ?? []).map((text) => html("p", { class: "detail" }, text)),
      html("div", { class: "forms" }, ...forms),
    ),
  ];
}

function miniature(split) {
  const width = 144;
  const bar = drawBar(split, width, 24);
  const drawing = svg(
    "svg",
    {
      class: "panel-bar",
      viewBox: `-1 -1 ${width + 2} ${split.kind === "sequence" ? 42 : 27}`,
      role: "img",
      "aria-label": split.lengthsText,
    },
    bar,
  );
  return html(
    "div",
    {},
    drawing,
    html("p", { class: "mono small" }, shortened(split.lengthsText || kindText(split), 60)),
    html("p", { class: "kind" }, axisText(split)),
  );
}

/** What differs apart from nodes: parts of the model, types of values, findings. */
function differenceParts(page) {
  const { parts = [], values = [], new_findings: found = [], gone_findings: gone = [] } = page.data;
  const kinds = ["added", "removed", "changed"].map((kind) => [
    kind,
    page.changes.filter((each) => each.kind === kind).length,
  ]);
  const counts = kinds
    .filter(([, number]) => number)
    .map(([kind, number]) => html("li", { class: kind }, `${SIGNS[kind]} ${number} ${kind}`));
  return [
    html("h3", {}, "What changed"),
    counts.length ? html("ul", { class: "chips wrapped" }, ...counts) : html("p", {}, "No node changed."),
    ...lines("Model", parts),
    ...lines("Types of values", values),
    ...(found.length ? [html("h3", {}, "New findings"), ...findingParts(found)] : []),
    ...(gone.length ? [html("h3", {}, "Findings that are gone"), ...findingParts(gone)] : []),
  ];
}

function lines(title, texts) {
  if (!texts.length) return [];
  return [html("h3", {}, title), html("ul", { class: "conditions" }, ...texts.map((text) => html("li", {}, text)))];
}
