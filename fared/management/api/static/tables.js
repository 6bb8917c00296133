// All routers and all links as tables: the drawing for those who do not see it. A click at the head of a column sorts.

import { isPrefix, prefixesCell, routesOf } from "./announced.js";
import { bandwidth, byNumbers, count, h, share, table } from "./format.js";
import { fetchDocument, STATE_WORDS } from "./model.js";

const MOST = 300;

/** `label`: the noun for rows, and its plural. `columns`: title, cell and key of each; keys are numbers or text, null is last. `unknown` takes what no row has. */
function filtered(panel, label, all, words, columns, unknown = () => {}) {
  const place = h("div", {});
  const input = h("input", { id: "filter", type: "search", input: () => fill(), keydown: first, autocomplete: "off", spellcheck: "false" });
  /** Enter in the filter chooses the first row. */
  function first(event) {
    if (event.key !== "Enter") return;
    const found = place.querySelector("tbody .go");
    if (found) found.click();
    else unknown(input.value);
  }
  const sort = { by: null, down: false, choose };
  function choose(at) {
    [sort.down, sort.by] = [sort.by === at && !sort.down, at];
    fill();
    place.querySelector("[aria-sort] button")?.focus({ preventScroll: true });
  }
  function fill() {
    const wanted = input.value.trim().toLowerCase();
    const found = all().filter((one) => !wanted || words(one).toLowerCase().includes(wanted));
    const rows = sort.by === null ? found : sorted(found, columns[sort.by][2], sort.down);
    const rest = found.length > MOST ? `, the first ${MOST}` : "";
    const missing = found.filter((one) => one.present === false).length;
    const cells = rows.slice(0, MOST).map((one) => columns.map(([, cell]) => cell(one)));
    place.replaceChildren(table(`${count(found.length, ...label)}${missing ? `, ${missing} missing` : ""}${rest}`, columns.map(([title]) => title), cells, { sort }));
  }
  fill();
  panel.renew = fill;
  return [h("p", { class: "row" }, h("label", { for: "filter" }, "Filter"), input), place];
}

function sorted(all, key, down) {
  const compare = (x, y) => (typeof x === "number" ? x - y : byNumbers(x, y)) * (down ? -1 : 1);
  const keys = new Map(all.map((one) => [one, key(one)]));
  return [...all].sort((one, other) => {
    const [x, y] = [keys.get(one), keys.get(other)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return compare(x, y);
  });
}

export function routersTable(panel) {
  const { model } = panel;
  const links = (node) => model.of.get(node.id)?.filter((link) => link.present).length ?? 0;
  const missing = new Set(model.missing().routers);
  const note = (node) => remark(node, missing);
  const role = (node) => node.role ?? (node.network ? "network" : "");
  const words = (node) => `${node.name} ${node.ids.join(" ")} ${node.role ?? ""}`;
  return filtered(panel, ["router"], () => model.inOrder, words, [
    ["Router", (node) => panel.router(node.id), (node) => node.name],
    ["Id", (node) => node.id, (node) => node.id],
    ["Role", role, role],
    [">Pod", (node) => (node.pod ? String(node.pod) : ""), (node) => node.pod],
    [">Plane", (node) => (node.plane ? String(node.plane) : ""), (node) => node.plane],
    [">Links", (node) => String(links(node)), links],
    ["", note, note],
  ]);
}

function remark(node, missing) {
  if (missing.has(node)) return "missing";
  return node.transit ? (node.last_resort ? "last resort" : "") : "no transit";
}

export function linksTable(panel) {
  const { model } = panel;
  const all = () => {
    const worst = model.unusual();
    return [...worst, ...model.sorted([...model.links.values()].filter((link) => link.state === null))];
  };
  const words = (link) => `${model.name(link.a)} ${model.name(link.b)} ${STATE_WORDS[link.state] ?? ""}`;
  panel.follows = (link) => link.state !== null;
  return filtered(panel, ["link"], all, words, [
    ["Link", (link) => h("div", {}, panel.link(link), link.state ? h("span", { class: "reason" }, link.reason) : ""), (link) => model.title(link)],
    ["State", (link) => panel.state(link), (link) => STATE_WORDS[link.state] ?? null],
    [">Capacity", (link) => (link.present ? bandwidth(link.capacity) : ""), (link) => link.capacity],
    [">Load", (link) => (link.load === null ? "" : share(link.load)), (link) => link.load],
  ]);
}

/** Routes of BGP, those with the same next hops and weights together. */
export function routesTable(panel) {
  let found = [];
  const more = (text) => isPrefix(text) && panel.choose({ prefix: text.trim() });
  const shown = filtered(panel, ["group of routes", "groups of routes"], () => found, (row) => row.examples.join(" "), [
    ["Destinations", (row) => prefixesCell(panel, row), (row) => row.examples[0]],
    [">Next hops", (row) => String(row.members.length), (row) => row.members.length],
    [">Links", (row) => bandwidth(row.links), (row) => row.links],
    [">Carry", (row) => (row.limited ? h("strong", {}, bandwidth(row.carries)) : bandwidth(row.carries)), (row) => row.carries],
  ], more);
  const fill = panel.renew;
  panel.reread = () => fetchDocument("weights").then(({ vectors }) => {
    found = routesOf(vectors);
    if (panel.renew === fill) fill();
  }, () => {});
  panel.reread();
  const help = "Routes whose next hops and weights are alike are one row. Type a prefix or an address to see its paths, and what each neighbor announces.";
  return [...shown, h("p", { class: "dim small" }, help)];
}
