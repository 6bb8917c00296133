// Two routers: all shortest paths between them, with shares, capacity and what limits it.

import { bandwidth, bar, count, h, share, table } from "./format.js";
import { fetchDocument, linkKey } from "./model.js";
import { paced } from "./pace.js";

const TIGHT = 1.001;
/** Less than this part of what is usual is reduced, as the router judges. */
const REDUCED = 0.9;
const MOST = 4;

export function showPair(panel, [from, to]) {
  const { model } = panel;
  const place = h("div", { class: "paths" });
  let links = new Set();
  const { turn } = panel;
  const alive = () => turn === panel.turn;
  // the router computes for long in a large fabric
  const read = paced(async () => {
    try {
      const found = await fetchDocument("path", { source: from, destination: to });
      if (!alive()) return;
      links = new Set(found.edges.map((edge) => linkKey(edge.from, edge.to)));
      place.replaceChildren(...content(panel, found, from, to));
      panel.shares(sharesOf(model, found.edges));
    } catch (error) {
      place.replaceChildren(h("p", { class: "notice" }, error.message));
    }
  }, alive);
  read();
  panel.follows = (link) => links.has(link.key) || links.size === 0;
  panel.renew = read;
  return [
    h("h2", {}, `${model.name(from)} to ${model.name(to)}`),
    h("p", { class: "row" }, panel.router(from), panel.router(to),
      h("button", { type: "button", class: "go", click: () => panel.choose({ nodes: [to, from] }) }, "The way back")),
    place,
  ];
}

function sharesOf(model, edges) {
  return edges.map((edge) => ({ link: model.links.get(linkKey(edge.from, edge.to)), share: edge.share })).filter(({ link }) => link);
}

function content(panel, found, from, to) {
  const { model } = panel;
  const edges = found.edges.map((edge) => ({
    ...edge, link: model.links.get(linkKey(edge.from, edge.to)), name: `${edge.from_hostname ?? edge.from} > ${edge.to_hostname ?? edge.to}`,
  }));
  const known = edges.filter((edge) => edge.capacity !== null && edge.share > 0);
  const tight = known.filter((edge) => edge.capacity / edge.share <= found.capacity * TIGHT);
  // where shares follow capacities, nearly all links are full at once: those that are unusual are why
  const limits = tight.length * 2 <= known.length && !edges.some((edge) => edge.link?.state) ? tight : [];
  const rows = edges.map((edge) => [
    edge.link ? h("button", { type: "button", class: "go", click: () => panel.choose({ link: edge.link }) }, edge.name) : edge.name,
    h("span", {}, bar(edge.share, edge.link?.state ?? ""), ` ${share(edge.share)}`),
    bandwidth(edge.capacity),
    edge.link?.state ? panel.state(edge.link) : limits.includes(edge) ? h("span", { class: "state reduced" }, "limit") : "",
  ]);
  return [
    h("p", { class: "lead" }, h("strong", {}, ...verdict(model, found, edges, limits, from, to)), h("span", { class: "dim" }, ` Metric ${found.metric}.`)),
    model.nodes.get(from)?.here ? panel.later(fetchDocument("explain", { prefix: found.prefix }), reasons) : null,
    table(`${count(rows.length, "link")} to ${found.prefix}`, ["Link", "Share", ">Capacity", ""], rows),
  ].filter(Boolean);
}

/** What the pair has, of what it would have, and why: "325M of 400M: S1 > L2 carries 25M of 100M". */
function verdict(model, found, edges, limits, from, to) {
  const whole = found.capacity === null ? null : model.whole(from, to);
  if (whole === null || found.capacity * TIGHT >= whole) return [`${bandwidth(found.capacity)} together.`];
  const usual = model.usualCapacities();
  const slow = edges.map((edge) => {
    const full = (usual.get(model.tiersOf(edge.from, edge.to)) ?? 0) * (edge.link?.from(edge.from)?.count ?? 1);
    return edge.capacity !== null && edge.capacity < full * REDUCED ? `${edge.name} carries ${bandwidth(edge.capacity)} of ${bandwidth(full)}` : null;
  }).filter(Boolean);
  const absent = [from, to].flatMap((id) => model.of.get(id)).filter((one) => !one.present).map((one) => `${model.title(one)} is missing`);
  const known = [...slow, ...absent];
  const reasons = known.length ? known : limits.map(({ name }) => `${name} is full first`);
  const said = reasons.slice(0, MOST).join("; ") + (reasons.length > MOST ? `; and ${reasons.length - MOST} more` : "");
  return [`${bandwidth(found.capacity)} of ${bandwidth(whole)}${said ? `: ${said}` : ""}.`];
}

/** The derivation of this router's own route. */
function reasons(found) {
  const rows = found.nexthops.map((hop) => [hop.hostname ?? hop.neighbor, share(hop.share), hop.reason]);
  return h("details", {}, h("summary", {}, "Why these shares"), h("p", {}, found.summary), table("Next hops", ["Next hop", ">Share", "Reason"], rows));
}
