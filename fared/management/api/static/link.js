// One link: capacity and load of both directions, why it is unusual, and what if it failed.
/* global d3 */

import { announcedOver } from "./announced.js";
import { loadChart } from "./chart.js";
import { bandwidth, bar, byNumbers, count, duration, h, share, table } from "./format.js";
import { fetchDocument, loadOf } from "./model.js";

const MOST = 12;
const ALIKE = 0.999;

export function showLink(panel, link) {
  const { model } = panel;
  const facts = h("div", {});
  const chart = h("div", { class: "chart" });
  const question = h("div", { class: "question", "aria-live": "polite" });
  const fill = () => facts.replaceChildren(...factsOf(panel, link));
  fill();
  history(panel, link, chart);
  panel.follows = (one) => one.key === link.key;
  panel.renew = () => {
    link = model.links.get(link.key) ?? link;
    fill();
    history(panel, link, chart);
  };
  const ask = (left, text) => h("button", { type: "button", class: "ask", click: () => whatIf(panel, link, left, question) }, text);
  return [
    h("h2", {}, model.title(link)),
    h("p", { class: "row" }, panel.router(link.a), panel.router(link.b)),
    facts,
    panel.bgp && link.present && [link.a, link.b].includes(model.here) ? panel.later(announcedOver(panel, link).catch(() => []), (found) => found) : "",
    ...(link.present ? [chart, h("h3", {}, "What if"), h("p", { class: "row" }, ask(0, "it failed"), ask(0.25, "it ran at a quarter")), question] : []),
  ];
}

function factsOf(panel, link) {
  const { model } = panel;
  const delayed = link.rows.some((row) => row.delay !== null);
  const rows = [[link.a, link.b, link.ab], [link.b, link.a, link.ba]].map(([from, to, row]) => {
    const load = loadOf(row);
    return [
      model.direction(from, to),
      row ? bandwidth(row.capacity) : "not listed",
      load === null ? "" : h("span", {}, bar(load), ` ${share(load)}`),
      row ? String(row.metric) : "",
      ...(delayed ? [row ? duration(row.delay) : ""] : []),
    ];
  });
  const lead = h("p", { class: "lead" }, panel.state(link), link.state ? ` ${link.reason}` : "");
  if (!link.present) return [lead];
  const several = Math.max(...link.rows.map((row) => row.count), 1);
  return [
    lead,
    several > 1 ? h("p", { class: "dim" }, `${several} parallel links`) : "",
    table("Directions", ["Direction", ">Capacity", "Load", ">Metric", ...(delayed ? [">Delay"] : [])], rows),
  ];
}

/** The load of the last minutes: measured for own links, else as announced since the page is open. */
async function history(panel, link, place) {
  const { model } = panel;
  const { turn } = panel;
  const now = Date.now() / 1000;
  const series = [];
  if (link.a === model.here || link.b === model.here) {
    try {
      series.push(await measured(link, model, now));
    } catch {
      // it measures no load: what is announced is shown
    }
  }
  if (turn !== panel.turn) return;
  if (!series.length && link.history.length) {
    const at = link.history.map((entry) => entry.at);
    series.push({ title: "Announced load", at, lines: [
      { label: model.direction(link.a, link.b), values: link.history.map((entry) => entry.ab) },
      { label: model.direction(link.b, link.a), values: link.history.map((entry) => entry.ba) },
    ] });
  }
  const empty = h("p", { class: "dim" }, "Its announced load has not changed since you opened this page.");
  place.replaceChildren(...(series.length ? loadChart(series[0]) : [h("h3", {}, "Load"), empty]));
}

async function measured(link, model, now) {
  const far = model.nodes.get(link.a === model.here ? link.b : link.a);
  const { neighbors } = await fetchDocument("neighbors");
  const names = neighbors.filter((one) => far.ids.includes(one.router_id)).map((one) => one.interface);
  const { interfaces } = await fetchDocument("load", { interface: names[0] });
  const [own] = interfaces;
  const most = own.bandwidth ?? Math.max(...own.loads, 1);
  return {
    title: `Measured load of ${own.interface}`,
    at: own.ages.map((age) => now - age),
    lines: [{ label: `to ${far.name}`, values: own.loads.map((load) => load / most) }],
  };
}

async function whatIf(panel, link, left, place) {
  const { turn } = panel;
  place.replaceChildren(h("p", { class: "dim" }, "The solver computes…"));
  try {
    const found = await fetchDocument("what-if", { from: link.a, to: link.b, share: left });
    panel.answer = found;
    if (turn === panel.turn) place.replaceChildren(...answerOf(found, link, left, panel.model));
  } catch (error) {
    if (turn === panel.turn) place.replaceChildren(h("p", { class: "notice" }, error.message));
  }
}

/** The conclusion first, then the routes: those that change alike are one row, and routers that do one table. */
function answerOf(found, link, left, model) {
  // the network of the link itself goes with it, and nobody misses that
  const own = new Set(found.roots.flatMap((root) => root.routes.filter((route) => !route.after && route.before?.connected).map((route) => route.prefix)));
  const roots = found.roots.map((root) => {
    const routes = root.routes.filter((route) => !own.has(route.prefix));
    return { ...root, name: root.hostname ?? root.root, routes, changed: root.changed - root.routes.length + routes.length };
  });
  const changed = roots.filter((root) => root.routes.length);
  const tables = d3.groups(changed.map((root) => ({ root, groups: alike(root.routes) })), ({ root, groups }) => `${root.changed} ${JSON.stringify(groups.map(({ routes, words }) => [routes.length, words]))}`);
  const parts = tables.map(([, [{ root, groups }, ...others]]) => {
    const rows = groups.slice(0, MOST).map(({ routes, words }) => [
      h("span", { title: others.length ? null : routes.map((route) => route.prefix).join(", ") }, routes.length > 1 || others.length ? count(routes.length, "route") : routes[0].prefix), words,
    ]);
    const names = [root, ...others.map((one) => one.root)].map(({ name }) => name).sort(byNumbers).join(", ");
    const of = root.changed + root.unchanged;
    const caption = `${names}: ${count(root.changed, "route")} of ${of} would change`;
    const more = groups.length > MOST ? `and ${groups.length - MOST} other kinds of change` : null;
    const shown = root.changed > root.routes.length ? `of the first ${root.routes.length}` : null;
    const rest = [more, shown].filter(Boolean).join("; ");
    return h("div", { class: "section" }, table(caption, ["Routes", "Next hops"], rows), rest ? h("p", { class: "dim" }, rest) : "");
  });
  const same = roots.filter((root) => !root.routes.length).map(({ name }) => name).sort(byNumbers);
  const notes = [
    same.length ? `As before: ${same.join(", ")}.` : null,
    own.size ? `The network of the link itself, ${[...own].join(", ")}, would go with it.` : null,
  ].filter(Boolean);
  const rest = found.omitted.length ? `; no time for ${count(found.omitted.length, "router")}` : "";
  return [
    h("p", { class: "lead" }, h("strong", {}, conclusion(changed, link, left, model))),
    ...parts, ...notes.map((text) => h("p", { class: "dim" }, text)),
    h("p", { class: "dim" }, `${found.changes.map((change) => `--${change}`).join(" ")} · ${found.seconds} s${rest}`),
  ];
}

/** What the change means: routes that are lost, and the capacity that is left at worst. */
function conclusion(changed, link, left, model) {
  const asked = `If ${model.title(link)} ${left ? `ran at ${share(left)}` : "failed"}`;
  if (!changed.length) return `${asked}, no route would change.`;
  const lost = changed.map((root) => ({ root, routes: root.routes.filter((route) => route.after === null) })).filter(({ routes }) => routes.length);
  if (lost.length) {
    const [{ root, routes: [first, ...others] }, ...more] = lost;
    const rest = more.length ? `, nor ${more.map((one) => one.root.name).join(", ")} to all of theirs` : "";
    return `${asked}, ${root.name} would have no route to ${first.prefix}${others.length ? ` and ${count(others.length, "other")}` : ""}${rest}.`;
  }
  const worst = d3.least(changed.flatMap((root) => root.routes.map((route) => ({ root, ...together(route) }))), ({ before, after }) => after / before);
  const kept = worst.after < worst.before * ALIKE ? `; at worst ${worst.root.name} would keep ${bandwidth(worst.after)} of ${bandwidth(worst.before)} toward a destination` : "";
  return `${asked}, no route would be lost${kept}.`;
}

/** The capacity of all next hops of a route, before and after; a part of it unknown: 1 of 1. */
function together(route) {
  const sum = (side) => d3.sum(route.nexthops, (hop) => hop[side]?.capacity ?? (hop[side] ? NaN : 0));
  const [before, after] = [sum("before"), sum("after")];
  const known = route.nexthops.every((hop) => ["before", "after"].every((side) => !hop[side] || hop[side].capacity !== null));
  return known && before ? { before, after } : { before: 1, after: 1 };
}

/** Routes with the same next hops and shares on both sides, in words; most first. */
function alike(routes) {
  const groups = new Map();
  for (const route of routes) {
    const words = wordsOf(route);
    const group = groups.get(words) ?? { routes: [], words };
    group.routes.push(route);
    groups.set(words, group);
  }
  for (const { routes: each } of groups.values()) each.sort((x, y) => byNumbers(x.prefix, y.prefix));
  return [...groups.values()].sort((x, y) => y.routes.length - x.routes.length || byNumbers(x.routes[0].prefix, y.routes[0].prefix));
}

/** "S1 25% to none, others 25% to 33%": next hops of the same shares together, the fewest first. */
function wordsOf(route) {
  if (!route.after) return "no route any more";
  const shares = (hop) => [hop.before, hop.after].map((side) => (side ? share(side.share) : "none"));
  const kinds = d3.groups(route.nexthops, (hop) => shares(hop).join(" ")).sort(([, x], [, y]) => x.length - y.length);
  const parts = kinds.map(([, hops], at) => {
    const names = hops.map((hop) => hop.hostname ?? hop.neighbor).sort(byNumbers);
    const others = at > 0 && at === kinds.length - 1 && names.length > 1;
    const [before, after] = shares(hops[0]);
    const who = others ? "others" : names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ");
    if (!hops[0].before) return `${names.join(", ")} new at ${after}`;
    return before === after ? `${who} ${after}` : `${who} ${before} to ${after}`;
  });
  return parts.join(", ");
}
