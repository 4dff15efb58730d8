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

function changeTitle(change) {
  return `${SIGNS[change.kind]} ${[change.before, change.after].filter(Boolean).join(" → ")}`;
}

// Groups: a list of more changes than this shows changes of one kind as one row.
const MOST_UNGROUPED = 30;
// Reasons that the row of a group has room for.
const MOST_REASONS = 2;

/** The groups of the data, of changes and no longer of their places. */
function groupsOf(groups, changes) {
  return groups.map(({ others, clusters }) => {
    const first = changes[clusters[0][0]];
    const title = `${changeTitle(first)}${others ? " …" : ""}`;
    return { title, others, first, clusters: clusters.map((places) => places.map((place) => changes[place])) };
  });
}

/** Entries of changes as groups: a row for changes of one kind, and below it those of a group that is open. */
function groupedChanges(entries, groups, open) {
  if (entries.length <= MOST_UNGROUPED) return entries;
  const found = new Set(entries.map(({ change }) => change));
  return groups.flatMap((group) => {
    const parts = group.clusters.map((cluster) => cluster.filter((change) => found.has(change)));
    const clusters = parts.filter((cluster) => cluster.length);
    const members = clusters.flat().map((change) => ({ change }));
    if (members.length < 2) return members;
    const isOpen = open.has(group.first);
    return [{ change: group.first, group: { ...group, clusters, isOpen } }, ...(isOpen ? members : [])];
  });
}

/** Why the nodes of a group changed, or what differs in each, and which nodes were added or removed for each. */
function groupText({ first, others, clusters }) {
  const reasons = new Set(clusters.flat().map((each) => each.why).filter(Boolean));
  const why = [...reasons].slice(0, MOST_REASONS).join("; ") || first.what;
  return [why, others && `with ${others}`].filter(Boolean).join("; ");
}

function groupParts(page, group) {
  const rows = group.clusters.slice(0, 200).map(([change]) => {
    const show = () => page.showChange(change);
    return html("li", {}, html("button", { class: "link value", click: show }, change.name));
  });
  if (group.clusters.length > 200)
    rows.push(html("li", { class: "omitted" }, `${group.clusters.length - 200} more in the list`));
  return [
    html("h2", {}, html("span", {}, group.title), closeButton(page)),
    html("p", {}, [`${group.clusters.length.toLocaleString("en")} times`, groupText(group)].filter(Boolean).join("; ")),
    html("ul", { class: "values" }, ...rows),
  ];
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
