// One router: its neighbors and, of the router whose page this is, routes and weights.

import { prefixesCell } from "./announced.js";
import { bandwidth, bar, byNumbers, count, h, share, table } from "./format.js";
import { fetchDocument, loadOf, STATE_WORDS } from "./model.js";

const MOST = 40;

export function showRouter(panel, id) {
  const { model } = panel;
  const node = model.nodes.get(id);
  if (!node) return [h("p", { class: "notice" }, `${id} is not there any more.`)];
  const links = [...(model.of.get(id) ?? [])].sort((x, y) => byName(model, other(x, id), other(y, id)));
  const rows = links.map((link) => {
    const out = link.from(id);
    const load = loadOf(out);
    return [
      panel.router(other(link, id)),
      h("button", { type: "button", class: "go", click: () => panel.choose({ link }), "aria-label": `${STATE_WORDS[link.state] ?? "up"}: the link to ${model.name(other(link, id))}` }, panel.state(link)),
      out ? bandwidth(out.capacity) : "",
      load === null ? "" : h("span", {}, bar(load, link.state ?? ""), ` ${share(load)}`),
    ];
  });
  panel.follows = (link) => link.a === id || link.b === id;
  panel.renew = () => panel.render();
  if (node.gone) return goneRouter(panel, node, links);
  const own = node.here ? panel.later(ownWeights(panel), (found) => found) : pageOf(node);
  return [
    h("h2", {}, node.name),
    h("p", { class: "dim" }, placeOf(node)),
    model.missing().alone.has(id) ? h("p", { class: "notice" }, "None of its neighbors lists it any more: it failed, or all of its links did.") : null,
    pathsFrom(panel, id),
    table("Neighbors", ["Router", "Link", ">Capacity", "Load out"], rows),
    own,
  ].filter(Boolean);
}

/** A router that left the database: its links, and since when. */
function goneRouter(panel, node, links) {
  const rows = links.map((link) => [panel.router(other(link, node.id)), panel.link(link), link.reason]);
  return [h("h2", {}, node.name), h("p", { class: "dim" }, placeOf(node)), table("Its links are missing", ["Neighbor", "Link", "Why"], rows)];
}

function other(link, id) {
  return link.a === id ? link.b : link.a;
}

function byName(model, x, y) {
  return byNumbers(model.name(x), model.name(y));
}

function placeOf(node) {
  const parts = [
    node.gone ? "missing" : null,
    node.network ? "a network" : node.role ?? "router",
    node.pod ? `pod ${node.pod}` : null,
    node.plane ? `plane ${node.plane}` : null,
    node.ids.join(", "),
    node.gone ? null : count(node.prefixes, "prefix", "prefixes"),
    node.transit ? null : "paths may end here, not cross it",
    node.last_resort ? "paths cross it where there is no other way" : null,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Choose the other end of paths without a pointer. */
function pathsFrom(panel, id) {
  const { model } = panel;
  const ends = [...model.nodes.values()].filter((node) => node.id !== id && !node.network && !node.gone);
  const chosen = model.isLowest(id) ? ends.filter((node) => model.isLowest(node.id)) : ends;
  const options = chosen.sort((x, y) => byName(model, x.id, y.id)).slice(0, 1000).map((node) => h("option", { value: node.id }, node.name));
  const select = h("select", { id: "to", change: () => select.value && panel.choose({ nodes: [id, select.value] }) },
    h("option", { value: "" }, "choose…"), options);
  return h("p", { class: "row" }, h("label", { for: "to" }, "All paths to"), select);
}

function pageOf(node) {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(node.id)) return null;
  const url = `http://${node.id}:${location.port || 80}/`;
  return h("p", {}, h("a", { href: url, rel: "noreferrer" }, `The page of ${node.name}`));
}

/** Routes of this router whose next hops have unequal weights. */
async function ownWeights(panel) {
  const { vectors } = await fetchDocument("weights");
  const uneven = vectors.filter((vector) => new Set(vector.members.map((member) => member.weight)).size > 1);
  if (!uneven.length) return table("Unequal weights", [], [], { empty: "All next hops of each route have equal weights." });
  const rows = uneven.slice(0, MOST).flatMap((vector) => vector.members.map((member, index) => [
    index ? "" : vector.protocol === "bgp" ? prefixesCell(panel, vector) : routesOf(vector),
    h("span", { title: member.interface }, member.hostname ?? member.neighbor),
    bandwidth(member.capacity),
    h("span", {}, bar(member.share), ` ${share(member.share)}`),
  ]));
  return table("Unequal weights", ["Routes", "Next hop", ">Carries", "Share"], rows);
}

function routesOf(vector) {
  const more = vector.prefixes - vector.examples.length;
  return vector.examples.join(", ") + (more > 0 ? ` and ${more} more` : "");
}
