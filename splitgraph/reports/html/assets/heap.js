// A priority queue, for topological order.

/** A binary heap with the smallest key first. */
class Heap {
  constructor(key) {
    this.key = key;
    this.held = [];
  }

  get size() {
    return this.held.length;
  }

  push(entry) {
    let place = this.held.push(entry) - 1;
    while (place && this.key(this.held[(place - 1) >> 1]) > this.key(entry)) {
      this.held[place] = this.held[(place - 1) >> 1];
      place = (place - 1) >> 1;
    }
    this.held[place] = entry;
  }

  pop() {
    const [first] = this.held;
    const last = this.held.pop();
    if (this.held.length) this.sink(last);
    return first;
  }

  sink(entry) {
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.held.length) break;
      if (child + 1 < this.held.length && this.key(this.held[child + 1]) < this.key(this.held[child])) child++;
      if (this.key(this.held[child]) >= this.key(entry)) break;
      this.held[place] = this.held[child];
      place = child;
    }
    this.held[place] = entry;
  }
}
