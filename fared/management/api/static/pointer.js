// The pointer over the drawing: what is under it, its name, and clicks.

import { bends } from "./layout.js";
import { STATE_WORDS } from "./model.js";

const NEAR = 7;

export class Pointer {
  /** `drawing` tells where things are; `chosen` is called with what was clicked. */
  constructor(drawing, hint, chosen) {
    this.drawing = drawing;
    this.hint = hint;
    this.chosen = chosen;
    this.hovered = null;
    const canvas = drawing.nodeCanvas;
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.setHover(null));
  }

  at(event) {
    const box = this.drawing.nodeCanvas.getBoundingClientRect();
    const [x, y] = this.drawing.transform.invert([event.clientX - box.left, event.clientY - box.top]);
    const reach = (Math.max(this.drawing.radius, NEAR) * 1.5) / this.drawing.transform.k ** 0.5;
    const node = this.drawing.tree?.find(x, y, reach);
    if (node) return { node: node.id };
    const link = this.linkNear(x, y, NEAR / this.drawing.transform.k);
    return link ? { link } : null;
  }

  linkNear(x, y, reach) {
    let best = null;
    let least = reach;
    for (const link of this.drawing.model.links.values()) {
      const a = this.drawing.plan.places.get(link.a);
      const b = this.drawing.plan.places.get(link.b);
      if (!a || !b) continue;
      const [low, high] = a.y < b.y ? [a.y, b.y] : [b.y, a.y];
      const arc = low === high ? Math.abs(bends(a, b)[0]) : 0;
      if (low - arc > y + reach || high + arc < y - reach) continue;
      const distance = this.drawing.plan.curved && !this.drawing.many ? curveDistance(a, b, x, y) : lineDistance(a, b, x, y);
      if (distance < least) [best, least] = [link, distance];
    }
    return best;
  }

  click(event) {
    if (event.defaultPrevented) return;
    this.chosen(this.at(event), event.shiftKey);
  }

  hover(event) {
    if (event.buttons || event.pointerType === "touch") return;
    this.setHover(this.at(event), event);
  }

  setHover(found, event = null) {
    const changed = found?.node !== this.hovered?.node || found?.link !== this.hovered?.link;
    this.hovered = found;
    this.drawing.nodeCanvas.style.cursor = found ? "pointer" : "grab";
    if (changed) this.drawing.paintNodes();
    this.hint.hidden = !found;
    if (!found || !event) return;
    const box = this.drawing.stage.getBoundingClientRect();
    this.hint.textContent = this.hintOf(found);
    const x = Math.min(event.clientX - box.left + 14, this.drawing.width - this.hint.offsetWidth - 8);
    this.hint.style.transform = `translate(${x}px, ${event.clientY - box.top + 16}px)`;
  }

  hintOf({ node, link }) {
    if (node) return this.drawing.model.name(node);
    return `${this.drawing.model.title(link)}${link.state ? `: ${STATE_WORDS[link.state]}` : ""}`;
  }
}

function lineDistance(a, b, x, y) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = dx * dx + dy * dy || 1;
  const at = Math.max(0, Math.min(1, ((x - a.x) * dx + (y - a.y) * dy) / length));
  return Math.hypot(a.x + at * dx - x, a.y + at * dy - y);
}

function curveDistance(a, b, x, y) {
  const [near, far] = bends(a, b);
  let before = a;
  let least = Infinity;
  for (let i = 1; i <= 16; i += 1) {
    const t = i / 16;
    const u = 1 - t;
    const point = {
      x: u * u * u * a.x + 3 * u * u * t * a.x + 3 * u * t * t * b.x + t * t * t * b.x,
      y: u * u * u * a.y + 3 * u * u * t * (a.y + near) + 3 * u * t * t * (b.y + far) + t * t * t * b.y,
    };
    least = Math.min(least, lineDistance(before, point, x, y));
    before = point;
  }
  return least;
}
