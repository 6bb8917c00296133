// The list of documents, for people.

import { h } from "./format.js";

const paths = await (await fetch("/api/v1/")).json();
document.getElementById("documents").replaceChildren(...paths.map((path) => h("li", {}, h("a", { href: path }, path.split("/").at(-1)))));
