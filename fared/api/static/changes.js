// The last changes: how long each took, stage by stage, and the routes that one changed.

import { count, duration, h, table } from "./format.js";
import { fetchDocument } from "./model.js";

const STAGES = [
  ["detected", "detected"], ["originated", "originated"], ["flooded", "flooded"], ["waited", "waited"],
  ["spf", "SPF"], ["weighed", "weights"], ["planned", "planned"], ["programmed", "kernel"],
];
const MOST = 60;

export function showChanges(panel) {
  const place = h("div", {});
  const { turn } = panel;
  async function read() {
    const { changes } = await fetchDocument("convergence");
    if (turn === panel.turn) place.replaceChildren(...content(panel, changes));
  }
  read().catch((error) => place.replaceChildren(h("p", { class: "notice" }, error.message)));
  panel.renew = () => read().catch(() => {});
  return [place];
}

function content(panel, changes) {
  if (!changes.length) return [h("p", { class: "dim" }, "Nothing has changed yet.")];
  const key = h("p", { class: "stages" }, STAGES.map(([name, text]) => h("span", { class: "key" }, h("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text)));
  const shown = changes.slice(-MOST).reverse();
  return [
    h("h3", {}, "Last changes, first sign to kernel"), key,
    h("ol", { class: "timeline" }, shown.map((change) => h("li", {}, entry(panel, change)))),
    h("details", {}, h("summary", {}, "As a table"), table("Durations", ["Time", ">Total", ...STAGES.map(([, text]) => `>${text}`)],
      shown.map((change) => [new Date(change.at * 1000).toLocaleTimeString(), duration(change.total), ...STAGES.map(([name]) => duration(change[name]))]))),
  ];
}

function entry(panel, change) {
  const routes = h("div", { class: "routes" });
  const whole = STAGES.reduce((sum, [name]) => sum + change[name], 0) || 1;
  const strip = h("span", { class: "strip", "aria-hidden": "true" }, STAGES.map(([name]) => {
    const part = h("span", { class: name });
    part.style.flexGrow = (change[name] / whole) * 100;
    return part;
  }));
  const open = async (event) => {
    const button = event.currentTarget;
    const shown = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) routes.replaceChildren();
    else routes.replaceChildren(panel.later(fetchDocument("changed", { at: change.at }), changedRoutes));
  };
  return [
    h("button", { type: "button", class: "change", "aria-expanded": "false", click: open },
      h("span", { class: "when" }, new Date(change.at * 1000).toLocaleTimeString()),
      h("span", { class: "why" }, change.causes.join("; ") || "no cause"),
      h("span", { class: "total" }, duration(change.total)),
      h("span", { class: "dim" }, count(change.routes, "route")),
      strip),
    routes,
  ];
}

function changedRoutes(found) {
  const later = found.later ? `, ${found.later} of them again since` : "";
  return table(`${count(found.changed, "route")} changed${later}`, ["Route", ""],
    found.routes.map((route) => [route.prefix, route.present ? "" : "gone"]), { head: false, empty: "All of them changed again since." });
}
