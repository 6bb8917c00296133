"""What the lab does not do of a file that was written for containerlab: a line for each key."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from fared.extensions.lab.topology_file import File, NodeConfig

_READ = {"kind", "group", "labels", "sysctls"}
_SILENT = {"image", "type", "license", "position", "image-pull-policy", "runtime", "id"}
"""Choose a container, or are for drawings."""
_WHY = {
    "binds": "there are no containers to mount files in",
    "exec": "commands are not run",
    "env": "programs here do not read it",
    "env-files": "programs here do not read it",
    "ports": "no port of this machine is forwarded",
    "stages": "all nodes start together",
    "startup-delay": "all nodes start together",
    "wait-for": "all nodes start together",
    "startup-config": "another program runs",
    **dict.fromkeys(("mgmt-ipv4", "mgmt_ipv4"), "there is no management network"),
    **dict.fromkeys(("mgmt-ipv6", "mgmt_ipv6"), "there is no management network"),
    "network-mode": "each node has a network namespace of its own",
    "cmd": "routers run their daemon, hosts nothing",
    "entrypoint": "routers run their daemon, hosts nothing",
}
_OTHER = "of containers only"
_TOLD = 6


def notes(
    file: File,
    nodes: Mapping[str, NodeConfig],
    configured: Container[str],
    *,
    keeps_addresses: bool,
) -> Iterator[str]:
    """Yield a line for each key that the lab passes over, with the nodes that have it.

    ``configured``: the nodes whose ``startup-config`` is used.
    """
    if "mgmt" in (file.model_extra or {}):
        yield "ignored: mgmt: there is no management network"
    having: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for key, value in node.given.items():
            read = key in _READ or (key == "startup-config" and name in configured)
            if not read and key not in _SILENT and value not in (None, [], {}):
                having.setdefault(key, []).append(name)
    why = dict(_WHY)
    if keeps_addresses:
        why["startup-config"] = "another program runs, only addresses of FRR are read"
        why["exec"] = "only addresses are read, other commands are not run"
        why["binds"] = "only addresses in frr.conf are read"
    rest = [key for key in having if key not in why]
    for key, names in having.items():
        if key in why:
            yield f"ignored: {key} of {listed(names)}: {why[key]}"
    if rest:
        yield f"ignored: {', '.join(rest)}: {_OTHER}"


def listed(names: Iterable[str]) -> str:
    """Return names for a line: all of a few, or the first of many and how many follow."""
    known = list(names)
    if len(known) <= _TOLD:
        return ", ".join(known)
    return f"{', '.join(known[: _TOLD - 1])} and {len(known) - _TOLD + 1} more"
