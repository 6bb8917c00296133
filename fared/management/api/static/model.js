// The fabric as this page knows it: routers, and links with both directions.
// It is read once, and again after a reset; events change single links.
/* global d3 */

/** States of links, the worst first. */
export const STATES = ["lost", "one-way", "sick", "drained", "reduced"];
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
  }

  /** The direction from a router. */
  from(id) {
    return id === this.a ? this.ab : this.ba;
  }

  put(from, row) {
    if (from === this.a) this.ab = row;
    else this.ba = row;
  }

  get rows() {
    return [this.ab, this.ba].filter((row) => row !== null);
  }

  /** The state of the worse direction; null: as usual. */
  get state() {
    const states = this.rows.map((row) => row.state);
    if (!this.rows.length) return "lost";
    if (!this.ab || !this.ba) states.push("one-way");
    return STATES.find((state) => states.includes(state)) ?? null;
  }

  get reason() {
    if (!this.rows.length) return "neither end lists it any more";
    return this.rows.find((row) => row.state === this.state)?.reason ?? "one end does not list it";
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
    this.here = null;
    this.clos = false;
    this.usual = 1;
    this.odd = new Set();
    this.received = 0;
    this.listeners = new Set();
  }

  /** Read the whole document; links that it lacks and were there before are lost. */
  read(fabric) {
    const before = this.links;
    this.nodes = new Map(fabric.nodes.map((node) => [node.id, named(node)]));
    this.inOrder = ordered(this.nodes.values());
    this.rank = new Map(this.inOrder.map(({ id }, at) => [id, at]));
    this.clos = fabric.clos;
    this.jobs = fabric.jobs;
    this.here = fabric.nodes.find((node) => node.here)?.id ?? null;
    this.links = new Map();
    for (const node of fabric.nodes) {
      const { to, count, metric, capacity, available, marks } = node.links;
      const marked = new Map(marks.map((mark) => [mark.to, mark]));
      to.forEach((end, i) => {
        const mark = marked.get(end);
        this.linkOf(node.id, end, before).put(node.id, {
          count: count[i],
          metric: metric[i],
          capacity: capacity[i],
          available: available[i],
          state: mark?.state ?? null,
          reason: mark?.reason ?? null,
        });
      });
      delete node.links;
    }
    for (const [key, link] of before) {
      if (this.links.has(key) || !this.nodes.has(link.a) || !this.nodes.has(link.b)) continue;
      link.ab = link.ba = null;
      this.links.set(key, link);
    }
    this.index();
    this.odd = new Set([...this.links.values()].filter((link) => link.state !== null));
    this.listeners.forEach((listen) => listen({ whole: true, links: [...this.links.values()] }));
  }

  linkOf(from, to, before = this.links) {
    const key = linkKey(from, to);
    let link = this.links.get(key);
    if (!link) {
      link = this.before(from, to) ? new Link(from, to) : new Link(to, from);
      link.history = before.get(key)?.history ?? [];
      this.links.set(key, link);
      if (before === this.links) this.index();
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

  /** Apply an event `delta`. */
  change(delta) {
    const changed = new Set();
    for (const row of delta.links) {
      const link = this.linkOf(row.from, row.to);
      const { count, metric, capacity, available, state, reason } = row;
      link.put(row.from, { count, metric, capacity, available, state, reason });
      changed.add(link);
    }
    for (const [from, to] of delta.lost) {
      const link = this.links.get(linkKey(from, to));
      if (!link) continue;
      link.put(from, null);
      changed.add(link);
    }
    for (const link of changed) {
      if (link.state === null) this.odd.delete(link);
      else this.odd.add(link);
      link.history.push({ at: delta.at, ab: loadOf(link.ab), ba: loadOf(link.ba) });
      if (link.history.length > MOST_HISTORY) link.history.shift();
    }
    this.listeners.forEach((listen) => listen({ whole: false, links: [...changed] }));
  }

  /** The lowest tier: of a plane alone, that of spines; null: there are no tiers. */
  get lowest() {
    return this.clos ? d3.min(this.inOrder, (node) => node.tier) : null;
  }

  isLowest(id) {
    return this.clos && this.nodes.get(id)?.tier === this.lowest;
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

  /** Links that are not as usual, the worst first. */
  unusual() {
    return this.sorted([...this.odd]).sort((x, y) => STATES.indexOf(x.state) - STATES.indexOf(y.state));
  }
}

function ordered(nodes) {
  const collator = new Intl.Collator("en", { numeric: true });
  return [...nodes].sort((x, y) =>
    (y.tier ?? -1) - (x.tier ?? -1) || (x.pod ?? Infinity) - (y.pod ?? Infinity) || (x.plane ?? Infinity) - (y.plane ?? Infinity)
    || collator.compare(x.name, y.name));
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
        waiting.forEach((delta) => model.change(delta));
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
  source.addEventListener("delta", (event) => {
    model.received = performance.now();
    const delta = JSON.parse(event.data);
    if (reading) waiting.push(delta);
    else model.change(delta);
  });
  source.addEventListener("change", () => told("change"));
  source.onerror = () => told("away");
  window.addEventListener("pagehide", () => source.close());
  return source;
}
