// The panel beside the drawing: tabs for what is selected, the last changes, all routers and links.

import { showAnnounced } from "./announced.js";
import { h } from "./format.js";
import { showJobs } from "./jobs.js";
import { showLink } from "./link.js";
import { STATE_WORDS } from "./model.js";
import { showOverview } from "./overview.js";
import { showPair } from "./pair.js";
import { showRouter } from "./router.js";
import { linksTable, routersTable, routesTable } from "./tables.js";
import { showChanges } from "./changes.js";

const TABS = [["overview", "Overview"], ["selected", "Selected"], ["changes", "Changes"], ["routers", "Routers"], ["links", "Links"], ["routes", "Routes"], ["jobs", "Jobs"]];

export class Panel {
  constructor(model, tabs, place, choose) {
    this.model = model;
    this.tabs = tabs;
    this.place = place;
    this.choose = choose;
    this.selected = { nodes: [], link: null, tree: null, prefix: null };
    this.tab = "overview";
    this.status = null;
    this.answer = null;
    this.learned = () => {};
    this.turn = 0;
    this.follows = () => false;
    this.renew = () => {};
    this.reread = () => {};
    this.shares = () => {};
    this.beyond = () => {};
    tabs.addEventListener("keydown", (event) => this.key(event));
    model.listeners.add(({ whole }) => whole && this.render());
    this.drawTabs();
  }

  drawTabs() {
    const there = { jobs: this.model.jobs.length, selected: this.chosen, routes: this.bgp };
    const shown = TABS.filter(([id]) => there[id] ?? true);
    this.tabs.replaceChildren(...shown.map(([id, text]) => h("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "shown", "aria-selected": String(id === this.tab),
      tabindex: id === this.tab ? 0 : -1, click: () => this.open(id),
    }, text)));
    this.place.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const buttons = [...this.tabs.children];
    const at = buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
    const next = buttons[(at + step + buttons.length) % buttons.length];
    this.open(next.id.replace("tab-", ""));
    document.getElementById(next.id).focus();
  }

  get chosen() {
    return this.selected.nodes.length > 0 || this.selected.link !== null || this.selected.prefix !== null;
  }

  /** Whether this router runs BGP. */
  get bgp() {
    return Boolean(this.status?.bgp);
  }

  /** Whether it runs nothing else. */
  get onlyBgp() {
    return this.bgp && !this.status.ospf && !this.status.isis;
  }

  open(tab) {
    if (tab === "overview") {
      this.choose({});
      return;
    }
    this.tab = tab;
    this.render();
  }

  /** Show what was selected; `shares` draws the shares of links, `beyond` what neighbors announce. */
  show(selected, shares, beyond) {
    this.selected = { nodes: [], link: null, tree: null, prefix: null, ...selected };
    this.shares = shares;
    this.beyond = beyond;
    this.tab = selected.tree ? "jobs" : this.chosen ? "selected" : "overview";
    this.render();
  }

  /** Build the present tab anew. Each view says which links it follows, and how it renews itself. */
  render() {
    this.turn += 1;
    this.follows = () => false;
    this.renew = () => {};
    this.reread = () => this.renew();
    this.drawTabs();
    const views = {
      overview: () => showOverview(this),
      selected: () => this.view(),
      changes: () => showChanges(this),
      routers: () => routersTable(this),
      links: () => linksTable(this),
      routes: () => routesTable(this),
      jobs: () => showJobs(this),
    };
    this.place.replaceChildren(...views[this.tab]());
  }

  view() {
    const { nodes, link, prefix } = this.selected;
    if (prefix) return showAnnounced(this, prefix);
    if (link) return showLink(this, link);
    if (nodes.length === 2) return showPair(this, nodes);
    return showRouter(this, nodes[0]);
  }

  /** An element that is filled when a promise is; errors are shown in it. */
  later(promise, fill) {
    const { turn } = this;
    const place = h("div", { class: "later", "aria-busy": "true" }, h("p", { class: "dim" }, "…"));
    promise.then(
      (found) => turn === this.turn && place.replaceChildren(...[fill(found)].flat()),
      (error) => turn === this.turn && place.replaceChildren(h("p", { class: "notice" }, error.message)),
    ).finally(() => place.removeAttribute("aria-busy"));
    return place;
  }

  linksChanged(links) {
    if (links.some((link) => this.follows(link))) this.renew();
  }

  /** Routes changed, or what is missing: documents are to be read again. */
  changed() {
    this.reread();
  }

  router(id, text = null) {
    return h("button", { type: "button", class: "go", click: () => this.choose({ nodes: [id] }) }, text ?? this.model.name(id));
  }

  destination(prefix) {
    return h("button", { type: "button", class: "go", click: () => this.choose({ prefix }) }, prefix);
  }

  link(link) {
    return h("button", { type: "button", class: "go", click: () => this.choose({ link }) }, this.model.title(link));
  }

  state(link) {
    return h("span", { class: `state ${link.state ?? "usual"}` }, STATE_WORDS[link.state] ?? "up");
  }
}
