// What the lists show: the entries that match the search and the filters.

class Search {
  constructor(model, changes) {
    this.model = model;
    this.changes = changes;
    this.query = "";
    this.operator = "";
    this.severity = "";
    this.graph = "";
  }

  /** The words of the query, all of which an entry must contain. */
  get words() {
    return this.query.toLowerCase().split(/\s+/).filter(Boolean);
  }

  get isFiltered() {
    return Boolean(this.words.length || this.operator || this.severity || this.graph);
  }

  entries(tab) {
    return this[`${tab}Entries`](this.words);
  }

  splitsEntries(words) {
    return this.model.splits
      .filter((split) => this.fits(split.at, split.op, split.loc) && contains(splitText(split), words))
      .map((split) => ({ split, at: split.at }));
  }

  findingsEntries(words) {
    return this.model.findings
      .filter((finding) => !this.severity || finding.severity === this.severity)
      .filter(
        (finding) => this.fits(finding.at, this.opAt(finding.at), finding.loc) && contains(findingText(finding), words),
      )
      .map((finding) => ({ finding, at: finding.at }));
  }

  nodesEntries(words) {
    const found = [];
    for (const graph of this.model.graphs) {
      if (this.graph !== "" && graph.number !== Number(this.graph)) continue;
      this.texts ??= new Map();
      if (!this.texts.has(graph)) this.texts.set(graph, nodeTexts(graph));
      const texts = this.texts.get(graph);
      for (let node = 0; node < graph.nodeCount; node++) {
        if (this.operator && graph.op(node) !== this.operator) continue;
        if (this.severity && !(graph.findingsOf.get(node) ?? []).some((each) => each.severity === this.severity))
          continue;
        if (contains(texts[node], words)) found.push({ graph, node, at: [graph.number, node] });
      }
    }
    return found;
  }

  /** Changes of both models, the ones that this model does not have included. */
  changesEntries(words) {
    return this.changes
      .filter((change) => !this.operator || [change.before, change.after].includes(this.operator))
      .filter((change) => contains(changeText(change), words))
      .map((change) => ({ change }));
  }

  opAt(at) {
    return at ? this.model.graphs[at[0]].op(at[1]) : "";
  }

  fits(at, op, location) {
    if (this.operator && op !== this.operator) return false;
    if (this.graph === "") return true;
    return at ? at[0] === Number(this.graph) : location.startsWith(this.model.graphs[Number(this.graph)].loc);
  }
}

function contains(text, words) {
  return words.every((word) => text.includes(word));
}

function splitText(split) {
  split.text ??= [
    split.loc,
    split.op,
    axisText(split),
    split.lengthsText,
    split.input[0],
    ...split.outputs.map(([name]) => name),
  ]
    .join("\n")
    .toLowerCase();
  return split.text;
}

function findingText(finding) {
  finding.text ??= [finding.code, finding.severity, finding.message, finding.loc].join("\n").toLowerCase();
  return finding.text;
}

function changeText(change) {
  change.text ??= [change.loc, change.name, change.before, change.after, change.kind, change.why]
    .join("\n")
    .toLowerCase();
  return change.text;
}

/** Of each node its name, operator, findings' codes, and the names and types of its values, in lower case. */
function nodeTexts(graph) {
  const types = graph.model.data.types.map((text) => text.toLowerCase());
  const values = graph.data.values.map((name) => name.toLowerCase());
  return graph.data.ops.map((op, node) => {
    const parts = [graph.label(node), graph.op(node), ...(graph.findingsOf.get(node) ?? []).map((each) => each.code)];
    let text = parts.join("\n").toLowerCase();
    for (const value of graph.data.ins[node]) if (value >= 0) text += `\n${values[value]}`;
    for (const value of graph.data.outs[node])
      if (value >= 0) text += `\n${values[value]} ${types[graph.data.types[value]]}`;
    return text;
  });
}
