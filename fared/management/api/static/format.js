// Text and elements: figures for people, and HTML that is made without parsing any.

const SUFFIXES = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["K", 1e3]];

/** Bytes/s as bits/s with a suffix, as fared-cli prints them; null is unknown. */
export function bandwidth(value) {
  if (value === null || value === undefined) return "unknown";
  const bits = value * 8;
  for (const [suffix, size] of SUFFIXES) {
    if (bits >= size * 0.99995) return `${Number((bits / size).toPrecision(4))}${suffix}`;
  }
  return `${Math.round(bits)}`;
}

/** A share 0..1. */
export function share(value) {
  if (value === null || value === undefined) return "unknown";
  const percent = Math.round(value * 1000) / 10;
  return `${percent !== 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)}%`;
}

/** Seconds as 1.2 ms, 3.4 s, 5 min. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 100) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short" });

/** A Unix time on a clock of 24 hours, as the log has it. */
export function clock(at) {
  return CLOCK.format(new Date(at * 1000));
}

/** When something was: "12:50:45"; of another day "Sat 12:50:45". */
export function moment(at) {
  const then = new Date(at * 1000);
  return then.toDateString() === new Date().toDateString() ? clock(at) : `${DAY.format(then)} ${clock(at)}`;
}

/** Compare names and addresses: numbers in them as numbers, S2 before S10. */
export const byNumbers = new Intl.Collator("en", { numeric: true }).compare;

/** How long ago something was, or has lasted: whole seconds. */
export function age(at) {
  const seconds = Math.max(0, Date.now() / 1000 - at);
  return seconds < 100 ? `${Math.round(seconds)} s` : duration(seconds);
}

/** A number with its noun. */
export function count(number, noun, nouns = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : nouns}`;
}

/** Make an element: attributes, then children; functions among the attributes listen to events. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A table with a caption; columns that begin with ">" are numbers. Cells are text or elements.
 * `sort` ({by, down, choose}): rows are in the order of column `by`, and a head chooses another. */
export function table(caption, columns, rows, { head = true, empty = "none", sort = null } = {}) {
  if (!rows.length) return h("div", { class: "section" }, h("h3", {}, caption), h("p", { class: "dim" }, empty));
  const kinds = columns.map((name) => (name.startsWith(">") ? "number" : null));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", { class: head ? null : "unseen" },
        h("tr", {}, columns.map((name, i) => heading(name.replace(/^>/, ""), i, kinds[i], sort)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: kinds[i] }, cell)))))));
}

function heading(name, at, kind, sort) {
  if (!sort || !name) return h("th", { scope: "col", class: kind }, name);
  const order = sort.by === at ? (sort.down ? "descending" : "ascending") : null;
  return h("th", { scope: "col", class: kind, "aria-sort": order }, h("button", { type: "button", class: "sort", click: () => sort.choose(at) }, name));
}

/** A bar of a part 0..1, beside its figure. */
export function bar(part, kind = "") {
  const inner = h("span", { class: `fill ${kind}` });
  inner.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}
