// The page: reads the fabric, draws it, and shows what is selected. Loaded once, then kept up to
// date by events.

import { isPrefix } from "./announced.js";
import { Drawing } from "./drawing.js";
import { count, h, share } from "./format.js";
import { fetchDocument, follow, Model, STATES, STATE_WORDS } from "./model.js";
import { Panel } from "./panel.js";

const STATUS_EVERY = 30000;

const $ = (id) => document.getElementById(id);

const model = new Model();
const panel = new Panel(model, $("tabs"), $("shown"), (selected) => choose(selected));
const drawing = new Drawing(model, $("stage"), (found, more) => pick(found, more));

/** Something in the drawing was clicked. A second router of the lowest tier makes a pair, and shift any second one. */
function pick(found, more) {
  if (!found) choose({});
  else if (found.link) choose({ link: found.link });
  else choose({ nodes: pairWith(found.node, more) });
}

function pairWith(id, more) {
  const { nodes } = panel.selected;
  const gone = [...nodes, id].some((one) => model.nodes.get(one)?.gone);
  if (nodes.length !== 1 || nodes[0] === id || gone) return [id];
  const lowest = [...nodes, id].every((one) => model.isLowest(one));
  return lowest || more ? [nodes[0], id] : [id];
}

function choose({ nodes = [], link = null, tree = null, prefix = null }) {
  drawing.select({ nodes, link, tree });
  panel.show({ nodes, link, tree, prefix }, (shares) => drawing.select({ nodes, link, shares }), (beyond) => drawing.select({ beyond }));
}

/** Choose the router of a name, or what neighbors announce for a prefix or an address. */
function seek(text) {
  const found = model.find(text);
  if (found) choose({ nodes: [found] });
  else if (panel.bgp && isPrefix(text)) choose({ prefix: text.trim() });
}

async function readStatus() {
  const status = await fetchDocument("status");
  document.title = `${status.hostname} · fared`;
  $("title").textContent = status.hostname;
  $("version").textContent = `fared ${status.version}`;
  const { bgp } = panel;
  panel.status = status;
  if (panel.bgp !== bgp) withBgp();
  facts();
}

/** Destinations of BGP are behind the neighbors: they take room in the drawing, and a tab. */
function withBgp() {
  $("name").placeholder = panel.bgp ? "Router or prefix" : "Find a router";
  drawing.leaveRoom(panel.bgp);
  panel.drawTabs();
}

function facts() {
  const { status } = panel;
  const missing = model.missing();
  const slow = model.odd.size - missing.links.length;
  const tags = [];
  if (status) {
    tags.push(h("li", { class: status.ready ? "tag good" : "tag bad" }, status.ready ? "ready" : status.stage));
    if (status.drained) tags.push(h("li", { class: "tag bad" }, "drained"));
  }
  const found = [
    ...tags,
    h("li", {}, count(model.nodes.size - missing.routers.length, "router")),
    missing.routers.length ? h("li", { class: "tag bad" }, `${missing.routers.length} missing`) : null,
    h("li", {}, count(model.links.size - missing.links.length, "link")),
    missing.links.length ? h("li", { class: "tag bad" }, `${missing.links.length} missing`) : null,
    slow ? h("li", { class: "tag warn" }, `${slow} unusual`) : null,
    model.odd.size || !model.nodes.size ? null : h("li", { class: "tag good" }, "no link is down, drained, or slower than its siblings"),
  ];
  $("facts").replaceChildren(...found.filter(Boolean));
}

let steps = "";

/** Load is announced after it changed by so much: a link may have more or less than its color says. */
panel.learned = (weights) => {
  const threshold = Math.max(0, ...(weights?.announcements ?? []).map((area) => area.threshold));
  steps = threshold ? `, announced in steps of ${share(threshold)}` : "";
  legend();
};

function legend() {
  const states = new Set(model.unusual().map((link) => link.state));
  const items = [
    h("span", { class: "key" }, h("span", { class: "ramp", "aria-hidden": "true" }), `load 0 to 100%${steps}`),
    h("span", { class: "key" }, h("span", { class: "widths", "aria-hidden": "true" }), "width: capacity"),
    ...STATES.filter((state) => states.has(state)).map((state) =>
      h("span", { class: "key" }, h("span", { class: `sample ${state}`, "aria-hidden": "true" }), STATE_WORDS[state])),
    h("span", { class: "key" }, h("span", { class: "here", "aria-hidden": "true" }), "this router"),
  ];
  $("legend").replaceChildren(...items);
}

function names() {
  const options = [...model.nodes.values()].slice(0, 2000).map((node) => h("option", { value: node.name }));
  $("names").replaceChildren(...options);
}

function told(what, message = "") {
  const texts = { live: "live", away: "no answer, trying again", error: message };
  if (what in texts) {
    $("live").textContent = texts[what];
    $("live").className = `live ${what}`;
  }
  if (what === "weakest" && panel.tab === "overview") panel.renew();
  if (what === "change" || what === "live" || what === "missing") readStatus().catch(() => {}).then(() => panel.changed());
}

let waiting = false;
model.listeners.add(({ whole, links }) => {
  if (whole) names();
  panel.linksChanged(links);
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    facts();
    legend();
  });
});

$("closer").addEventListener("click", () => drawing.by(1.6));
$("farther").addEventListener("click", () => drawing.by(1 / 1.6));
$("whole").addEventListener("click", () => drawing.fit());
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  seek($("name").value);
});
$("name").addEventListener("change", () => seek($("name").value));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose({});
});

follow(model, told);
// ages and reasons grow old without a change of routes
setInterval(() => document.hidden || panel.tab !== "overview" || told("change"), STATUS_EVERY);
// For tests: what is drawn, and when.
window.fared = { model, drawing, panel, choose };
