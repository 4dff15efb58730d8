// The data of the page as objects: graphs with producers and consumers of each value, splits and findings by node.

class Graph {
  constructor(model, data, number) {
    Object.assign(this, { model, number, data });
    this.loc = data.loc;
    this.title = data.title;
    this.nodeCount = data.ops.length;
    this.constants = new Uint8Array(data.values.length);
    for (const value of data.consts) this.constants[value] = 1;
    this.producer = new Int32Array(data.values.length).fill(-1);
    this.consumers = Array.from(data.values, () => []);
    this.constantOp = model.data.ops.indexOf("Constant");
    this.constantNodes = new Uint8Array(this.nodeCount);
    for (let node = 0; node < this.nodeCount; node++) {
      for (const value of data.outs[node]) if (value >= 0) this.producer[value] = node;
      for (const value of new Set(data.ins[node])) if (value >= 0) this.consumers[value].push(node);
      if (!this.computesConstants(node)) continue;
      this.constantNodes[node] = 1;
      for (const value of data.outs[node]) if (value >= 0) this.constants[value] = 1;
    }
    this.elementsOf = new Map(data.elements);
    this.splitOf = new Map();
    this.findingsOf = new Map();
    this.inner = new Map();
    this.capturedOf = new Map();
    this.changeOf = new Map();
  }

  op(node) {
    return this.model.data.ops[this.data.ops[node]];
  }

  name(node) {
    return this.data.names[node];
  }

  label(node) {
    return this.name(node) || `${this.op(node)}#${node}`;
  }

  value(index) {
    return this.data.values[index];
  }

  type(index) {
    return this.model.data.types[this.data.types[index]];
  }

  /** The attributes of a node: pairs of name and text. */
  attributes(node) {
    return this.model.data.attributes[this.data.attrs[node]] ?? [];
  }

  /** Of a constant, its first elements and their range, as text; undefined for another value. */
  elements(value) {
    const node = this.producer[value];
    // Exporters give equal constants to several nodes by Identity.
    if (this.constants[value] && node >= 0 && this.op(node) === "Identity")
      return this.elements(this.data.ins[node][0]);
    return this.model.data.elements[this.elementsOf.get(value)];
  }

  /** The node of this graph that is like a node of another one: by its name, else by what it gives. */
  counterpart(graph, node) {
    const same = this.data.names.indexOf(graph.name(node));
    if (graph.name(node) && same >= 0) return same;
    const given = graph.data.outs[node].find((value) => value >= 0);
    return given === undefined ? -1 : (this.producer[this.valueNamed(graph.value(given))] ?? -1);
  }

  valueNamed(name) {
    this.valuesByName ??= new Map(this.data.values.map((each, value) => [each, value]));
    return this.valuesByName.get(name);
  }

  /** True for a Constant, and for a node that reads constants only, such as a dequantized weight. */
  computesConstants(node) {
    if (this.data.ops[node] === this.constantOp) return true;
    const read = this.data.ins[node].filter((value) => value >= 0);
    return read.length > 0 && read.every((value) => this.constants[value]);
  }

  isConstant(node) {
    return this.constantNodes[node] === 1;
  }

  /** The values of this graph that the bodies of a node read without taking them as inputs. */
  captured(node) {
    let found = this.capturedOf.get(node);
    if (!found) {
      const names = new Set((this.inner.get(node) ?? []).flatMap((graph) => graph.outerNames()));
      found = [...names].map((each) => this.valueNamed(each)).filter((value) => value !== undefined);
      this.capturedOf.set(node, found);
    }
    return found;
  }

  outerNames() {
    // The body of a function sees nothing from outside of it; all that it reads is an input.
    const own = new Set(this.data.inputs);
    const names = [];
    for (let value = 0; value < this.data.values.length; value++) {
      if (this.producer[value] < 0 && !this.constants[value] && !own.has(value)) names.push(this.value(value));
    }
    for (const graphs of this.inner.values()) for (const graph of graphs) names.push(...graph.outerNames());
    return names;
  }
}

class Model {
  constructor(data, side) {
    this.data = data;
    this.side = side;
    this.graphs = data.graphs.map((graph, number) => new Graph(this, graph, number));
    for (const graph of this.graphs) {
      if (!graph.data.parent) continue;
      const [outer, node] = graph.data.parent;
      const inner = this.graphs[outer].inner;
      inner.set(node, [...(inner.get(node) ?? []), graph]);
    }
    this.splits = data.splits.map((split, number) => new Split(this, split, number));
    for (const split of this.splits) if (split.at) this.graphs[split.at[0]].splitOf.set(split.at[1], split);
    this.findings = data.findings;
    for (const finding of this.findings) {
      if (!finding.at) continue;
      const held = this.graphs[finding.at[0]].findingsOf;
      held.set(finding.at[1], [...(held.get(finding.at[1]) ?? []), finding]);
    }
    this.nodeTotal = this.graphs.reduce((sum, graph) => sum + graph.nodeCount, 0);
  }

  /** The graph at the place of a graph of another model; else the main graph. */
  graphLike(graph) {
    return this.graphs.find((each) => each.loc === graph?.loc) ?? this.graphs[0];
  }

  /** Number of findings of a severity. */
  findingCount(severity) {
    return this.findings.reduce((sum, each) => sum + (each.severity === severity), 0);
  }

  /** True for a graph with a split in itself or in the bodies of its nodes. */
  hasSplits(graph) {
    return graph.splitOf.size > 0 || [...graph.inner.values()].flat().some((inner) => this.hasSplits(inner));
  }
}

class Split {
  constructor(model, data, number) {
    Object.assign(this, data);
    this.model = model;
    this.number = number;
    this.parts = data.lengths.map((index, part) => {
      const [text, weight] = model.data.dims[index];
      return { text, weight, part };
    });
  }

  type(index) {
    return typeText(this.model, index);
  }

  get inputType() {
    return typeText(this.model, this.input[1]);
  }

  /** The lengths in a line, as the command line prints them: "768 | 768 | 768", "12 × 64". */
  get lengthsText() {
    return (this.lengthsWritten ??= this.writtenLengths());
  }

  writtenLengths() {
    const runs = [];
    for (const { text } of this.parts) {
      const last = runs[runs.length - 1];
      if (last && last.text === text) last.times++;
      else runs.push({ text, times: 1 });
    }
    return runs
      .flatMap(({ text, times }) => (times < 4 ? Array(times).fill(text) : [`${times} × ${text}`]))
      .join(" | ");
  }
}

function typeText(model, index) {
  return model.data.types[index] || "unknown";
}
