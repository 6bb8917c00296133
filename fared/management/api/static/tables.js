// All routers and all links as tables: the drawing for those who do not see it. A click at the head of a column sorts.

import { bandwidth, byNumbers, count, h, share, table } from "./format.js";
import { STATE_WORDS } from "./model.js";

const MOST = 300;

/** `columns`: title, cell and key of each; keys are numbers or text, null is last. */
function filtered(panel, label, all, words, columns) {
  const place = h("div", {});
  const input = h("input", { id: "filter", type: "search", input: () => fill(), keydown: first, autocomplete: "off", spellcheck: "false" });
  /** Enter in the filter chooses the first row. */
  function first(event) {
    if (event.key === "Enter") place.querySelector("tbody .go")?.click();
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
    place.replaceChildren(table(`${count(found.length, label)}${missing ? `, ${missing} missing` : ""}${rest}`, columns.map(([title]) => title), cells, { sort }));
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
  return filtered(panel, "router", () => model.inOrder, words, [
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
  return filtered(panel, "link", all, words, [
    ["Link", (link) => h("div", {}, panel.link(link), link.state ? h("span", { class: "reason" }, link.reason) : ""), (link) => model.title(link)],
    ["State", (link) => panel.state(link), (link) => STATE_WORDS[link.state] ?? null],
    [">Capacity", (link) => (link.present ? bandwidth(link.capacity) : ""), (link) => link.capacity],
    [">Load", (link) => (link.load === null ? "" : share(link.load)), (link) => link.load],
  ]);
}
