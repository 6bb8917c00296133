// The last changes: how long each took, stage by stage, and the routes that one changed.

import { byNumbers, clock, count, duration, h, table } from "./format.js";
import { fetchDocument } from "./model.js";

const STAGES = [
  ["detected", "detected"], ["originated", "originated"], ["flooded", "flooded"], ["waited", "waited"],
  ["spf", "SPF"], ["weighed", "weights"], ["planned", "planned"], ["programmed", "kernel"],
];
const MOST = 60;

export function showChanges(panel) {
  const place = h("div", {});
  const { turn } = panel;
  let known = [];
  async function read() {
    const { changes } = await fetchDocument("convergence");
    if (turn !== panel.turn) return;
    const shown = changes.slice(-MOST).reverse();
    known = shown.map((change) => item(panel, change, known.find((before) => same(before.change, change))));
    const focused = document.activeElement;
    const wide = place.querySelector("details")?.open ?? false;
    place.replaceChildren(...content(shown, known.map(({ element }) => element), wide));
    if (place.contains(focused)) focused.focus({ preventScroll: true });
  }
  read().catch((error) => place.replaceChildren(h("p", { class: "notice" }, error.message)));
  panel.renew = () => read().catch(() => {});
  return [place];
}

/** Whether two answers tell of one change: the wall clock is slewed, so that times differ a little. */
function same(before, change) {
  return Math.abs(before.at - change.at) < 0.01 && before.causes.join() === change.causes.join();
}

/** What changed, in words; the names of LSAs or LSPs where that was nothing but routes. */
export function why(change) {
  return (change.changes.length ? change.changes : change.causes).join("; ") || "no cause";
}

/** The list item of a change. One that is as it was stays, and an opened one stays open. */
function item(panel, change, before) {
  if (before?.change.total === change.total && why(before.change) === why(change)) return before;
  const element = h("li", {}, entry(panel, change));
  if (before?.element.querySelector("[aria-expanded=true]")) element.querySelector(".change").click();
  return { change, element };
}

function content(shown, items, wide) {
  if (!shown.length) return [h("p", { class: "dim" }, "Nothing has changed yet.")];
  const key = h("p", { class: "stages" }, STAGES.map(([name, text]) => h("span", { class: "key" }, h("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text)));
  return [
    h("h3", {}, "Last changes, first sign to kernel"), key,
    h("ol", { class: "timeline" }, items),
    h("details", { open: wide }, h("summary", {}, "As a table"), table("Durations", ["Time", ">Total", ...STAGES.map(([, text]) => `>${text}`)],
      shown.map((change) => [clock(change.at), duration(change.total), ...STAGES.map(([name]) => duration(change[name]))]))),
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
      h("span", { class: "when" }, clock(change.at)),
      h("span", { class: "why", title: change.causes.join("; ") }, why(change)),
      h("span", { class: "total" }, duration(change.total)),
      h("span", { class: "dim" }, count(change.routes, "route")),
      strip),
    routes,
  ];
}

function changedRoutes(found) {
  const later = found.later ? `, ${found.later} of them again since` : "";
  return table(`${count(found.changed, "route")} changed${later}`, ["Route", ""],
    found.routes.sort((x, y) => byNumbers(x.prefix, y.prefix)).map((route) => [route.prefix, route.present ? "" : "gone"]), { head: false, empty: "All of them changed again since." });
}
