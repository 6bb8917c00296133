// Two routers: all shortest paths between them, with shares, capacity and what limits it.

import { bandwidth, bar, count, h, share, table } from "./format.js";
import { fetchDocument, linkKey } from "./model.js";

const TIGHT = 1.001;
const PAUSES = 2;
const LEAST_PAUSE = 500;

export function showPair(panel, [from, to]) {
  const { model } = panel;
  const place = h("div", { class: "paths" });
  let links = new Set();
  let busy = false;
  let again = false;
  const { turn } = panel;
  async function read() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    const began = performance.now();
    try {
      const found = await fetchDocument("path", { source: from, destination: to });
      if (turn !== panel.turn) return;
      links = new Set(found.edges.map((edge) => linkKey(edge.from, edge.to)));
      place.replaceChildren(...content(panel, found, from, to));
      panel.shares(sharesOf(model, found.edges));
    } catch (error) {
      place.replaceChildren(h("p", { class: "notice" }, error.message));
    }
    // the router computes for longer in a large fabric, and has other work
    const pause = PAUSES * (performance.now() - began);
    if (pause > LEAST_PAUSE) await new Promise((done) => setTimeout(done, pause));
    busy = false;
    if (again && turn === panel.turn) {
      again = false;
      await read();
    }
  }
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
  const known = found.edges.filter((edge) => edge.capacity !== null && edge.share > 0);
  const tight = known.filter((edge) => edge.capacity / edge.share <= found.capacity * TIGHT)
    .sort((x, y) => x.share - y.share);
  const rows = found.edges.map((edge) => {
    const link = model.links.get(linkKey(edge.from, edge.to));
    const name = `${edge.from_hostname ?? edge.from} → ${edge.to_hostname ?? edge.to}`;
    return [
      link ? h("button", { type: "button", class: "go", click: () => panel.choose({ link }) }, name) : name,
      h("span", {}, bar(edge.share), ` ${share(edge.share)}`),
      bandwidth(edge.capacity),
      tight.includes(edge) ? h("span", { class: "state reduced" }, "limit") : "",
    ];
  });
  const limits = tight.slice(0, 3).map((edge) => `${edge.from_hostname ?? edge.from} → ${edge.to_hostname ?? edge.to}`);
  const more = tight.length > 3 ? ` and ${tight.length - 3} more` : "";
  return [
    h("p", { class: "lead" }, h("strong", {}, bandwidth(found.capacity)), ` together, at metric ${found.metric}`,
      limits.length ? `, limited by ${limits.join(", ")}${more}` : "", "."),
    model.nodes.get(from)?.here ? panel.later(fetchDocument("explain", { prefix: found.prefix }), reasons) : null,
    table(`${count(rows.length, "link")} to ${found.prefix}`, ["Link", "Share", ">Capacity", ""], rows),
  ].filter(Boolean);
}

/** The derivation of this router's own route. */
function reasons(found) {
  const rows = found.nexthops.map((hop) => [hop.hostname ?? hop.neighbor, share(hop.share), hop.reason]);
  return h("details", {}, h("summary", {}, "Why these shares"), h("p", {}, found.summary), table("Next hops", ["Next hop", ">Share", "Reason"], rows));
}
