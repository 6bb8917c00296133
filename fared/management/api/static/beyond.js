// A destination of BGP behind the neighbors that announce it: what each of them announces is the width of its line.
/* global d3 */

import { bandwidth } from "./format.js";
import { bends } from "./layout.js";

const AWAY = 84;
const BELOW = 68;
const SIDE = 10;
const TOP = 66;

/** Where the destination is: on the other side of the neighbors that announce it. */
function placeOf({ plan, model, width, height }, ways, half) {
  const ends = ways.map(({ id }) => plan.places.get(id)).filter(Boolean);
  const here = plan.places.get(model.here);
  if (!ends.length || !here) return null;
  const above = d3.mean(ends, ({ y }) => y) <= here.y;
  const y = above ? Math.max(TOP, d3.min(ends, (end) => end.y) - AWAY) : Math.min(height - SIDE, d3.max(ends, (end) => end.y) + BELOW);
  const x = Math.max(half + SIDE, Math.min(width - half - SIDE, d3.mean(ends, (end) => end.x)));
  return { x, y, above };
}

/** Half the width of its name. */
function halfOf({ style, selected }, context, size) {
  context.font = `600 ${size * 1.08}px ${style.font}`;
  return context.measureText(selected.beyond.name).width / 2 + size;
}

/** How far from the middle of a router its name ends, or where it has none, its disc. */
function reach({ radius, transform }, size, named) {
  const disc = (radius / transform.k ** 0.5) * 1.55;
  return named ? disc + size * 1.7 : disc;
}

/** Paint the lines to it under the routers. */
export function paintBeyond(drawing, context, size) {
  const { style, plan, selected, transform, model } = drawing;
  const at = placeOf(drawing, selected.beyond.ways, halfOf(drawing, context, size));
  if (!at) return;
  for (const { id, announced, carries, limited } of selected.beyond.ways) {
    const end = plan.places.get(id);
    if (!end) continue;
    const from = { x: end.x, y: end.y + reach(drawing, size, drawing.named(end.y)) * (at.above ? -1 : 1) };
    const [near, far] = bends(from, at);
    const part = Math.sqrt(Math.min(1, (announced ?? carries ?? 0) / model.usual));
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.bezierCurveTo(from.x, from.y + near, at.x, at.y + far, at.x, at.y);
    context.setLineDash([]);
    context.strokeStyle = limited ? style.reduced : style.accent;
    context.lineWidth = (1 + 4 * part) / transform.k ** 0.6;
    context.stroke();
  }
}

/** Paint its name, and what each neighbor carries, over the routers. */
export function paintDestination(drawing, context, size) {
  const { style, selected } = drawing;
  const half = halfOf(drawing, context, size);
  const at = placeOf(drawing, selected.beyond.ways, half);
  if (!at) return;
  figures(drawing, context, size, at);
  pill(context, style, selected.beyond.name, at, half, size);
}

/** What each neighbor carries, on its link, where these have room beside each other. */
function figures(drawing, context, size, { above }) {
  const { style, plan, selected } = drawing;
  context.font = `600 ${size}px ${style.font}`;
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = size / 2.6;
  context.strokeStyle = style.ground;
  for (const { id, carries, limited } of selected.beyond.ways) {
    const end = plan.places.get(id);
    if (!end || carries === null || !drawing.named(end.y)) continue;
    const away = reach(drawing, size, false) + size * 0.45;
    const y = above ? end.y + away + size * 0.75 : end.y - away;
    context.strokeText(bandwidth(carries), end.x, y);
    context.fillStyle = limited ? style.reduced : style.ink;
    context.fillText(bandwidth(carries), end.x, y);
  }
}

function pill(context, style, name, { x, y }, half, size) {
  context.beginPath();
  context.roundRect(x - half, y - size * 1.05, 2 * half, size * 2.1, size * 1.05);
  context.fillStyle = style.surface;
  context.fill();
  context.strokeStyle = style.ink;
  context.lineWidth = size / 8;
  context.stroke();
  context.font = `600 ${size * 1.08}px ${style.font}`;
  context.textAlign = "center";
  context.fillStyle = style.ink;
  context.fillText(name, x, y + size * 0.38);
}
