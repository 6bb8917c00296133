// Routers as they are drawn.

/** A router: a disc in the color of its tier, gray beside the tiers, a ring if it is marked or this router itself. One that is missing is a gray outline. */
export function paintRouter(context, style, node, { x, y, radius, marked, missing, beside }) {
  const tone = beside ? style.dim : [style.leaf, style.spine, style.super][node.tier ?? 1];
  const usual = node.transit && !node.last_resort && !missing;
  context.setLineDash(usual ? [] : [radius / 2.5, radius / 3]);
  context.beginPath();
  if (node.network) context.rect(x - radius * 0.7, y - radius * 0.7, radius * 1.4, radius * 1.4);
  else context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = usual ? tone : style.surface;
  context.fill();
  context.lineWidth = Math.max(0.5, radius / 5);
  context.strokeStyle = usual ? style.surface : missing ? style.dim : style.drained;
  context.stroke();
  context.setLineDash([]);
  if (node.here || marked) {
    context.beginPath();
    context.arc(x, y, radius * 1.55, 0, 2 * Math.PI);
    context.strokeStyle = marked ? style.accent : style.ink;
    context.lineWidth = Math.max(1, radius / 5);
    context.stroke();
  }
}

/** The name of a router, above it or below. */
export function paintName(context, style, node, { x, y, radius, marked, missing, above, size }) {
  context.font = `${marked || node.here ? 600 : 450} ${size}px ${style.font}`;
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = size / 3.2;
  context.strokeStyle = style.ground;
  const at = above ? y - radius * 1.55 - size * 0.45 : y + radius * 1.55 + size * 1.05;
  context.strokeText(node.name, x, at);
  context.fillStyle = missing ? style.dim : style.ink;
  context.fillText(node.name, x, at);
}
