// What the tests read of the page: `tests` in its window.
window.tests = {
  id: (name) => fared.model.find(name),
  link(a, b) {
    const [from, to] = [this.id(a), this.id(b)].sort();
    return fared.model.links.get(`${from}|${to}`);
  },
  color(a, b) {
    return fared.drawing.looks.get(this.link(a, b).key);
  },
  /** Where a router, or the middle of a link, is on the screen. */
  at(a, b) {
    const { places } = fared.drawing.plan;
    const ends = [a, b ?? a].map((name) => places.get(this.id(name)));
    const [x, y] = [(ends[0].x + ends[1].x) / 2, (ends[0].y + ends[1].y) / 2];
    const box = fared.drawing.nodeCanvas.getBoundingClientRect();
    const point = fared.drawing.transform.apply([x, y]);
    return [point[0] + box.left, point[1] + box.top];
  },
  /** The color that is drawn in the middle of a link. */
  pixel(a, b) {
    const { linkCanvas, ratio } = fared.drawing;
    const box = linkCanvas.getBoundingClientRect();
    const [x, y] = this.at(a, b);
    const context = linkCanvas.getContext("2d");
    return [...context.getImageData((x - box.left) * ratio, (y - box.top) * ratio, 1, 1).data];
  },
  /** Which of some colors of the style are drawn between the name of a router and what is behind it. */
  above(name, colors) {
    const { nodeCanvas, ratio, style } = fared.drawing;
    const { x, y } = this.place(name);
    const corner = [x - 40, y - 70].map((value) => value * ratio);
    const { data } = nodeCanvas.getContext("2d").getImageData(...corner, 80 * ratio, 40 * ratio);
    const found = new Set();
    for (let i = 0; i < data.length; i += 4) found.add(`#${[...data.slice(i, i + 3)].map((n) => n.toString(16).padStart(2, "0")).join("")}`);
    return colors.map((color) => found.has(style[color]));
  },
  /** The place of a router by what the document has of it; and if it had left, to whom opens the page then. */
  async whenGone(name) {
    const fabric = await (await fetch("/api/v1/fabric")).json();
    const { id, tier, pod, plane, links } = fabric.nodes.find((node) => node.hostname === name);
    fabric.nodes = fabric.nodes.filter((node) => node.id !== id);
    for (const { links: rows } of fabric.nodes) {
      const at = rows.to.indexOf(id);
      if (at >= 0) ["to", "count", "metric", "capacity", "available"].forEach((column) => rows[column].splice(at, 1));
    }
    const entry = { from: id, from_hostname: name, to_hostname: null, links: 1, since: 0, have: null, siblings: null, sibling_of: null, alone: id };
    fabric.missing = links.to.map((to) => ({ ...entry, to }));
    const model = new fared.model.constructor();
    model.read(fabric);
    const node = model.nodes.get(id);
    const order = (all) => [...all].map((one) => one.name);
    return { known: [tier, pod, plane], guessed: [node.tier, node.pod, node.plane], missing: model.missing().links.length,
      had: links.to.length, same: order(model.inOrder).join() === order(fared.model.inOrder).join() };
  },
  place: (name) => fared.drawing.plan.places.get(fared.model.find(name)),
  roles: () => Object.fromEntries([...fared.model.nodes.values()].map((node) => [node.name, node.role])),
  places: () => Object.fromEntries([...fared.drawing.plan.places].map(([id, { x, y }]) => [fared.model.name(id), [x, y]])),
  heights: () => Object.fromEntries([...fared.drawing.plan.places].map(([id, place]) => [fared.model.name(id), place.y])),
  lead: () => document.querySelector("#shown .lead")?.innerText ?? "",
  texts: (selector) => [...document.querySelectorAll(selector)].map((one) => one.innerText),
  rows: (selector) => [...document.querySelectorAll(`${selector} tbody tr`)].map((row) => row.innerText),
};
