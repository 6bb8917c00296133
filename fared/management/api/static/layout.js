// Where routers are drawn: tiers in rows, pods beside each other; other graphs by force.
/* global d3 */

const LEAST_SLOT = 9;
const MOST_ARC = 42;
const ABOVE = 84;
const BELOW = 56;
const ROOM = 44;
const NARROW = 600;
const LEGEND = 36;
const TICKS = 240;

/** Places of all routers in an area of width x height, labels of pods and planes, and the room of a router.
 * `beyond`: with room for a destination behind the neighbors of this router. */
export function layout(model, width, height, before = new Map(), beyond = false) {
  if (!model.clos && isStar(model)) return star(model, width, height, beyond);
  return model.clos ? tiers(model, width, height, beyond) : force(model, width, height, before);
}

/** How far the curve between two places bends at each of them. Those in one row have an arc between them. */
export function bends(a, b) {
  if (Math.abs(b.y - a.y) < 1) {
    const arc = Math.min(MOST_ARC, Math.abs(b.x - a.x) * 0.35) * (a.below ? -1 : 1);
    return [arc, arc];
  }
  const bend = (b.y - a.y) * 0.42;
  return [bend, -bend];
}

/** Whether all links are this router's, as BGP knows them. */
function isStar({ here, links, nodes }) {
  return nodes.size > 2 && links.size > 0 && [...links.values()].every((link) => link.a === here || link.b === here);
}

/** This router below its neighbors. */
function star(model, width, height, beyond) {
  const side = Math.min(56, width * 0.06) + 12;
  const top = Math.min(104, height * 0.19) + (beyond ? ABOVE : 0);
  const bottom = height - Math.min(104, height * 0.2) - (width < NARROW ? LEGEND : 0);
  const neighbors = row(model.inOrder.filter(({ id }) => id !== model.here), side, width - side);
  const places = new Map(neighbors.map(({ node, x, line }) => [node.id, { x, y: top + line * 15, below: false }]));
  places.set(model.here, { x: width / 2, y: bottom, below: true });
  return { places, groups: [], room: roomOf(places), curved: true };
}

function tiers(model, width, height, beyond) {
  const rows = [[], [], [], []];
  for (const node of model.inOrder) rows[node.tier ?? 3].push(node);
  const [leaves, spines, supers, others] = rows;
  const ends = (node) => model.of.get(node.id).map((link) => model.nodes.get(link.a === node.id ? link.b : link.a));
  const above = others.filter((node) => ends(node).length && ends(node).every((end) => end?.tier === 2));
  const below = others.filter((node) => !above.includes(node));
  const tier = model.nodes.get(model.here)?.tier;
  const toward = new Set(beyond && model.of.has(model.here) ? ends({ id: model.here }).map((end) => Math.sign((end?.tier ?? tier) - tier)) : []);
  const side = Math.min(56, width * 0.06) + 12;
  const [left, right] = [side, width - side];
  const top = (supers.length ? Math.min(124, height * 0.24) : Math.min(104, height * 0.19)) + (above.length || toward.has(1) ? ABOVE : 0);
  const bottom = height - Math.min(104, height * 0.2) - (below.length || toward.has(-1) ? BELOW : 0) - (width < NARROW ? LEGEND : 0);
  const middle = !supers.length ? top : leaves.length ? top + (bottom - top) * 0.52 : bottom;
  const places = new Map();
  const put = (node, x, line = 0) => places.set(node.id, node.tier
    ? { x, y: node.tier === 2 ? top : middle, below: node.tier === 1 && middle === bottom }
    : { x, y: bottom + line * 15, below: true });
  let far = [];
  if (supers.length) {
    row(supers, left, right, (node) => node.plane).forEach(({ node, x }) => put(node, x));
    // Of other pods a border router knows the spines of its planes only: they take room beside its own.
    const pods = d3.group(leaves, (node) => node.pod);
    far = spines.filter((node) => !pods.has(node.pod));
    inPods(pods, d3.group(spines, (node) => node.pod), far, left, right, put);
  } else {
    row(leaves, left, right).forEach(({ node, x, line }) => put(node, x, line));
    const inset = spines.length < leaves.length / 2 ? (right - left) * 0.1 : 0;
    row(spines, left + inset, right - inset).forEach(({ node, x }) => put(node, x));
  }
  beside(above, ends, places, left, right, { y: top - ABOVE, below: false });
  beside(below, ends, places, left, right, { y: bottom + BELOW * 1.4, below: true });
  return { places, groups: framesOf(spines, far, leaves, supers, places), room: roomOf(places), curved: true };
}

/** Place leaves and spines of pods beside each other: those that are more take the room, the others share it. */
function inPods(pods, spinesOf, far, left, right, put) {
  const fewer = new Map();
  const wide = [];
  for (const [pod, leaves] of pods) {
    const spines = spinesOf.get(pod) ?? [];
    const [more, few] = leaves.length < spines.length ? [spines, leaves] : [leaves, spines];
    wide.push(...more);
    fewer.set(pod, few);
  }
  const placed = row([...wide, ...far], left, right, (node) => (pods.has(node.pod) ? node.pod : "far"));
  placed.forEach(({ node, x, line }) => put(node, x, line));
  for (const [pod, few] of fewer) {
    const [low, high] = d3.extent(placed.filter(({ node }) => node.pod === pod), ({ x }) => x);
    few.forEach((node, i) => put(node, few.length > 1 ? low + ((high - low) * i) / (few.length - 1) : (low + high) / 2));
  }
}

/** Place routers that are in no tier near their neighbors. */
function beside(nodes, ends, places, left, right, place) {
  const wanted = nodes.map((node) => ({ node, x: d3.mean(ends(node), (end) => places.get(end?.id)?.x) ?? left }));
  let least = left;
  d3.sort(wanted, ({ x }) => x).forEach(({ node, x }, i) => {
    const at = Math.max(least, Math.min(x, right - ROOM * (nodes.length - 1 - i)));
    places.set(node.id, { ...place, x: at });
    least = at + ROOM;
  });
}

/** Spread routers over a row, with gaps between groups; many take several lines. */
function row(nodes, left, right, group = () => null) {
  const groups = d3.group(nodes, group);
  const slots = nodes.length + (groups.size - 1) * 0.9;
  const lines = Math.max(1, Math.ceil((slots * LEAST_SLOT) / (right - left)));
  const step = (right - left) / slots;
  let at = left + step / 2;
  const found = [];
  let number = 0;
  for (const members of groups.values()) {
    for (const node of members) {
      found.push({ node, x: at, line: (number % lines) - (lines - 1) / 2 });
      at += step;
      number += 1;
    }
    at += step * 0.9;
  }
  return found;
}

/** Frames around the routers of each pod, of each plane, and of other pods. */
function framesOf(spines, far, leaves, supers, places) {
  const groups = [];
  const planes = d3.group(supers, (node) => node.plane);
  for (const [plane, members] of planes) {
    if (plane === null) continue;
    const [x0, x1] = d3.extent(members, (node) => places.get(node.id).x);
    groups.push({ label: planes.size > 1 ? `plane ${plane}` : "plane", x: x0, y: places.get(members[0].id).y - 20, width: x1 - x0, height: 14, below: false });
  }
  const framed = (label, members) => {
    const [x0, x1] = d3.extent(members, (node) => places.get(node.id).x);
    const [y0, y1] = d3.extent(members, (node) => places.get(node.id).y);
    groups.push({ label, x: x0, y: y0 - 12, width: x1 - x0, height: y1 - y0 + 12, below: true });
  };
  const near = spines.filter((node) => !far.includes(node));
  const pods = d3.group([...near, ...leaves].filter((node) => node.pod !== null), (node) => node.pod);
  for (const [pod, members] of pods) framed(pods.size > 1 ? `pod ${pod}` : "pod", members);
  if (far.length && leaves.length) framed(far.length > 1 ? "other pods" : "another pod", far);
  return groups;
}

/** The distance between neighbors in the fullest line. */
function roomOf(places) {
  let least = 120;
  for (const line of d3.group(places.values(), (place) => place.y).values()) {
    const xs = line.map(({ x }) => x).sort((a, b) => a - b);
    for (let i = 1; i < xs.length; i += 1) least = Math.min(least, xs[i] - xs[i - 1]);
  }
  return least;
}

function force(model, width, height, before) {
  const random = d3.randomLcg(1);
  const nodes = [...model.nodes.values()].map((node) => ({ id: node.id, ...before.get(node.id) }));
  const links = [...model.links.values()]
    .filter((link) => model.nodes.has(link.a) && model.nodes.has(link.b))
    .map((link) => ({ source: link.a, target: link.b }));
  const simulation = d3.forceSimulation(nodes)
    .randomSource(random)
    .force("link", d3.forceLink(links).id((node) => node.id).distance(80))
    .force("charge", d3.forceManyBody().strength(-220))
    .force("x", d3.forceX().strength(0.06))
    .force("y", d3.forceY().strength(0.08))
    .stop();
  simulation.tick(Math.max(40, Math.min(TICKS, Math.round(60000 / (nodes.length + 1)))));
  const [x0, x1] = d3.extent(nodes, (node) => node.x);
  const [y0, y1] = d3.extent(nodes, (node) => node.y);
  const scale = Math.min((width - 160) / (x1 - x0 || 1), (height - 190) / (y1 - y0 || 1), 2.2);
  const places = new Map(nodes.map((node) => [node.id, {
    x: width / 2 + (node.x - (x0 + x1) / 2) * scale,
    y: height / 2 + (node.y - (y0 + y1) / 2) * scale - 10,
  }]));
  return { places, groups: [], room: Math.max(12, 60 * scale), curved: false };
}
