// What the page says before anything is chosen: what is down, the weakest pair, the busiest links,
// and the last changes.
/* global d3 */

import { prefixesCell, routesOf } from "./announced.js";
import { why } from "./changes.js";
import { age, bandwidth, bar, count, h, moment, share, table } from "./format.js";
import { fetchDocument, loadOf } from "./model.js";
import { paced } from "./pace.js";

const MOST = 40;
const BUSIEST = 5;
const CHANGES = 5;
const LEAST_PAUSE = 1000;
const ALIKE = 0.999;
const WEAKEST = 5;
const LEAST_LOAD = 0.005;
/** What the routers of the lowest tier are called. */
const ENDS = new Map([[0, "leaves"], [1, "spines"], [null, "routers (the other one with the shift key)"]]);
const KINDS = new Map([[0, "leaf"], [1, "spine"], [null, "router"]]);
const kindsOf = (model) => ENDS.get(model.lowest).split(" ")[0];

export function showOverview(panel) {
  const { turn } = panel;
  const place = h("div", { class: "overview", "aria-busy": "true" });
  let [least, routes, changes] = [null, null, null];
  const fill = () => refill(place, content(panel, least, routes, changes));
  const alive = () => turn === panel.turn;
  const read = paced(async () => {
    const [weights, { changes: last } = {}] = await Promise.all([one("weights"), one("convergence")]);
    if (!alive()) return;
    [least, routes, changes] = [weights ? leastCapacity(panel.model, weights.vectors) : null, panel.bgp && weights ? routesOf(weights.vectors) : null, last];
    panel.learned(weights);
    fill();
    place.removeAttribute("aria-busy");
  }, alive);
  fill();
  read();
  panel.follows = () => true;
  panel.renew = paced(fill, alive, LEAST_PAUSE);
  panel.reread = read;
  return [place];
}

/** A document; undefined if the router has none now: the others are shown. */
function one(name) {
  return fetchDocument(name).catch(() => undefined);
}

/** Put new elements in; a button that had the focus keeps it. */
function refill(place, elements) {
  const focused = place.contains(document.activeElement) ? document.activeElement.innerText : null;
  place.replaceChildren(...elements);
  if (focused === null) return;
  [...place.querySelectorAll("button")].find((button) => button.innerText === focused)?.focus({ preventScroll: true });
}

function content(panel, least, routes, changes) {
  const { model, status } = panel;
  const links = status?.links;
  const weakest = ofAllPairs(model);
  if (!model.nodes.size) return [h("p", { class: "dim" }, "The fabric is not known yet.")];
  return [
    tiles(panel, links, weakest ?? least, routes),
    links?.missing.length ? downHere(model, links) : null,
    unusual(panel),
    weakest ? weakestPair(panel, weakest) : least ? capacity(panel, least) : null,
    routes?.length ? announced(panel, routes) : null,
    busiest(panel),
    changes ? lastChanges(panel, changes) : null,
    h("p", { class: "dim" }, panel.onlyBgp ? "Choose a router, a link, or a destination." : `Choose a router or a link. Two ${ENDS.get(model.lowest)} show all paths between them.`),
    model.here ? h("p", {}, panel.router(model.here, `Neighbors and weights of ${model.name(model.here)}`)) : null,
  ].filter(Boolean);
}

function tiles(panel, links, least, routes) {
  const { model } = panel;
  const limited = routes ? d3.sum(routes, (row) => (row.limited ? row.prefixes : 0)) : 0;
  const missing = model.missing().links.length;
  const slow = model.odd.size - missing;
  const tile = (kind, figure, text) => h("li", { class: `tile ${kind}` }, h("strong", {}, figure), h("span", {}, text));
  const down = links?.missing.length ?? 0;
  return h("ul", { class: "tiles", "aria-label": "In short" }, [
    links?.total ? tile(down ? "bad" : "good", `${links.total - downOf(links)} of ${links.total}`, panel.onlyBgp ? "sessions up here" : "adjacencies up here") : null,
    tile(missing ? "bad" : "good", String(missing), missing === 1 ? "link is missing" : "links are missing"),
    tile(slow ? "warn" : "good", String(slow), slow === 1 ? "link is unusual" : "links are unusual"),
    routes?.length && !least ? tile(limited ? "warn" : "good", String(limited), limited === 1 ? "route that neighbors limit" : "routes that neighbors limit") : null,
    least ? tile(least.full ? "good" : "warn", bandwidth(least.capacity), least.short) : null,
  ].filter(Boolean));
}

/** Interfaces without an adjacency: one of two protocols that has none is counted once. */
function downOf(links) {
  return new Set(links.missing.map((each) => each.interface)).size;
}

function downHere(model, links) {
  const once = new Map(links.missing.map((each) => [`${each.interface} ${each.text}`, each]));
  const rows = [...once.values()].map((each) => {
    const name = each.hostname ?? (each.neighbor ? model.name(each.neighbor) : each.interface);
    const why = name === each.interface ? each.text : `${each.interface}: ${each.text}`;
    return [name, each.since === null ? "" : age(each.since), why];
  });
  return table(`Down at ${model.name(model.here)}: ${downOf(links)} of ${count(links.total, "link")}`, ["Neighbor", ">For", "Why"], rows);
}

function unusual(panel) {
  const { model } = panel;
  const { routers, alone } = model.missing();
  const of = (node) => model.of.get(node.id).filter((link) => !link.present);
  const covered = new Set(routers.flatMap(of));
  const all = model.unusual().filter((link) => !covered.has(link));
  const rows = [
    ...routers.map((node) => [panel.router(node.id), h("span", { class: "state lost" }, "missing"), allGone(of(node), alone.has(node.id) && !node.gone)]),
    ...all.map((link) => [panel.link(link), panel.state(link), link.reason]),
  ].slice(0, MOST);
  const empty = "No link is down, drained, or slower than its siblings.";
  const more = all.length + routers.length - rows.length;
  const rest = more > 0 ? h("p", { class: "dim" }, `and ${more} more: see Links`) : "";
  return h("div", {}, table("Missing and unusual links", [routers.length ? "Router, link" : "Link", "State", "Why"], rows, { empty }), rest);
}

/** Of a router without a link: since when the last one is gone. */
function allGone(links, listed) {
  const since = Math.max(...links.map((link) => link.missing?.since ?? 0));
  const when = since ? ` since ${moment(since)}` : "";
  return `all of its ${count(links.length, "link")} are gone${when}${listed ? "; what it said last is still known" : ""}`;
}

/** The weakest pair, and how the page says it; null: it is not known. */
function ofAllPairs(model) {
  const { weakest } = model;
  if (!weakest || !model.nodes.has(weakest.from) || !model.nodes.has(weakest.to)) return null;
  const whole = Math.max(model.whole(weakest.from, weakest.to) ?? 0, weakest.capacity);
  const full = weakest.capacity >= whole * ALIKE;
  const every = weakest.alike === weakest.pairs;
  const any = `between any two ${kindsOf(model)}`;
  const name = model.direction(weakest.from, weakest.to);
  return { ...weakest, whole, full, every, name, short: every ? any : full ? `${any}, or more` : `${name}, the weakest pair` };
}

function weakestPair(panel, pair) {
  const { model } = panel;
  const kinds = kindsOf(model);
  const has = [h("strong", {}, bandwidth(pair.capacity)), pair.full ? "" : ` of ${bandwidth(pair.whole)}`];
  const go = h("button", { type: "button", class: "go", click: () => panel.choose({ nodes: [pair.from, pair.to] }) }, pair.name);
  const most = pair.usual > pair.capacity / ALIKE ? `; most have ${bandwidth(pair.usual)}.` : ".";
  const said = pair.every || pair.full
    ? [`Any two ${kinds} have ${pair.every ? "" : "at least "}`, ...has, "."]
    : ["The weakest pair is ", go, ": ", ...has, most];
  const alike = pair.every ? "" : ` ${count(pair.alike, "has", "have")} this capacity.`;
  const unknown = pair.unknown ? ` Of ${pair.unknown.toLocaleString("en")} more it is not known.` : "";
  return h("div", {}, h("h3", {}, `Capacity between ${kinds}`), h("p", {}, said),
    h("p", { class: "dim small" }, `All path capacities together, of all ${count(pair.pairs, "pair")} of ${kinds} `
      + `that ${model.name(model.here)} knows; each direction is one.${alike}${unknown}`));
}

/** The router of the lowest tier to which the path capacities of all next hops add up to the least. */
function leastCapacity(model, vectors) {
  const found = new Map();
  const ids = new Map(model.routers.map(({ name, id }) => [name, id]));
  for (const { destinations, members } of vectors) {
    if (members.some((member) => member.capacity === null)) continue;
    const together = members.reduce((sum, member) => sum + member.capacity, 0);
    for (const name of destinations) {
      const id = ids.get(name);
      if (id === undefined || id === model.here || (model.clos && !model.isLowest(id))) continue;
      // a vector of an anycast prefix has the capacity of all of its routers together
      found.set(id, Math.min(together, found.get(id) ?? Infinity));
    }
  }
  if (!found.size) return null;
  const all = [...found.values()].sort((x, y) => x - y);
  const usual = all[Math.floor(all.length / 2)];
  const capacity = all[0];
  const weak = [...found].filter(([, together]) => together <= capacity / ALIKE).map(([id]) => id);
  const kinds = kindsOf(model);
  const whole = Math.max(model.whole(model.here, weak[0]) ?? 0, capacity);
  const alike = weak.length === found.size;
  const full = capacity >= whole * ALIKE;
  const each = `each ${!model.clos || model.isLowest(model.here) ? "other " : ""}${KINDS.get(model.lowest)}`;
  const names = weak.length > 1 ? `${weak.length} ${kinds}` : model.name(weak[0]);
  return { capacity, usual, whole, weak, kinds, alike, full, each, short: alike ? `to ${each}` : full ? `to ${each}, or more` : `to ${names}, the least from here` };
}

function capacity(panel, { capacity: least, usual, whole, weak, kinds, alike, full, each }) {
  const { model } = panel;
  const here = model.name(model.here);
  const names = weak.slice(0, 3).flatMap((id, i) => [i ? ", " : "", h("button", { type: "button", class: "go", click: () => panel.choose({ nodes: [model.here, id] }) }, model.name(id))]);
  const more = weak.length > 3 ? ` and ${weak.length - 3} more` : "";
  const has = [h("strong", {}, bandwidth(least)), full ? "" : ` of ${bandwidth(whole)}`];
  const said = alike || full
    ? [`${here} has ${alike ? "" : "at least "}`, ...has, ` to ${each}.`]
    : [`${here} has the least to `, ...names, more, ": ", ...has, usual > least / ALIKE ? `; to most ${kinds} it has ${bandwidth(usual)}.` : "."];
  return h("div", {}, h("h3", {}, `Capacity from ${here}`), h("p", {}, said),
    h("p", { class: "dim small" }, "All path capacities together, from this router only: two others may have less between them. ",
      h("code", {}, "fared-cli plan"), " looks at all pairs."));
}

/** What neighbors announce, where that is less than their links carry. */
function announced(panel, routes) {
  const { model } = panel;
  const limited = routes.filter((row) => row.limited);
  const rows = limited.slice(0, WEAKEST).map((row) => [prefixesCell(panel, row), bandwidth(row.links), h("strong", {}, bandwidth(row.carries))]);
  const empty = `No neighbor of ${model.name(model.here)} announces less than its link carries.`;
  return h("div", {}, table("Routes that neighbors limit", ["Destinations", ">Links", ">Carry"], rows, { empty }),
    h("p", {}, h("button", { type: "button", class: "go", click: () => panel.open("routes") }, "All routes, by what they carry")));
}

function busiest(panel) {
  const { model } = panel;
  const top = [];
  let known = false;
  for (const link of model.links.values()) {
    for (const [from, to, row] of [[link.a, link.b, link.ab], [link.b, link.a, link.ba]]) {
      const load = loadOf(row);
      known ||= load !== null;
      if (load < LEAST_LOAD || (top.length === BUSIEST && load <= top[BUSIEST - 1].load)) continue;
      top.push({ link, from, to, load, row });
      top.sort((x, y) => y.load - x.load);
      top.length = Math.min(top.length, BUSIEST);
    }
  }
  const rows = top.map(({ link, from, to, load, row }) => [
    h("button", { type: "button", class: "go", click: () => panel.choose({ link }) }, model.direction(from, to)),
    h("span", {}, bar(load, link.state ?? ""), ` ${share(load)}`),
    bandwidth(row.capacity),
  ]);
  const empty = known ? "No link carries load, as far as routers announce it." : "The load of links is not known: no router announces it.";
  return table("Busiest links", ["Link", "Load", ">Capacity"], rows, { empty });
}

function lastChanges(panel, changes) {
  const rows = changes.slice(-CHANGES).reverse().map((change) => [age(change.at), why(change), count(change.routes, "route")]);
  return h("div", {}, table("Last changes", [">Ago", "What", ">Changed"], rows, { empty: "Nothing has changed since it started." }),
    rows.length ? h("p", {}, h("button", { type: "button", class: "go", click: () => panel.open("changes") }, "All changes, and their stages")) : "");
}
