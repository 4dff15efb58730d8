// Boxes below one another, for frames that have no room for boxes side by side. Edges between neighbours are straight;
// the others run down lanes at the left.

// Pixels from lane to lane.
const LANES = [4, 9];
const ROW_SPACE = 32;
const COLUMN_MARGIN = 6;

/** Places boxes in their order, which is that of the nodes, with the rails first and last. room: lanes are closer where it
 * takes that to fit. */
function placedBelow(boxes, edges, room) {
  const inOrder = [...boxes].sort((a, b) => rankOf(a) - rankOf(b));
  inOrder.forEach((box, row) => (box.row = row));
  const passing = edges.filter(({ from, to }) => to.row !== from.row + 1);
  const lanes = laneOfEach(passing);
  const across = Math.max(...boxes.map((box) => box.w));
  const number = Math.max(-1, ...lanes.values()) + 1;
  const apart = Math.min(LANES[1], Math.max(LANES[0], (room - across - 2 * COLUMN_MARGIN) / number));
  const left = COLUMN_MARGIN + (number ? apart * number : 0);
  let y = COLUMN_MARGIN;
  for (const box of inOrder) {
    Object.assign(box, { x: left + (across - box.w) / 2, y });
    y += box.h + ROW_SPACE;
  }
  for (const edge of edges) {
    edge.label = [];
    const lane = lanes.get(edge);
    edge.points = edgePoints(edge, lane === undefined ? left + across / 2 : left - apart * (lane + 0.5));
    edge.at = edge.points[1];
  }
  return { width: left + across + COLUMN_MARGIN, height: y - ROW_SPACE + COLUMN_MARGIN };
}

function rankOf(box) {
  return box.kind === "rail-top" ? -1 : box.kind === "rail-bottom" ? 1 : 0;
}

function edgePoints({ from, to }, x) {
  const [start, end] = [from.y + from.h, to.y];
  return [
    [from.x + from.w / 2, start],
    [x, start + ROW_SPACE / 2],
    [x, end - ROW_SPACE / 2],
    [to.x + to.w / 2, end],
  ];
}

/** The number of the lane of each edge, from the boxes outward; edges of one value share a lane, short ones are inside. */
function laneOfEach(edges) {
  const runs = new Map();
  for (const edge of edges) {
    const run = runs.get(edge.value) ?? { value: edge.value, first: Infinity, last: -1 };
    run.first = Math.min(run.first, edge.from.row, edge.to.row);
    run.last = Math.max(run.last, edge.from.row, edge.to.row);
    runs.set(edge.value, run);
  }
  const taken = [];
  for (const run of [...runs.values()].sort((a, b) => a.last - a.first - (b.last - b.first))) {
    const isFree = (lane) => lane.every((other) => other.last <= run.first || run.last <= other.first);
    run.lane = taken.findIndex(isFree);
    if (run.lane < 0) run.lane = taken.push([]) - 1;
    taken[run.lane].push(run);
  }
  return new Map(edges.map((edge) => [edge, runs.get(edge.value).lane]));
}
