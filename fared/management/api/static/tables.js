// All routers and all links as tables: the drawing for those who do not see it.

import { bandwidth, count, h, share, table } from "./format.js";

const MOST = 300;

function filtered(panel, label, all, cells, words, columns) {
  const place = h("div", {});
  const input = h("input", { id: "filter", type: "search", input: () => fill(), autocomplete: "off", spellcheck: "false" });
  function fill() {
    const wanted = input.value.trim().toLowerCase();
    const found = all().filter((one) => !wanted || words(one).toLowerCase().includes(wanted));
    const rest = found.length > MOST ? `, the first ${MOST}` : "";
    place.replaceChildren(table(`${count(found.length, label)}${rest}`, columns, found.slice(0, MOST).map(cells)));
  }
  fill();
  panel.renew = fill;
  return [h("p", { class: "row" }, h("label", { for: "filter" }, "Filter"), input), place];
}

export function routersTable(panel) {
  const { model } = panel;
  const all = () => model.inOrder;
  const cells = (node) => [
    panel.router(node.id), node.role ?? (node.network ? "network" : ""), node.pod ? String(node.pod) : "", node.plane ? String(node.plane) : "",
    String(model.of.get(node.id)?.filter((link) => link.rows.length).length ?? 0), node.transit ? (node.last_resort ? "last resort" : "") : "no transit",
  ];
  const words = (node) => `${node.name} ${node.ids.join(" ")} ${node.role ?? ""}`;
  return filtered(panel, "router", all, cells, words, ["Router", "Role", ">Pod", ">Plane", ">Links", ""]);
}

export function linksTable(panel) {
  const { model } = panel;
  const all = () => {
    const worst = model.unusual();
    return [...worst, ...model.sorted([...model.links.values()].filter((link) => link.state === null))];
  };
  const cells = (link) => [panel.link(link), panel.state(link), bandwidth(link.capacity), link.load === null ? "" : share(link.load), link.state ? link.reason : ""];
  const words = (link) => `${model.name(link.a)} ${model.name(link.b)} ${link.state ?? ""}`;
  panel.follows = (link) => link.state !== null;
  return filtered(panel, "link", all, cells, words, ["Link", "State", ">Capacity", ">Load", "Reason"]);
}
