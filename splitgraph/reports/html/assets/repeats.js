// Finds repeated layers: runs of items of the same structure and types, which are drawn once with "× 12".

// Occurrences of an item that are tried as the length of a layer, and the most items of a layer.
const MOST_PERIODS = 10;
const LONGEST_PERIOD = 300;

/** What equal layers have in common at an item: operators, types, lengths, findings. */
function signature(graph, item) {
  const types = (node) => graph.data.outs[node].map((value) => (value < 0 ? "-" : graph.data.types[value])).join(",");
  if (item.values.length) return `${item.kind} ${item.values.map((value) => graph.data.types[value])}`;
  const parts = item.nodes.map((node) => `${graph.data.ops[node]}(${types(node)})`);
  const split = graph.splitOf.get(item.node);
  if (split) parts.push(split.axis, split.lengths.join(), (split.needs ?? []).join());
  for (const node of item.nodes) {
    for (const finding of graph.findingsOf.get(node) ?? []) parts.push(finding.code);
    if (graph.changeOf.has(node)) parts.push(graph.changeOf.get(node).kind);
    if (graph.inner.has(node))
      parts.push(
        graph.inner
          .get(node)
          .map((inner) => inner.loc)
          .join(),
      );
  }
  return `${item.kind} ${parts.join(" ")}`;
}

class Repeats {
  constructor(level) {
    this.level = level;
    const numbers = new Map();
    this.signatures = level.items.map((item) => {
      const text = signature(level.graph, item);
      if (!numbers.has(text)) numbers.set(text, numbers.size);
      return numbers.get(text);
    });
    const slots = level.items.map((item) => new Map([...item.outs].map((value, slot) => [value, slot])));
    this.reads = level.items.map((item) =>
      [...item.ins].map((value) => {
        const source = level.source.get(value);
        const slot = source ? slots[source.index].get(value) : 0;
        return { source: source ? source.index : -1, slot, type: level.graph.data.types[value] };
      }),
    );
    this.following = this.nextOfSameSignature();
  }

  nextOfSameSignature() {
    const last = new Map();
    const next = new Int32Array(this.signatures.length).fill(-1);
    for (let index = this.signatures.length - 1; index >= 0; index--) {
      next[index] = last.get(this.signatures[index]) ?? -1;
      last.set(this.signatures[index], index);
    }
    return next;
  }

  /** True if two items of different layers are alike: within its layer each reads the same outputs; what it reads of
   * other layers has the same types. The two layers begin at `start` and `otherStart`. */
  alike(first, second, start, otherStart) {
    if (this.signatures[first] !== this.signatures[second]) return false;
    const [reads, others] = [this.reads[first], this.reads[second]];
    return (
      reads.length === others.length &&
      reads.every((read, place) => {
        const other = others[place];
        if (read.type !== other.type || read.source >= start !== other.source >= otherStart) return false;
        return read.source < start || (read.slot === other.slot && first - read.source === second - other.source);
      })
    );
  }

  /** The best run of equal layers that starts at an item: { from, period, count, length }, or null. */
  runFrom(from) {
    let best = null;
    let other = this.following[from];
    for (let tried = 0; tried < MOST_PERIODS && other >= 0; tried++, other = this.following[other]) {
      const period = other - from;
      if (period > LONGEST_PERIOD) break;
      const run = this.run(from, period, this.matched(from, period) + period);
      if (run && (!best || run.length > best.length)) best = run;
    }
    return best;
  }

  /** How many items from an index on are alike with those one period later. */
  matched(from, period) {
    let found = 0;
    while (from + period + found < this.signatures.length) {
      const start = from + Math.floor(found / period) * period;
      if (!this.alike(from + found, from + period + found, start, start + period)) break;
      found++;
    }
    return found;
  }

  /** A run of `covered` items. The last layer may lack its end, the link to what follows, if it has all of its splits. */
  run(from, period, covered) {
    const count = Math.floor(covered / period);
    const rest = covered - count * period;
    if (rest && count >= 1 && this.splits(from, rest) === this.splits(from, period) && this.splits(from, rest)) {
      return this.worthwhile({ from, period, count: count + 1, length: covered });
    }
    return this.worthwhile({ from, period, count, length: count * period });
  }

  worthwhile(run) {
    return run.count >= 3 || (run.count === 2 && run.period >= 6) ? run : null;
  }

  splits(from, length) {
    let found = 0;
    for (let index = from; index < from + length; index++) found += this.level.items[index].kind === "split";
    return found;
  }
}

/** The blocks of a level: single items, and runs of equal layers. */
function blocksOf(level) {
  const repeats = new Repeats(level);
  const blocks = [];
  for (let index = 0; index < level.items.length;) {
    const run = repeats.runFrom(index);
    if (run) {
      blocks.push({ kind: "repeat", ...run, to: run.from + run.length, key: `repeat ${run.from}` });
      index += run.length;
    } else {
      blocks.push(itemBlock(level, index));
      index++;
    }
  }
  return blocks;
}

function itemBlock(level, index) {
  const item = level.items[index];
  return { kind: "item", item, from: index, to: index + 1, key: itemKey(item) };
}

/** Names an item within its graph; the key of a stretch stays the same while the page is open. */
function itemKey(item) {
  if (item.values.length) return `${item.kind} ${item.values[0]}`;
  return item.nodes.length > 1 ? `stretch ${item.node} ${item.nodes.length}` : `node ${item.node}`;
}
