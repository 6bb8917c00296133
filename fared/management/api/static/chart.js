// The load of a link over time, as a picture and as a table.
/* global uPlot */

import { clock, h, share, table } from "./format.js";
import { readStyle } from "./style.js";

const ROWS = 30;
const LEAST_SPAN = 60;
const SHORT = 600;

/** Chart of `lines` ({label, values}) at Unix times `at`; values are 0..1 or null. */
export function loadChart({ title, at, lines }) {
  const style = readStyle();
  const place = h("div", { class: "plot", role: "img", "aria-label": `${title}, as in the table below` });
  const rows = at.map((time, i) => [clock(time), ...lines.map(({ values }) => share(values[i]))]);
  const text = h("details", {}, h("summary", {}, "As a table"),
    table(title, ["Time", ...lines.map(({ label }) => `>${label}`)], rows.slice(-ROWS).reverse()));
  requestAnimationFrame(() => draw(place, at, lines, style));
  return [h("h3", {}, title), place, text];
}

/** The times that are shown: a minute at least, also of one moment. */
export function span(at) {
  const to = Math.max(...at);
  return [Math.min(...at, to - LEAST_SPAN), to];
}

function draw(place, at, lines, style) {
  if (!place.isConnected) return;
  const axis = { stroke: style.dim, grid: { stroke: style.line, width: 1 }, ticks: { show: false }, font: `11px ${style.font}` };
  const colors = [style.accent, style.unknown];
  const [from, to] = span(at);
  const long = to - from > SHORT;
  const options = {
    width: place.clientWidth,
    height: 150,
    legend: { show: lines.length > 1, live: false },
    cursor: { show: false },
    scales: { x: { range: [from, to] }, y: { range: [0, 1] } },
    axes: [{ ...axis, values: (_, splits) => splits.map((time) => clock(time).slice(0, long ? 5 : 8)) }, { ...axis, size: 44, values: (_, splits) => splits.map((value) => `${Math.round(value * 100)}%`) }],
    series: [{}, ...lines.map(({ label }, i) => ({
      label, stroke: colors[i], width: 1.75, points: { show: at.length < 3 },
      fill: i ? undefined : `${colors[0]}22`,
      paths: uPlot.paths.stepped({ align: 1 }),
    }))],
  };
  place.replaceChildren();
  new uPlot(options, [at, ...lines.map(({ values }) => values)], place); // eslint-disable-line no-new
}
