"""Files of other programs: refused by name, with what makes a topology file of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from fared.extensions.lab.errors import TopologyError

_PAGE = "docs/topologies.md, Files that you have"
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)

_Keys = Mapping[str, Any]

_NETLAB = (
    "a netlab topology: `netlab create -p clab` in its directory writes clab.yml, which"
    " `fared-lab up clab.yml --as fared` takes"
)
_DOCUMENTS: Final[tuple[tuple[Callable[[_Keys], bool], str], ...]] = (
    (
        lambda keys: "kind" in keys and "apiVersion" in keys,
        "a Kubernetes object: that of clabernetes has a topology as text in its spec",
    ),
    (
        lambda keys: "project_id" in keys or keys.get("type") == "topology",
        "a project of GNS3, whose nodes are disk images",
    ),
    (
        lambda keys: "lab" in keys and isinstance(keys.get("nodes"), list),
        "a lab of Cisco Modeling Labs, whose nodes are disk images",
    ),
    (
        lambda keys: isinstance(keys.get("routers"), list | dict) and "topology" not in keys,
        "a topology of vrnetlab's topology machine",
    ),
    (
        lambda keys: _items_with(keys.get("links"), "a_node", "z_node"),
        "a topology of KNE (Kubernetes Network Emulation)",
    ),
    (
        lambda keys: "Duts" in keys,
        "a topology of containerlab before 0.8, which no present one reads",
    ),
    (
        lambda keys: "services" in keys and "topology" not in keys,
        "a Docker Compose file: it has services and networks, but no links",
    ),
    (
        lambda keys: "nodes" in keys and "topology" not in keys,
        _NETLAB,
    ),
)
"""By keys of the document: the first that holds."""

_TEXTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"^\s*<\?xml|^\s*<lab\b"), "a lab of EVE-NG, whose nodes are disk images"),
    (
        re.compile(r"^\s*a_node\s*:.*^\s*z_node\s*:", re.MULTILINE | re.DOTALL),
        "a topology of KNE (Kubernetes Network Emulation)",
    ),
    (re.compile(r'^\w+\[\d+\]="?\w+"?\s*$', re.MULTILINE), "a lab.conf of Kathara"),
    (re.compile(r"^(from|import) mininet", re.MULTILINE), "a program for Mininet"),
    (re.compile(r"^FROM \S+", re.MULTILINE), "a Dockerfile, as those of vrnetlab"),
)
"""By the text, before it is read as YAML."""


def _items_with(items: object, *keys: str) -> bool:
    return isinstance(items, list) and any(
        isinstance(item, dict) and all(key in item for key in keys) for item in items
    )


def _refuse(path: Path, what: str) -> None:
    raise TopologyError(
        f"{path}: this is {what}; expected a topology file of containerlab ({_PAGE})"
    )


def refuse_path(path: Path) -> None:
    """Raise TopologyError for a file that only a template engine reads."""
    if path.suffix in {".gotmpl", ".j2", ".jinja2"}:
        _refuse_template(path)


def _refuse_template(path: Path) -> None:
    _refuse(path, "a template: give the file that its program writes, as gomplate does")


def refuse_template(path: Path, text: str) -> None:
    """Raise TopologyError for a text that is no YAML because it is a template."""
    if _TEMPLATE.search(text):
        _refuse_template(path)


def refuse_text(path: Path, text: str) -> None:
    """Raise TopologyError for a text that is known to be another program's."""
    for pattern, what in _TEXTS:
        if pattern.search(text) and not re.search(r"^topology\s*:", text, re.MULTILINE):
            _refuse(path, what)


def refuse_document(path: Path, document: object) -> None:
    """Raise TopologyError for a document that is known to be another program's."""
    if not isinstance(document, dict):
        return
    for holds, what in _DOCUMENTS:
        if holds(document):
            _refuse(path, what)
