// The drawing: links on one canvas, routers and what is selected on another above it.
// Of many links, changed ones are painted over; the whole is painted again in slices, unseen, when
// nothing else is to be done. So an event costs what it changed.
/* global d3 */

import { paintBeyond, paintDestination } from "./beyond.js";
import { bends, layout } from "./layout.js";
import { Pointer } from "./pointer.js";
import { paintName, paintRouter } from "./routers.js";
import { linkLook, readStyle } from "./style.js";

const MANY = 4000;
const SLICE = 10;
const FIRST_SLICE = 60;
const LABEL_GAP = 3;
const LABEL_SIZE = 11.5;

export class Drawing {
  constructor(model, stage, chosen) {
    this.model = model;
    this.stage = stage;
    [this.linkCanvas, this.nodeCanvas] = stage.querySelectorAll("canvas");
    this.transform = d3.zoomIdentity;
    this.drawnAt = d3.zoomIdentity;
    this.plan = { places: new Map(), groups: [], room: 60, curved: true };
    this.selected = { nodes: [], link: null, shares: null, tree: null, beyond: null };
    this.room = false;
    this.looks = new Map();
    this.rows = new Map();
    this.times = { first: null, update: null, whole: null };
    this.pass = 0;
    this.style = readStyle();
    this.zoom = d3.zoom().scaleExtent([0.6, 40]).on("zoom", (event) => this.zoomed(event.transform));
    d3.select(this.nodeCanvas).call(this.zoom).on("dblclick.zoom", null);
    this.pointer = new Pointer(this, stage.querySelector("#hint"), chosen);
    new ResizeObserver(() => this.resize()).observe(stage);
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
      matchMedia(query).addEventListener("change", () => {
        this.style = readStyle();
        this.all();
      });
    }
    model.listeners.add((change) => this.changed(change));
    this.resize();
  }

  get many() {
    return this.model.links.size > MANY ? this.model.links.size : 0;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    if (!width || !height) return;
    this.width = width;
    this.height = height;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.linkCanvas, this.nodeCanvas]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.arrange();
    this.all();
  }

  arrange() {
    if (!this.width) return;
    this.plan = layout(this.model, this.width, this.height, this.plan.places, this.room);
    const points = [...this.plan.places].map(([id, place]) => ({ id, ...place }));
    this.tree = d3.quadtree(points, (point) => point.x, (point) => point.y);
    this.rows = this.nameRows();
    this.radius = Math.max(1.6, Math.min(10, this.plan.room * 0.3));
  }

  changed({ whole, links }) {
    if (whole) {
      this.looks.clear();
      this.arrange();
      this.all();
    } else if (this.many) {
      links.forEach((link) => this.paintOver(link));
      this.paintNodes();
      this.soon(1500);
    } else {
      this.all();
    }
    // when the browser shows it, after all other listeners
    requestAnimationFrame(() => setTimeout(() => {
      this.times.update = performance.now() - this.model.received;
    }));
  }

  /** Paint everything again. */
  all() {
    if (!this.width || !this.model.nodes.size) return;
    this.paintNodes();
    if (this.many) this.paintSlices();
    else this.paintLinks();
    this.describe();
  }

  soon(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.all(), delay);
  }

  // -- links ----------------------------------------------------------------------------------

  get dimmed() {
    const { nodes, link, shares, tree, beyond } = this.selected;
    return nodes.length > 0 || [link, shares, tree, beyond].some((one) => one !== null);
  }

  prepare(canvas) {
    const context = canvas.getContext("2d");
    const { k, x, y } = this.transform;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.setTransform(this.ratio * k, 0, 0, this.ratio * k, this.ratio * x, this.ratio * y);
    context.lineCap = "round";
    return context;
  }

  /** Links by their look, those as usual first. */
  batches() {
    const { model, style, many } = this;
    const found = new Map();
    this.looks.clear();
    for (const link of model.links.values()) {
      if (!this.plan.places.has(link.a) || !this.plan.places.has(link.b)) continue;
      const look = linkLook(link, style, model.usual, many);
      this.looks.set(link.key, look.color);
      const key = `${look.color} ${look.width.toFixed(2)} ${look.dash} ${look.alpha.toFixed(2)}`;
      let batch = found.get(key);
      if (!batch) found.set(key, (batch = { look, state: link.state, links: [] }));
      batch.links.push(link);
    }
    return [...found.values()].sort((x, y) => Number(x.state !== null) - Number(y.state !== null));
  }

  trace(context, link) {
    const a = this.plan.places.get(link.a);
    const b = this.plan.places.get(link.b);
    context.moveTo(a.x, a.y);
    if (this.plan.curved && !this.many) {
      const [near, far] = bends(a, b);
      context.bezierCurveTo(a.x, a.y + near, b.x, b.y + far, b.x, b.y);
    } else {
      context.lineTo(b.x, b.y);
    }
  }

  stroke(context, look, links) {
    const scale = this.transform.k ** 0.6;
    context.strokeStyle = look.color;
    context.lineWidth = look.width / scale;
    context.setLineDash(look.dash.map((length) => length / scale));
    context.globalAlpha = look.alpha;
    context.beginPath();
    links.forEach((link) => this.trace(context, link));
    context.stroke();
  }

  paintLinks() {
    const context = this.prepare(this.linkCanvas);
    this.paintGroups(context);
    for (const { look, links } of this.batches()) this.stroke(context, look, links);
    context.globalAlpha = 1;
    this.drawnAt = this.transform;
    this.linkCanvas.style.transform = "";
    this.finished();
  }

  paintGroups(context) {
    const pad = Math.min(20, this.plan.room * 0.6) + 6;
    context.setLineDash([]);
    for (const { label, x, y, width, height, below } of this.plan.groups) {
      context.font = `500 11px ${this.style.font}`;
      const narrow = (context.measureText(label).width + 20 - width) / 2;
      const wide = below ? Math.max(pad, narrow) : Math.min(this.plan.room / 2 + 2, 38);
      const [top, tall] = below ? [y - pad - 6, height + 2 * pad + 38] : [y - 34, height + 50];
      context.fillStyle = this.style.pod;
      context.beginPath();
      context.roundRect(x - wide, top, width + 2 * wide, tall, 12);
      context.fill();
      context.fillStyle = this.style.dim;
      context.textAlign = "left";
      if (width + 2 * wide > 50) context.fillText(label, x - wide + 10, below ? top + tall - 10 : top + 17);
    }
  }

  /** Paint many links on a canvas that is not shown, some milliseconds in each frame. */
  paintSlices() {
    this.pass += 1;
    const pass = this.pass;
    const began = performance.now();
    const hidden = document.createElement("canvas");
    hidden.width = this.linkCanvas.width;
    hidden.height = this.linkCanvas.height;
    const transform = this.transform;
    const context = this.prepare(hidden);
    this.paintGroups(context);
    const work = this.pieces();
    const step = () => {
      if (pass !== this.pass) return;
      const end = performance.now() + (this.times.first === null ? FIRST_SLICE : SLICE);
      let piece = work.next();
      for (; !piece.done; piece = work.next()) {
        this.stroke(context, piece.value.look, piece.value.links);
        if (performance.now() > end) break;
      }
      if (!piece.done) {
        requestAnimationFrame(step);
        return;
      }
      const shown = this.linkCanvas.getContext("2d");
      shown.setTransform(1, 0, 0, 1, 0, 0);
      shown.clearRect(0, 0, hidden.width, hidden.height);
      shown.globalAlpha = 1;
      shown.drawImage(hidden, 0, 0);
      this.drawnAt = transform;
      this.linkCanvas.style.transform = "";
      this.times.whole = performance.now() - began;
      this.finished();
    };
    step();
  }

  * pieces() {
    for (const { look, links } of this.batches()) {
      for (let at = 0; at < links.length; at += 64) yield { look, links: links.slice(at, at + 64) };
    }
  }

  /** Paint one changed link over the others. */
  paintOver(link) {
    if (!this.plan.places.has(link.a) || !this.plan.places.has(link.b)) return;
    const context = this.linkCanvas.getContext("2d");
    const { k, x, y } = this.drawnAt;
    context.setTransform(this.ratio * k, 0, 0, this.ratio * k, this.ratio * x, this.ratio * y);
    const look = linkLook(link, this.style, this.model.usual, this.many);
    this.looks.set(link.key, look.color);
    this.stroke(context, { ...look, alpha: link.state === null ? 0.6 : 1 }, [link]);
    context.globalAlpha = 1;
  }

  finished() {
    if (this.times.first === null) {
      this.times.first = performance.now();
      this.stage.dataset.drawn = "true";
    }
  }

  // -- routers --------------------------------------------------------------------------------

  /** Of each row of routers, by its height: the least distance, and the pixels of the longest name. */
  nameRows() {
    const context = this.nodeCanvas.getContext("2d");
    context.font = `450 ${LABEL_SIZE}px ${this.style.font}`;
    const places = [...this.plan.places].map(([id, { x, y }]) => ({ name: this.model.name(id), x, y }));
    return d3.rollup(places, (row) => {
      const longest = row.reduce((one, { name }) => (name.length > one.length ? name : one), "");
      const gaps = d3.pairs(row.map(({ x }) => x).sort(d3.ascending), (a, b) => b - a);
      const room = this.plan.curved ? d3.min(gaps) ?? this.width : this.plan.room;
      return { room, widest: context.measureText(longest).width };
    }, ({ y }) => this.row(y));
  }

  /** Routers of other graphs are in no rows. */
  row(y) {
    return this.plan.curved ? Math.round(y) : 0;
  }

  /** Whether the names of a row have room beside each other. Zooming enlarges them less than the room. */
  named(y) {
    const { room, widest } = this.rows.get(this.row(y));
    const { k } = this.transform;
    return room * k > widest * k ** 0.5 + LABEL_GAP;
  }

  paintNodes() {
    if (!this.width) return;
    const context = this.prepare(this.nodeCanvas);
    if (this.dimmed) this.paintSelection(context);
    const zoomed = this.transform.k ** 0.5;
    const radius = this.radius / zoomed;
    const { alone } = this.model.missing();
    const marked = new Set([...this.selected.nodes, this.pointer.hovered?.node].filter(Boolean));
    for (const [id, { x, y, below }] of this.plan.places) {
      const node = this.model.nodes.get(id);
      if (!node) continue;
      const look = { x, y, radius, marked: marked.has(id), missing: node.gone || alone.has(id), above: this.plan.curved && !below, beside: this.model.clos && node.tier === null, size: LABEL_SIZE / zoomed };
      paintRouter(context, this.style, node, look);
      if (this.named(y) || look.marked || (node.here && this.radius > 4 && !this.dimmed)) paintName(context, this.style, node, look);
    }
    if (this.selected.beyond) paintDestination(this, context, LABEL_SIZE / zoomed);
  }

  /** What is selected stands out, since everything else is paler. */
  paintSelection(context) {
    const { nodes, link, shares, tree, beyond } = this.selected;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = 0.72;
    context.fillStyle = this.style.ground;
    context.fillRect(0, 0, this.nodeCanvas.width, this.nodeCanvas.height);
    context.restore();
    context.globalAlpha = 1;
    // a link that is unusual keeps its color among the paths
    if (beyond) paintBeyond(this, context, LABEL_SIZE / this.transform.k ** 0.5);
    if (beyond) beyond.ways.forEach(({ link: one, share }) => one && this.highlight(context, one, one.state ? null : this.style.accent, 1.2 + 7 * (share ?? 0)));
    else if (shares) shares.forEach(({ link: one, share }) => this.highlight(context, one, one.state ? null : this.style.accent, 1.2 + 7 * share));
    else if (tree) tree.forEach((one) => this.highlight(context, one, this.style.accent, 3));
    else if (link) this.highlight(context, link, null, 4);
    else nodes.forEach((id) => (this.model.of.get(id) ?? []).forEach((one) => this.highlight(context, one, null, null)));
    context.globalAlpha = 1;
  }

  highlight(context, link, color, width) {
    if (!this.plan.places.has(link.a) || !this.plan.places.has(link.b)) return;
    const look = linkLook(link, this.style, this.model.usual, 0);
    const slim = this.many && width === null ? 1 : width;
    this.stroke(context, { ...look, color: color ?? look.color, width: slim ?? look.width, alpha: 1 }, [link]);
  }

  // -- zoom -----------------------------------------------------------------------------------

  zoomed(transform) {
    this.transform = transform;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (!this.many) {
        this.all();
        return;
      }
      const { k, x, y } = this.drawnAt;
      const scale = transform.k / k;
      this.linkCanvas.style.transform =
        `translate(${transform.x - x * scale}px, ${transform.y - y * scale}px) scale(${scale})`;
      this.paintNodes();
      this.soon(160);
    });
  }

  by(factor) {
    d3.select(this.nodeCanvas).transition().duration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180)
      .call(this.zoom.scaleBy, factor);
  }

  fit() {
    d3.select(this.nodeCanvas).call(this.zoom.transform, d3.zoomIdentity);
  }

  /** Leave room beyond the neighbors of this router for a destination. */
  leaveRoom(room) {
    this.room = room;
    this.arrange();
    this.all();
  }

  /** Select routers, a link, or shares of links; null: nothing. */
  select(selected) {
    this.selected = { nodes: [], link: null, shares: null, tree: null, beyond: null, ...selected };
    this.paintNodes();
  }

  describe() {
    const { nodes, links, odd } = this.model;
    this.nodeCanvas.setAttribute("aria-label",
      `Drawing of ${nodes.size} routers and ${links.size} links, ${odd.size} of them missing or unusual. ` +
      "The tables Routers and Links have the same.");
  }
}
