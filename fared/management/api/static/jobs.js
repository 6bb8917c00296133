// Jobs of in-network aggregation: the trees of routers that sum, drawn over the fabric.

import { h, table } from "./format.js";
import { linkKey } from "./model.js";

export function showJobs(panel) {
  const { model } = panel;
  return model.jobs.flatMap((job) => [
    h("h2", {}, job.name),
    ...job.trees.map((tree, index) => {
      const rows = tree.branches.map(({ router, parent }) => [panel.router(router), parent ? panel.router(parent) : "the root"]);
      const caption = `Tree ${index + 1}: root ${model.name(tree.root)}, weight ${tree.weight}`;
      return h("div", { class: "section" },
        h("button", { type: "button", class: "go", click: () => panel.choose({ tree: linksOf(model, job, tree) }) }, `Draw tree ${index + 1}`),
        table(caption, ["Router", "Sends its sum to"], rows));
    }),
    h("p", { class: "dim" }, `Workers at ${job.leaves.map((id) => model.name(id)).join(", ")}`),
  ]);
}

/** The links of a tree: between its routers, and down to the leaves of the workers. */
function linksOf(model, job, tree) {
  const keys = new Set(tree.branches.filter(({ parent }) => parent).map(({ router, parent }) => linkKey(router, parent)));
  const members = new Set(tree.branches.map(({ router }) => router));
  for (const leaf of job.leaves) {
    if (members.has(leaf)) continue;
    const up = (model.of.get(leaf) ?? []).find((link) => members.has(link.a) || members.has(link.b));
    if (up) keys.add(up.key);
  }
  return [...keys].map((key) => model.links.get(key)).filter(Boolean);
}
