// The drawing: bands of boxes below one another. A band is laid out and drawn when it comes into view, and removed when
// it is far out of view.

const ZOOMS = [0.15, 2.5];
// Bands within so many pixels of the visible part are drawn.
const MARGIN = "700px 100000px";
// A band that was never laid out is taken to be so high for each of its boxes.
const GUESSED_HEIGHT = 84;

class Band {
  constructor(level, blocks, title) {
    Object.assign(this, { level, blocks, title, layout: null, element: null, isDrawn: false });
    this.keys = new Set(blocks.map((block) => block.key));
  }
}

class Stage {
  constructor(scroller, actions) {
    this.scroller = scroller;
    this.actions = actions;
    this.element = html("div", { class: "stage" });
    scroller.append(this.element);
    this.zoom = 1;
    this.group = [];
    this.views = new Map();
    this.observer = new IntersectionObserver((seen) => this.seen(seen), { root: scroller, rootMargin: MARGIN });
    this.enableDragging();
    window.addEventListener("resize", () => this.refit());
    scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** What is kept of a graph while another one is shown. */
  view(graph) {
    if (!this.views.has(graph)) this.views.set(graph, { open: new Set(), level: null, blocks: null, scroll: null });
    return this.views.get(graph);
  }

  /** Show a graph. */
  show(graph, showShapes) {
    if (this.graph) this.view(this.graph).scroll = [this.scroller.scrollLeft, this.scroller.scrollTop];
    this.graph = graph;
    const view = this.view(graph);
    if (!view.level || view.showShapes !== showShapes) {
      view.showShapes = showShapes;
      view.level = graphLevel(graph, showShapes);
      view.level.opened = new Map();
      view.blocks = blocksOf(view.level);
      if (view.level.isUnmarked) for (const { key, item } of view.blocks) if (item?.kind === "stretch") view.open.add(key);
    }
    this.rebuild();
    if (!view.scroll) this.setZoom(1);
    if (view.scroll) this.scroller.scrollTo(...view.scroll);
    else this.showStart();
  }

  /** The width between the sides of the frame, and the side: both in pixels. */
  measureRoom() {
    const side = parseFloat(getComputedStyle(this.element).paddingLeft);
    return { room: this.scroller.clientWidth - 2 * side, side };
  }

  /** Scroll to where the drawing starts: its top, and the left end of what is seen of it there. */
  showStart() {
    this.scroller.scrollTo(0, 0);
    const seen = this.scroller.getBoundingClientRect();
    const places = [...this.element.querySelectorAll(".box > .card")].map((card) => card.getBoundingClientRect());
    const lefts = places.filter(({ top }) => top < seen.bottom).map(({ left }) => left);
    if (this.element.scrollWidth > this.scroller.clientWidth)
      this.scroller.scrollLeft = Math.min(...lefts) - seen.left - this.measureRoom().side;
  }

  /** Arrange the boxes for another width of the frame, such as that of a phone that was turned. */
  refit() {
    const { room } = this.measureRoom();
    if (room <= 0 || room === this.room) return;
    this.rebuild();
    if (this.selected) this.bring(this.selected);
    else this.showStart();
  }

  /** Make the bands anew, after something was opened or folded. */
  rebuild() {
    this.observer.disconnect();
    this.room = this.measureRoom().room;
    const view = this.view(this.graph);
    this.bands = bandsOf(view.level, view.blocks, view.open);
    for (const band of this.bands) {
      band.element = html("div", { class: "band" });
      band.element.band = band;
      this.resize(band);
    }
    this.element.replaceChildren(...this.bands.map((band) => band.element));
    // The first bands at once, so that the page never shows an empty drawing.
    let height = 0;
    for (const band of this.bands) {
      if (height > this.scroller.clientHeight) break;
      this.draw(band);
      height += band.element.offsetHeight;
    }
    for (const band of this.bands) this.observer.observe(band.element);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.draw(target.band);
      else if (target.band.isDrawn) this.erase(target.band);
    }
  }

  isOpen(key) {
    return this.view(this.graph).open.has(key);
  }

  layOut(band) {
    const rails = { top: this.bands.length > 1, bottom: this.bands.length > 1 };
    band.layout ??= layoutBlocks(band.level, band.blocks, { isOpen: (key) => this.isOpen(key), room: this.room }, rails);
    return band.layout;
  }

  draw(band) {
    if (band.isDrawn) return;
    band.isDrawn = true;
    const layout = this.layOut(band);
    const drawing = svg("svg", {
      viewBox: `0 0 ${Math.ceil(layout.width)} ${Math.ceil(layout.height)}`,
      "aria-label": band.title ?? "part of the drawing",
      role: "group",
    });
    drawing.append(drawLayout(layout, this.graph, this.actions));
    band.element.replaceChildren(...(band.title ? [this.heading(band)] : []), drawing);
    this.resize(band);
    this.markSelected();
  }

  heading(band) {
    const fold = html("button", { class: "fold", click: () => this.toggle(band.folds) }, "fold");
    return html("div", { class: "band-title" }, html("span", {}, band.title), fold);
  }

  erase(band) {
    if (band.element.contains(document.activeElement)) return;
    band.isDrawn = false;
    band.element.replaceChildren();
  }

  resize(band) {
    const guess = [Math.min(400, this.room), GUESSED_HEIGHT * Math.min(band.blocks.length, 60)];
    const [width, height] = band.layout ? [band.layout.width, band.layout.height] : guess;
    band.element.style.width = `${Math.ceil(width * this.zoom)}px`;
    band.element.style.height = `${Math.ceil(height * this.zoom) + (band.title ? 34 : 0)}px`;
  }

  /** Open what is folded, or fold what is open. */
  toggle(key) {
    const { open } = this.view(this.graph);
    if (!open.delete(key)) open.add(key);
    const { scrollTop } = this.scroller;
    this.rebuild();
    this.scroller.scrollTop = scrollTop;
    this.bring(key);
  }

  /** Scroll a box into view; its band is laid out first. */
  bring(key) {
    const band = this.bands.find((each) => each.keys.has(key) || each.folds === key) ?? this.bandAround(key);
    if (!band) return;
    this.draw(band);
    const box = this.boxElement(key) ?? band.element;
    const [seen, wanted] = [this.scroller.getBoundingClientRect(), box.getBoundingClientRect()];
    const inside = wanted.top >= seen.top && wanted.bottom <= seen.bottom;
    if (inside && wanted.left >= seen.left && wanted.right <= seen.right) return;
    const tall = wanted.height > seen.height * 0.8;
    const top = tall ? wanted.top - seen.top - 40 : wanted.top + wanted.height / 2 - seen.top - seen.height / 2;
    this.scroller.scrollBy(wanted.left + wanted.width / 2 - seen.left - seen.width / 2, top);
  }

  bandAround(key) {
    return this.bands.find((band) => {
      const held = (boxes) => boxes.some((box) => box.key === key || (box.inner && held(box.inner.boxes)));
      return held(this.layOut(band).boxes);
    });
  }

  boxElement(key) {
    return this.element.querySelector(`[data-key="${CSS.escape(key)}"]`);
  }

  select(key) {
    this.selected = key;
    this.group = [];
    this.markSelected();
  }

  /** Mark boxes beside the one that is selected. */
  markGroup(keys) {
    this.group = keys;
    this.markSelected();
  }

  markSelected() {
    for (const each of this.element.querySelectorAll(".selected, .of-group")) each.classList.remove("selected", "of-group");
    for (const key of this.group) this.boxElement(key)?.classList.add("of-group");
    if (this.selected) this.boxElement(this.selected)?.classList.add("selected");
  }

  /** Zoom, and keep the point of the screen where it is. */
  setZoom(zoom, clientX, clientY) {
    const seen = this.scroller.getBoundingClientRect();
    const [x, y] = [clientX ?? seen.left + seen.width / 2, clientY ?? seen.top + seen.height / 2];
    const under = this.bands.find((band) => band.element.getBoundingClientRect().bottom >= y) ?? this.bands.at(-1);
    const before = under.element.getBoundingClientRect();
    const share = [(x - before.left) / before.width, (y - before.top) / before.height];
    this.zoom = Math.min(ZOOMS[1], Math.max(ZOOMS[0], zoom));
    this.element.classList.toggle("far", this.zoom < 0.5);
    for (const band of this.bands) this.resize(band);
    const after = under.element.getBoundingClientRect();
    this.scroller.scrollBy(after.left + share[0] * after.width - x, after.top + share[1] * after.height - y);
    byId("zoom").textContent = `${Math.round(this.zoom * 100)}%`;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.setZoom(this.zoom * Math.exp(-event.deltaY / 300), event.clientX, event.clientY);
  }

  enableDragging() {
    let from = null;
    this.scroller.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.target.closest(".box, button")) return;
      from = [event.clientX + this.scroller.scrollLeft, event.clientY + this.scroller.scrollTop];
    });
    window.addEventListener("pointermove", (event) => {
      if (from) this.scroller.scrollTo(from[0] - event.clientX, from[1] - event.clientY);
    });
    window.addEventListener("pointerup", () => (from = null));
  }
}

/** The bands of a level: blocks in their order, and one band for each layer of a run that is open. */
function bandsOf(level, blocks, open) {
  const bands = [];
  let held = [];
  const flush = () => {
    for (let start = 0; start < held.length; start += MOST_BOXES) {
      bands.push(new Band(level, held.slice(start, start + MOST_BOXES)));
    }
    held = [];
  };
  for (const block of blocks) {
    if (block.kind !== "repeat" || !open.has(block.key)) held.push(block);
    else {
      flush();
      bands.push(...layerBands(level, block));
    }
  }
  flush();
  return bands;
}

function layerBands(level, block) {
  const bands = [];
  for (let layer = 0; layer < block.count; layer++) {
    const from = block.from + layer * block.period;
    const to = Math.min(from + block.period, block.to);
    for (let start = from; start < to; start += MOST_BOXES) {
      const items = [];
      for (let index = start; index < Math.min(start + MOST_BOXES, to); index++) items.push(itemBlock(level, index));
      const band = new Band(level, items, start === from ? `layer ${layer + 1} of ${block.count}` : null);
      band.folds = start === from ? block.key : null;
      bands.push(band);
    }
  }
  return bands;
}
