// The fabric as this page knows it: routers, and links with both directions.
// It is read once, and again after a reset; events change single links.
/* global d3 */

import { byNumbers, moment } from "./format.js";

/** States of links, the worst first, as people are told. */
export const STATE_WORDS = { lost: "missing", "one-way": "one way", sick: "sick", drained: "drained", reduced: "reduced" };
export const STATES = Object.keys(STATE_WORDS);
const ROLES = ["leaf", "spine", "super-spine"];
const MOST_HISTORY = 600;
const API = "/api/v1/";

/** Fetch a document; an error has the message of the router. */
export async function fetchDocument(name, args = {}) {
  const query = new URLSearchParams(args).toString();
  const answer = await fetch(API + name + (query ? `?${query}` : ""));
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error?.message ?? answer.statusText);
  return found;
}

/** The key of the link between two routers, the same from both ends. */
export function linkKey(a, b) {
  return a < b ? `${a}|${b}` : `${b}|${a}`;
}

class Link {
  /** `a` is the end that is named first. */
  constructor(a, b) {
    [this.a, this.b] = [a, b];
    this.key = linkKey(a, b);
    this.ab = null;
    this.ba = null;
    this.history = [];
    this.missing = null;
  }

  /** The direction from a router. */
  from(id) {
    return id === this.a ? this.ab : this.ba;
  }

  put(from, row) {
    if (from === this.a) this.ab = row;
    else this.ba = row;
  }

  get whole() {
    return this.ab !== null && this.ba !== null;
  }

  /** Whether it is there: one end may not list it yet. If it is missing, the other end does not any more. */
  get present() {
    return this.whole || (this.missing === null && this.rows.length > 0);
  }

  get rows() {
    return [this.ab, this.ba].filter((row) => row !== null);
  }

  /** The state of the worse direction; null: as usual. Of parallel links some may be missing. */
  get state() {
    if (!this.present) return "lost";
    const states = this.rows.map((row) => row.state);
    if (!this.whole) states.push("one-way");
    else if (this.missing?.links) states.push("reduced");
    return STATES.find((state) => states.includes(state)) ?? null;
  }

  get reason() {
    const { state } = this;
    const told = this.rows.find((row) => row.state === state)?.reason;
    const one = state === "lost" ? "one end still lists it" : "one end does not list it";
    const why = told ?? (this.rows.length === 1 ? one : null);
    return [this.missing && whyMissed(this.missing), why].filter(Boolean).join("; ") || "neither end lists it any more";
  }

  /** The capacity of the smaller direction, bytes/s; null: unknown. */
  get capacity() {
    const known = this.rows.map((row) => row.capacity).filter((value) => value !== null);
    return known.length ? Math.min(...known) : null;
  }

  /** The announced load of the busier direction, 0..1; null: unknown. */
  get load() {
    const known = this.rows.map(loadOf).filter((value) => value !== null);
    return known.length ? Math.max(...known) : null;
  }
}

/** Why a link is missed: it was there, or the siblings of an end have it. */
function whyMissed({ from, from_hostname: name, to_hostname: far, links, since, have, siblings, sibling_of: of }) {
  const parts = [];
  if (links) parts.push(`${links > 1 ? `${links} links ` : ""}gone since ${moment(since)}`);
  if (have) {
    const whose = (of === from ? name : far) ?? of;
    const part = siblings === 1 ? "the sibling" : have === siblings ? `all ${siblings} siblings` : `${have} of the ${siblings} siblings`;
    parts.push(`${part} of ${whose} ${have === 1 ? "has" : "have"} it`);
  }
  return parts.join("; ");
}

/** The announced load of one direction, 0..1. */
export function loadOf(row) {
  if (!row || row.available === null || !row.capacity) return null;
  return Math.max(0, Math.min(1, 1 - row.available / row.capacity));
}

/** Holds routers and links; calls its listeners with what changed. */
export class Model {
  constructor() {
    this.nodes = new Map();
    this.inOrder = [];
    this.rank = new Map();
    this.links = new Map();
    this.of = new Map();
    this.jobs = [];
    this.weakest = null;
    this.here = null;
    this.clos = false;
    this.usual = 1;
    this.odd = new Set();
    this.received = 0;
    this.listeners = new Set();
  }

  /** Read the whole document. Links that it lacks, and that went while it was not read, are missing. */
  read(fabric) {
    const before = this.links;
    this.clos = fabric.clos;
    this.jobs = fabric.jobs;
    this.weakest = fabric.weakest;
    this.here = fabric.nodes.find((node) => node.here)?.id ?? null;
    this.place(new Map(fabric.nodes.map((node) => [node.id, named(node)])), fabric.missing);
    this.links = new Map();
    for (const node of fabric.nodes) {
      const { to, count, metric, capacity, available, delay, marks } = node.links;
      const marked = new Map(marks.map((mark) => [mark.to, mark]));
      to.forEach((end, i) => {
        const mark = marked.get(end);
        this.linkOf(node.id, end, before).put(node.id, {
          count: count[i],
          metric: metric[i],
          capacity: capacity[i],
          available: available[i],
          delay: delay?.[i] ?? null,
          state: mark?.state ?? null,
          reason: mark?.reason ?? null,
        });
      });
      delete node.links;
    }
    for (const entry of fabric.missing) this.linkOf(entry.from, entry.to, before).missing = entry;
    for (const [key, link] of before) {
      if (this.links.has(key) || link.missing || !this.nodes.has(link.a) || !this.nodes.has(link.b)) continue;
      link.ab = link.ba = null;
      this.links.set(key, link);
    }
    this.index();
    this.odd = new Set([...this.links.values()].filter((link) => link.state !== null));
    this.tell(true, this.links.values());
  }

  /** Apply an event `missing`: all links that are missing now, in place of those that were. */
  miss(entries) {
    const gone = [...this.nodes.values()].filter((node) => node.gone);
    const present = new Map([...this.nodes].filter(([, node]) => !node.gone));
    const missed = ghosts(present, entries, this.nodes);
    const moved = missed.map(({ id }) => id).sort().join() !== gone.map(({ id }) => id).sort().join();
    if (moved) this.place(present, entries);
    const changed = new Set();
    for (const link of this.links.values()) {
      if (!link.missing) continue;
      link.missing = null;
      changed.add(link);
    }
    for (const entry of entries) {
      const link = this.linkOf(entry.from, entry.to);
      link.missing = entry;
      changed.add(link);
    }
    for (const link of changed) {
      if (link.present || link.missing) continue;
      this.links.delete(link.key);
      this.odd.delete(link);
    }
    this.index();
    this.sift(changed);
    this.tell(moved, changed);
  }

  /** Routers, in order: those that are there, and those that are missing. */
  place(nodes, missing) {
    for (const node of ghosts(nodes, missing, this.nodes)) nodes.set(node.id, node);
    this.nodes = nodes;
    this.inOrder = ordered(nodes.values());
    this.rank = new Map(this.inOrder.map(({ id }, at) => [id, at]));
  }

  tell(whole, links) {
    const all = [...links];
    this.listeners.forEach((listen) => listen({ whole, links: all }));
  }

  linkOf(from, to, before = this.links) {
    const key = linkKey(from, to);
    let link = this.links.get(key);
    if (!link) {
      link = this.before(from, to) ? new Link(from, to) : new Link(to, from);
      link.history = before.get(key)?.history ?? [];
      this.links.set(key, link);
    }
    return link;
  }

  index() {
    this.of = new Map([...this.nodes.keys()].map((id) => [id, []]));
    let most = 1;
    for (const link of this.links.values()) {
      this.of.get(link.a)?.push(link);
      this.of.get(link.b)?.push(link);
      most = Math.max(most, link.capacity ?? 0);
    }
    this.usual = most;
  }

  /** Which of these links are unusual now. */
  sift(links) {
    for (const link of links) {
      if (!this.links.has(link.key) || link.state === null) this.odd.delete(link);
      else this.odd.add(link);
    }
  }

  /** Apply an event `delta`. */
  change(delta) {
    const changed = new Set();
    const known = this.links.size;
    for (const row of delta.links) {
      const link = this.linkOf(row.from, row.to);
      const { whole } = link;
      const { count, metric, capacity, available, delay = null, state, reason } = row;
      link.put(row.from, { count, metric, capacity, available, delay, state, reason });
      if (!whole && link.whole) link.missing = null;
      changed.add(link);
    }
    if (this.links.size !== known) this.index();
    for (const [from, to] of delta.lost) {
      const link = this.links.get(linkKey(from, to));
      if (!link) continue;
      link.put(from, null);
      changed.add(link);
    }
    this.sift(changed);
    for (const link of changed) {
      link.history.push({ at: delta.at, ab: loadOf(link.ab), ba: loadOf(link.ba) });
      if (link.history.length > MOST_HISTORY) link.history.shift();
    }
    this.tell(false, changed);
  }

  /** The lowest tier: of a plane alone, that of spines; null: there are no tiers. */
  get lowest() {
    return this.clos ? d3.min(this.inOrder, (node) => node.tier) : null;
  }

  isLowest(id) {
    const node = this.nodes.get(id);
    return this.clos && node?.tier === this.lowest && !node.gone;
  }

  /** Whether a router comes before another one: upper tiers first, then numbers in names as numbers. */
  before(x, y) {
    const [at, other] = [x, y].map((id) => this.rank.get(id) ?? this.rank.size);
    return at < other || (at === other && x < y);
  }

  /** Links in the order of their names. */
  sorted(links) {
    const at = (id) => this.rank.get(id) ?? this.rank.size;
    return links.sort((x, y) => at(x.a) - at(y.a) || at(x.b) - at(y.b));
  }

  /** The capacity of one link that at least half of those between two tiers have, as the router judges; by the tiers. */
  usualCapacities() {
    const counts = new Map();
    for (const link of this.links.values()) {
      for (const [from, to, row] of [[link.a, link.b, link.ab], [link.b, link.a, link.ba]]) {
        if (row?.capacity == null) continue;
        const of = counts.get(this.tiersOf(from, to)) ?? new Map();
        const each = Math.round(row.capacity / row.count);
        counts.set(this.tiersOf(from, to), of.set(each, (of.get(each) ?? 0) + 1));
      }
    }
    return new Map([...counts].map(([tiers, of]) => [tiers, d3.greatest(of, ([, number]) => number)[0]]));
  }

  tiersOf(from, to) {
    return [from, to].map((id) => this.nodes.get(id)?.tier ?? "-").join(" ");
  }

  /** What all shortest paths would carry if no link were missing or slow; null: it is not known. */
  whole(from, to) {
    if (!this.clos) return null;
    const usual = this.usualCapacities();
    const ends = (id) => this.of.get(id).map((link) => ({ id: link.a === id ? link.b : link.a, links: Math.max(1, (link.ab ?? link.ba)?.count ?? 0, link.missing?.links ?? 0) }));
    const far = new Map([[to, 0]]);
    for (const id of far.keys()) {
      for (const end of ends(id)) if (!far.has(end.id)) far.set(end.id, far.get(id) + 1);
    }
    const most = new Map([[to, Infinity]]);
    const carried = (id) => {
      if (!most.has(id)) {
        const next = ends(id).filter((end) => far.get(end.id) === far.get(id) - 1);
        most.set(id, d3.sum(next, (end) => Math.min(end.links * (usual.get(this.tiersOf(id, end.id)) ?? 0), carried(end.id))));
      }
      return most.get(id);
    };
    return carried(from) || null;
  }

  /** One direction of a link. */
  direction(from, to) {
    return `${this.name(from)} > ${this.name(to)}`;
  }

  /** The name of a link. */
  title(link) {
    return `${this.name(link.a)}-${this.name(link.b)}`;
  }

  name(id) {
    return this.nodes.get(id)?.name ?? id;
  }

  /** Find a router by name or id. */
  find(text) {
    if (this.nodes.has(text)) return text;
    const wanted = text.trim().toLowerCase();
    for (const node of this.nodes.values()) {
      if (node.name.toLowerCase() === wanted || node.ids.includes(wanted)) return node.id;
    }
    return null;
  }

  /** Routers that are there. */
  get routers() {
    return this.inOrder.filter((node) => !node.gone);
  }

  /** Links that are missing, and routers that have no other. */
  missing() {
    const links = [...this.odd].filter((link) => !link.present);
    const alone = new Set(links.map((link) => link.missing?.alone).filter(Boolean));
    return { links, routers: this.inOrder.filter((node) => node.gone || alone.has(node.id)), alone };
  }

  /** Links that are missing, drained, sick or slower than their siblings, the worst first. */
  unusual() {
    return this.sorted([...this.odd]).sort((x, y) => STATES.indexOf(x.state) - STATES.indexOf(y.state));
  }
}

function ordered(nodes) {
  return [...nodes].sort((x, y) =>
    (y.tier ?? -1) - (x.tier ?? -1) || (x.pod ?? Infinity) - (y.pod ?? Infinity) || (x.plane ?? Infinity) - (y.plane ?? Infinity)
    || byNumbers(x.name, y.name));
}

/** Routers that are missing with all their links, where they were or where their neighbors say. */
function ghosts(nodes, missing, before) {
  const ends = d3.group(missing.flatMap(({ from, to, from_hostname: name, to_hostname: far }) =>
    [{ id: from, name, end: nodes.get(to) }, { id: to, name: far, end: nodes.get(from) }]), ({ id }) => id);
  const gone = [...ends].filter(([id]) => !nodes.has(id));
  const supers = [...nodes.values()].some((node) => node.tier === 2);
  return gone.map(([id, links]) => {
    const known = before.get(id);
    const found = known ?? placeAmong(links.map(({ end }) => end).filter(Boolean), supers);
    const { tier, pod, plane } = found;
    const name = links.find((link) => link.name)?.name ?? known?.name ?? id;
    return { id, ids: [id], hostname: name, name, gone: true, here: false, network: false, transit: true, last_resort: false, prefixes: 0,
      tier, pod, plane, role: ROLES[tier] ?? null };
  });
}

/** The place of a router, by that of the neighbors that it had. */
function placeAmong(ends, supers) {
  const only = (values) => (new Set(values).size === 1 ? values[0] : null);
  const tiers = new Set(ends.map((end) => end.tier));
  const pod = only(ends.filter((end) => end.tier !== 2).map((end) => end.pod));
  const plane = only(ends.filter((end) => end.tier !== 0).map((end) => end.plane));
  if (!tiers.size || tiers.has(null)) return { tier: null, pod: null, plane: null };
  if (!tiers.has(1)) return { tier: 1, pod, plane };
  if (!supers || (pod !== null && plane === null)) return { tier: 0, pod, plane: null };
  return plane === null ? { tier: null, pod: null, plane: null } : { tier: 2, pod: null, plane };
}

function named(node) {
  return { ...node, name: node.hostname ?? node.id };
}

/** Follow the events of the router; `told` hears of connection and changes. */
export function follow(model, told) {
  let reading = null;
  let again = false;
  let waiting = [];
  async function read() {
    if (reading) {
      again = true;
      return reading;
    }
    waiting = [];
    reading = (async () => {
      try {
        model.read(await fetchDocument("fabric"));
        waiting.forEach((apply) => apply());
      } finally {
        reading = null;
      }
    })();
    await reading;
    if (again) {
      again = false;
      await read();
    }
    return null;
  }
  const source = new EventSource(`${API}events`);
  const failed = (error) => told("error", error.message);
  source.addEventListener("begin", () => read().then(() => told("live"), failed));
  source.addEventListener("reset", () => read().then(() => told("live"), failed));
  const take = (apply) => {
    model.received = performance.now();
    if (reading) waiting.push(apply);
    else apply();
  };
  source.addEventListener("delta", (event) => take(() => model.change(JSON.parse(event.data))));
  source.addEventListener("missing", (event) => take(() => {
    model.miss(JSON.parse(event.data).missing);
    told("missing");
  }));
  source.addEventListener("weakest", (event) => take(() => {
    model.weakest = JSON.parse(event.data).weakest;
    told("weakest");
  }));
  source.addEventListener("change", () => told("change"));
  source.onerror = () => told("away");
  window.addEventListener("pagehide", () => source.close());
  return source;
}
