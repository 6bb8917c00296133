// One link: capacity and load of both directions, why it is unusual, and what if it failed.

import { loadChart } from "./chart.js";
import { bandwidth, bar, count, h, share, table } from "./format.js";
import { fetchDocument, loadOf } from "./model.js";

const MOST = 30;

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
    chart,
    h("h3", {}, "What if"),
    h("p", { class: "row" }, ask(0, "it failed"), ask(0.25, "it ran at a quarter")),
    question,
  ];
}

function factsOf(panel, link) {
  const { model } = panel;
  const rows = [[link.a, link.b, link.ab], [link.b, link.a, link.ba]].map(([from, to, row]) => {
    const load = loadOf(row);
    return [
      `${model.name(from)} → ${model.name(to)}`,
      row ? bandwidth(row.capacity) : "not listed",
      load === null ? "" : h("span", {}, bar(load), ` ${share(load)}`),
      row ? String(row.metric) : "",
    ];
  });
  const several = Math.max(...link.rows.map((row) => row.count), 1);
  return [
    h("p", { class: "lead" }, panel.state(link), link.state ? ` ${link.reason}` : "", several > 1 ? ` · ${several} parallel links` : ""),
    table("Directions", ["Direction", ">Capacity", "Load", ">Metric"], rows),
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
      { label: `${model.name(link.a)} → ${model.name(link.b)}`, values: link.history.map((entry) => entry.ab) },
      { label: `${model.name(link.b)} → ${model.name(link.a)}`, values: link.history.map((entry) => entry.ba) },
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
    if (turn === panel.turn) place.replaceChildren(...answerOf(found));
  } catch (error) {
    if (turn === panel.turn) place.replaceChildren(h("p", { class: "notice" }, error.message));
  }
}

function answerOf(found) {
  const parts = found.roots.map((root) => {
    const name = root.hostname ?? root.root;
    if (!root.routes.length) return h("p", { class: "dim" }, `${name}: ${count(root.unchanged, "route")}, all as before`);
    const rows = root.routes.slice(0, MOST).flatMap((route) => route.nexthops.map((hop, index) => [
      index ? "" : route.prefix,
      hop.hostname ?? hop.neighbor,
      hop.before ? share(hop.before.share) : "none",
      h("strong", {}, hop.after ? share(hop.after.share) : "none"),
    ]));
    const caption = `${name}: ${count(root.changed, "route")} of ${root.changed + root.unchanged} would change`;
    const rest = root.changed > MOST ? h("p", { class: "dim" }, `and ${root.changed - MOST} more`) : null;
    return h("div", { class: "section" }, table(caption, ["Route", "Next hop", ">Before", ">After"], rows), rest);
  });
  const rest = found.omitted.length ? `; no time for ${count(found.omitted.length, "router")}` : "";
  return [...parts, h("p", { class: "dim" }, `${found.changes.map((change) => `--${change}`).join(" ")} · ${found.seconds} s${rest}`)];
}
