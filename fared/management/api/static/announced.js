// Of BGP: what neighbors announce for a destination, the lesser of it and of their link, and who limits them.
/* global d3 */

import { bandwidth, byNumbers, count, h, share, table } from "./format.js";
import { fetchDocument, linkKey } from "./model.js";
import { paced } from "./pace.js";

/** As much as this part of the whole is all of it. */
const ALIKE = 0.999;
const MOST = 4;
const MOST_ROWS = 12;

/** Whether a text may be a prefix or an address. */
export function isPrefix(text) {
  return /^[0-9a-f.:]*[.:][0-9a-f.:]*(\/\d+)?$/i.test(text.trim());
}

export function showAnnounced(panel, prefix) {
  const place = h("div", { class: "announced", "aria-busy": "true" });
  const { turn } = panel;
  const alive = () => turn === panel.turn;
  const read = paced(async () => {
    try {
      const [{ routes: [route] }, why] = await Promise.all([
        fetchDocument("bgp-routes", { prefix }), fetchDocument("explain", { prefix }).catch(() => null),
      ]);
      if (!alive()) return;
      const ways = waysOf(panel.model, route, why);
      place.replaceChildren(...content(panel, route, ways));
      panel.beyond({ name: route.prefix, ways });
    } catch (error) {
      if (alive()) place.replaceChildren(h("p", { class: "notice" }, error.message));
    }
    place.removeAttribute("aria-busy");
  }, alive);
  read();
  panel.reread = read;
  return [h("h2", {}, `Paths to ${prefix}`), place];
}

/** One way for each router: links to it count together, and what it announces once. */
function waysOf(model, route, why) {
  const used = d3.group(route.paths.filter((path) => path.used && path.router_id), (path) => path.router_id);
  return [...used].map(([router, paths]) => {
    const id = [...model.nodes.values()].find((node) => node.ids.includes(router))?.id ?? router;
    const known = paths.map((path) => path.bandwidth).filter((value) => value !== null);
    const announced = known.length ? Math.max(...known) : null;
    const links = paths.every((path) => path.link !== null) ? d3.sum(paths, (path) => path.link) : null;
    const hops = why?.nexthops.filter((hop) => hop.neighbor === router) ?? [];
    const values = [announced, links].filter((value) => value !== null);
    return {
      id, announced, links, hops, names: paths.map((path) => path.neighbor), limit: limitOf(model, hops[0], id, route.prefix),
      carries: values.length ? Math.min(...values) : null, share: hops.length ? d3.sum(hops, (hop) => hop.share) : null,
      link: model.links.get(linkKey(model.here, id)) ?? null, limited: announced !== null && (links === null || announced < links * ALIKE),
    };
  }).sort((x, y) => byNumbers(model.name(x.id), model.name(y.id)));
}

/** By whom a path is limited, in words; null: by its link, or it is not known. */
function limitOf(model, hop, id, prefix) {
  const limit = hop?.limiting_link;
  if (!limit || model.nodes.get(model.here)?.ids.includes(limit.from)) return null;
  const name = limit.from_hostname ?? limit.from;
  return limit.to === prefix && limit.from === id ? "what it announces" : `what ${name} carries`;
}

function content(panel, route, ways) {
  const { model } = panel;
  const own = route.paths.find((path) => path.used && !path.router_id);
  if (own) return [h("p", { class: "lead" }, `${route.prefix} is ${own.neighbor === "own" ? "a network of this router" : "redistributed here"}.`), told(model, route)];
  const rows = ways.map((way) => [
    h("span", {}, panel.router(way.id), h("span", { class: "reason" }, whatLimits(way))),
    figure(way.links, !way.limited), figure(way.announced, way.limited), way.share === null ? "" : share(way.share),
  ]);
  const others = route.paths.filter((path) => !path.used).map((path) => [path.neighbor, path.why_not ?? "not decided yet"]);
  return [
    h("p", { class: "lead" }, h("strong", {}, verdict(model, route, ways))),
    table(`${count(rows.length, "neighbor")} in use`, ["Neighbor", ">Link", ">Announced", ">Share"], rows),
    h("p", { class: "dim small" }, "Each carries the lesser of its link and of what it announces."),
    others.length ? table("Not used", ["Neighbor", "Why"], others) : null,
    told(model, route),
  ].filter(Boolean);
}

function whatLimits(way) {
  if (way.carries === null) return "capacity unknown";
  if (way.limit) return `limited by ${way.limit}`;
  return way.limited ? "limited by what it announces" : "its link is the limit";
}

/** The lesser of two figures stands out. */
function figure(value, least) {
  if (value === null) return h("span", { class: "dim" }, "no limit");
  return least ? h("strong", {}, bandwidth(value)) : h("span", { class: "dim" }, bandwidth(value));
}

/** "1225G of 1600G: S1 announces 25G of 400G." Of what neighbors share, the sum would promise too much. */
function verdict(model, route, ways) {
  if (!ways.length) return "No path is used.";
  if (ways.some((way) => way.carries === null)) return "What these paths carry is not known.";
  const most = d3.sum(ways, (way) => way.links ?? way.carries);
  const sum = d3.sum(ways, (way) => way.carries);
  const together = Math.min(sum, route.carries ?? sum);
  if (together >= most * ALIKE) return `${bandwidth(together)} together: no neighbor announces less than its link.`;
  const slow = d3.groups(ways.filter((way) => way.limited), (way) => `${bandwidth(way.announced)} of ${bandwidth(way.links)}`);
  const said = slow.map(([what, all]) => `${namesOf(model, all)} ${all.length > 1 ? "announce" : "announces"} ${what}${all.length > 1 ? " each" : ""}`);
  const shared = together < sum * ALIKE ? sharedOf(route, together) : null;
  const reasons = [...(shared ? [shared] : []), ...said];
  return `${bandwidth(together)} of ${bandwidth(most)}: ${reasons.slice(0, MOST).join("; ")}${reasons.length > MOST ? `; and ${reasons.length - MOST} more` : ""}.`;
}

function namesOf(model, ways) {
  const names = ways.map((way) => model.name(way.id));
  const more = names.length - MOST;
  return more > 0 ? `${names.slice(0, MOST).join(", ")} and ${more} more` : names.join(", ");
}

/** The routers beyond the neighbors that several paths pass through, and that limit them together. */
function sharedOf(route, together) {
  const named = new Map();
  for (const path of route.paths.filter(({ used }) => used)) {
    for (const limit of path.limits.filter(({ router_id: id }) => id !== path.router_id)) named.set(limit.router_id, limit);
  }
  const found = [...named.values()].filter((limit) => limit.carries !== null && limit.carries <= together / ALIKE);
  const name = (limit) => limit.hostname ?? limit.router_id;
  return found.length ? found.map((limit) => `${name(limit)}, which they share, carries ${bandwidth(limit.carries)}`).join("; ") : "they share routers that carry less";
}

/** To whom this router announces it, with which bandwidth. */
function told(model, route) {
  const rows = (route.advertised_to ?? []).map((each) => [each.neighbor, each.bandwidth === null ? "no limit" : bandwidth(each.bandwidth)]);
  return rows.length ? table("Advertised to", ["Neighbor", ">Bandwidth"], rows) : null;
}

/** What the neighbor at the far end of an own link announces, the least first. */
export async function announcedOver(panel, link) {
  const { model } = panel;
  const far = model.nodes.get(link.a === model.here ? link.b : link.a);
  const { routes } = await fetchDocument("bgp-routes", { neighbor: far.id });
  const kinds = d3.groups(routes.map(({ prefix, paths: [path] }) => ({ prefix, path })), ({ path }) => `${path.bandwidth} ${path.used}`);
  const rows = d3.sort(kinds, ([, [{ path }]]) => path.bandwidth ?? Infinity).slice(0, MOST_ROWS).map(([, all]) => {
    const [{ prefix, path }, ...others] = all.sort((x, y) => byNumbers(x.prefix, y.prefix));
    const limited = path.bandwidth !== null && path.link !== null && path.bandwidth < path.link * ALIKE;
    const more = others.length ? h("span", { class: "reason" }, `and ${count(others.length, "more", "more")}`) : "";
    return [
      h("div", {}, panel.destination(prefix), more),
      path.bandwidth === null ? "no limit" : bandwidth(path.bandwidth), h(limited ? "strong" : "span", {}, bandwidth(path.carries)),
      path.used ? (limited ? h("span", { class: "state reduced" }, "limit") : "") : h("span", { class: "dim" }, "not used"),
    ];
  });
  return table(`What ${far.name} announces`, ["Destination", ">Announced", ">Carries", ""], rows);
}

/** Routes of BGP by what their next hops carry together, those that neighbors limit first. */
export function routesOf(vectors) {
  const found = vectors.filter((vector) => vector.protocol === "bgp" && vector.members.every((member) => member.capacity !== null && member.bandwidth !== null)).map((vector) => {
    const [carries, links] = ["capacity", "bandwidth"].map((of) => d3.sum(vector.members, (member) => member[of]));
    return { ...vector, carries, links, limited: carries < links * ALIKE };
  });
  return found.sort((x, y) => x.carries / x.links - y.carries / y.links || byNumbers(x.examples[0], y.examples[0]));
}

/** A cell with the prefixes of a vector; each of those that are named shows its paths. */
export function prefixesCell(panel, { examples, prefixes }) {
  const more = prefixes - examples.length;
  return h("div", { class: "prefixes" }, examples.map((prefix) => h("div", {}, panel.destination(prefix))), more > 0 ? h("span", { class: "reason" }, `and ${count(more, "more", "more")}`) : "");
}
