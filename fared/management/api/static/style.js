// Colors and widths of what is drawn, from the style sheet: it has a light and a dark set.
/* global d3 */

const LEVELS = 24;
const NAMES = ["ink", "dim", "ground", "surface", "line", "accent", "load0", "load1", "unknown",
  "reduced", "drained", "sick", "lost", "leaf", "spine", "super", "pod"];

/** Read the present colors. */
export function readStyle() {
  const css = getComputedStyle(document.documentElement);
  const found = Object.fromEntries(NAMES.map((name) => [name, css.getPropertyValue(`--${name}`).trim()]));
  const scale = d3.interpolateHcl(found.load0, found.load1);
  found.loads = d3.range(LEVELS + 1).map((level) => scale(level / LEVELS));
  found.font = css.getPropertyValue("--font").trim();
  return found;
}

/** How a link looks: color, width, dashes; `many`: how many links form a mesh, 0 if few are drawn. */
export function linkLook(link, style, usual, many) {
  const { state, load, capacity } = link;
  const part = capacity === null ? 0.3 : Math.sqrt(Math.min(1, capacity / usual));
  const width = many ? 0.35 + 0.5 * part : 1 + 2.2 * part;
  switch (state) {
    case "lost":
    case "one-way":
      return { color: style.lost, width: many ? 0.8 : 1.4, dash: [2, 5], alpha: 1 };
    case "sick":
      return { color: style.sick, width: many ? 1.2 : width + 0.6, dash: [9, 4], alpha: 1 };
    case "drained":
      return { color: style.drained, width: many ? 0.8 : 1.8, dash: [1, 4], alpha: 1 };
    case "reduced":
      return { color: style.reduced, width: many ? 1.2 : width + 0.8, dash: [], alpha: 1 };
    default: {
      const color = load === null ? style.unknown : style.loads[Math.round(load * LEVELS)];
      const busy = Math.max(0, (load ?? 0) - 0.8) * 3;
      const alpha = many ? Math.min(0.6, 1800 / many + busy) : 0.92;
      return { color, width, dash: [], alpha };
    }
  }
}
