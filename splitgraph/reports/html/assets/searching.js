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

  /** The same search in another model. */
  forModel(model) {
    const other = Object.assign(new Search(model, this.changes), { query: this.query, severity: this.severity });
    other.operator = model.data.ops.includes(this.operator) ? this.operator : "";
    if (this.graph !== "") other.graph = model.graphLike(this.model.graphs[Number(this.graph)]).number;
    return other;
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

  /** Nodes that match; those that compute constants come last. */
  nodesEntries(words) {
    const found = [];
    const constants = [];
    for (const graph of this.model.graphs) {
      if (this.graph !== "" && graph.number !== Number(this.graph)) continue;
      this.texts ??= new Map();
      if (!this.texts.has(graph)) this.texts.set(graph, nodeTexts(graph));
      const texts = this.texts.get(graph);
      for (let node = 0; node < graph.nodeCount; node++) {
        if (this.operator && graph.op(node) !== this.operator) continue;
        if (this.severity && !(graph.findingsOf.get(node) ?? []).some((each) => each.severity === this.severity))
          continue;
        if (!contains(texts[node], words)) continue;
        (graph.isConstant(node) ? constants : found).push({ graph, node, at: [graph.number, node] });
      }
    }
    return found.concat(constants);
  }

  /** Changes of both models, the ones that this model does not have included. */
  changesEntries(words) {
    return this.changes
      .filter((change) => !this.operator || [change.before, change.after].some((form) => isOf(form, this.operator)))
      .filter((change) => contains(changeText(change), words))
      .map((change) => ({ change }));
  }

  /** Why an entry is in the list, where what is seen of it does not say so: the parts that match, as an element. */
  reason(entry) {
    const words = this.words;
    if (!words.length) return null;
    const [seen, parts] = partsOf(entry);
    const left = words.filter((word) => !seen.some((text) => text.toLowerCase().includes(word)));
    const found = left.map((word) => [word, parts.find(([, text]) => text.toLowerCase().includes(word))]);
    const shown = [...new Map(found.filter(([, part]) => part).map(([word, part]) => [part.join(" "), [word, ...part]])).values()];
    const texts = shown.flatMap((each, place) => [...(place ? [" · "] : []), ...marked(...each)]);
    return shown.length ? html("div", { class: "reason" }, ...texts) : null;
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

/** True for an operator with or without its version: "Split-13" and "Split" are of "Split". */
function isOf(form, op) {
  return form === op || form.replace(/-\d+$/, "") === op;
}

/** What is seen of an entry in its row, and what else is searched: pairs of what it is and the text. */
function partsOf({ split, finding, change, graph, node }) {
  if (change) return [[change.name, change.before, change.after], [["", change.kind], ["why:", change.why], ["at", change.loc]]];
  if (finding) return [[finding.code, finding.message], [["", finding.severity], ["at", finding.loc]]];
  if (split) {
    const outputs = split.outputs.map(([name]) => ["gives", name]);
    return [[split.name, split.op, axisText(split), split.lengthsText], [["at", split.loc], ["reads", split.input[0]], ...outputs]];
  }
  const value = (verb) => (each) => [verb, graph.value(each)];
  const [reads, gives] = [graph.data.ins[node], graph.data.outs[node]].map((all) => all.filter((each) => each >= 0));
  const codes = (graph.findingsOf.get(node) ?? []).map((each) => ["finding", each.code]);
  const types = gives.map((each) => ["type", graph.type(each)]);
  return [[graph.label(node), graph.op(node)], [...codes, ...gives.map(value("gives")), ...reads.map(value("reads")), ...types]];
}

/** A part with the word that was searched marked in it, and what is around the word if the part is long. */
function marked(word, kind, text) {
  const at = text.toLowerCase().indexOf(word);
  const [before, hit, after] = [text.slice(0, at), text.slice(at, at + word.length), text.slice(at + word.length)];
  return [`${kind} ${fromTheEnd(before, 16)}`, html("mark", {}, hit), after];
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
