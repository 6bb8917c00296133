// Where routers are drawn: tiers in rows, pods beside each other; other graphs by force.
/* global d3 */

const LEAST_SLOT = 9;
const TICKS = 240;

/** Places of all routers in an area of width x height, labels of pods and planes, and the room of a router. */
export function layout(model, width, height, before = new Map()) {
  return model.clos ? tiers(model, width, height) : force(model, width, height, before);
}

function ordered(nodes) {
  const collator = new Intl.Collator("en", { numeric: true });
  return [...nodes].sort((x, y) =>
    (x.pod ?? 0) - (y.pod ?? 0) || (x.plane ?? 0) - (y.plane ?? 0) || collator.compare(x.name, y.name));
}

function tiers(model, width, height) {
  const rows = [[], [], [], []];
  for (const node of model.nodes.values()) rows[node.tier ?? 3].push(node);
  const [leaves, spines, supers, others] = rows.map(ordered);
  const side = Math.min(56, width * 0.06) + 12;
  const [left, right] = [side, width - side];
  const top = supers.length ? Math.min(124, height * 0.24) : Math.min(104, height * 0.19);
  const bottom = height - Math.min(104, height * 0.2);
  const places = new Map();
  const leafRow = row(leaves, left, right, (node) => node.pod);
  leafRow.forEach(({ node, x, line, lines }) => places.set(node.id, { x, y: bottom + (line - (lines - 1) / 2) * 15 }));
  const middle = supers.length ? top + (bottom - top) * 0.52 : top;
  if (supers.length) {
    for (const { node, x } of row(supers, left, right, (one) => one.plane)) places.set(node.id, { x, y: top });
    const pods = d3.group(spines, (node) => node.pod);
    const wide = (right - left) / pods.size;
    for (const [pod, members] of pods) {
      const below = leafRow.filter(({ node }) => node.pod === pod).map(({ x }) => x);
      const [low, high] = below.length ? d3.extent(below) : [left, right];
      const spread = Math.max(high - low, Math.min(44 * (members.length - 1), wide - 66));
      const from = Math.max(left, Math.min(right - spread, (low + high - spread) / 2));
      const step = members.length > 1 ? spread / (members.length - 1) : 0;
      members.forEach((node, i) => places.set(node.id, { x: step ? from + step * i : from + spread / 2, y: middle }));
    }
  } else {
    const inset = spines.length < leaves.length / 2 ? (right - left) * 0.1 : 0;
    for (const { node, x } of row(spines, left + inset, right - inset)) places.set(node.id, { x, y: middle });
  }
  others.forEach((node, i) => places.set(node.id, { x: left + 30 * i, y: height - 40 }));
  return { places, groups: framesOf(spines, leaves, supers, places), room: roomOf(places), curved: true };
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
      found.push({ node, x: at, line: number % lines, lines });
      at += step;
      number += 1;
    }
    at += step * 0.9;
  }
  return found;
}

/** Frames around the routers of each pod, and of each plane. */
function framesOf(spines, leaves, supers, places) {
  const groups = [];
  for (const [plane, members] of d3.group(supers, (node) => node.plane)) {
    if (plane === null) continue;
    const [x0, x1] = d3.extent(members, (node) => places.get(node.id).x);
    groups.push({ label: `plane ${plane}`, x: x0, y: places.get(members[0].id).y - 20, width: x1 - x0, height: 14, below: false });
  }
  for (const [pod, members] of d3.group([...spines, ...leaves], (node) => node.pod)) {
    if (pod === null) continue;
    const [x0, x1] = d3.extent(members, (node) => places.get(node.id).x);
    const [y0, y1] = d3.extent(members, (node) => places.get(node.id).y);
    groups.push({ label: `pod ${pod}`, x: x0, y: y0 - 12, width: x1 - x0, height: y1 - y0 + 12, below: true });
  }
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
