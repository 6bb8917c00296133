"""Writes the screens of ``docs/troubleshooting.md``: ``python -m tests.docs.causes`` (root).

Two routers with one cable, and one mistake each: the page has a screen behind each of its marks,
``<!-- screen: CAUSE COMMAND -->``.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fared.extensions.lab.namespaces import Netns
from tests.live.daemons import Json, Live
from tests.waiting import wait_for

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
MARK = re.compile(r"<!-- screen: (\S+) (.*?) -->\n```\n.*?^```\n", re.DOTALL | re.MULTILINE)
LINK, FAR = "swp1", 1
_numbers = itertools.count()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Cause(NamedTuple):
    """A mistake: settings of one end that differ, commands of ip and tc before and after."""

    code: str
    """That of the link without an adjacency, at the near end; nothing: that it cannot be used."""
    near: Mapping[str, Any] = _NOTHING
    far: Mapping[str, Any] = _NOTHING
    before: Sequence[str] = ()
    """Commands before the daemons start, at the far end, or behind ``near``."""
    after: Sequence[str] = ()
    """The same when the adjacency is up; ``kill``: that daemon is killed."""
    alone: bool = False
    """Whether the far end never runs."""


def key(word: str) -> Json:
    return {"authentication": {"algorithm": "hmac-md5", "key": word}}


def ospf_key(word: str) -> Json:
    return {"authentication": {"algorithm": "hmac-sha-256", "key-id": 1, "key": word}}


def bfd(word: str) -> Json:
    algorithm = "meticulous-keyed-sha-1"
    return {
        "bfd": {
            "enabled": True,
            "strict": True,
            "authentication": {"algorithm": algorithm, "key-id": 1, "key": word},
        }
    }


_HOOK = f"{{ type filter hook egress device {LINK} priority 0; policy drop; }}"
_FIREWALL = ("nft add table netdev f", f"nft add chain netdev f o '{_HOOK}'")
_BOTH = {
    "network-type": Cause("network-type-mismatch", far={"link": {"network-type": "broadcast"}}),
    "nothing-heard": Cause("silent", alone=True),
    "stopped": Cause("stopped", after=["kill"]),
    "not-heard": Cause("not-heard", before=[f"near {command}" for command in _FIREWALL]),
    "carrier": Cause("carrier", after=[f"ip link set {LINK} down"]),
    "disabled": Cause("disabled", after=[f"near ip link set {LINK} down"]),
    "absent": Cause("absent", near={"name": "swp2"}),
    "subnet": Cause(
        "source-network",
        before=[f"ip addr flush dev {LINK}", f"ip addr add 10.0.1.1/31 dev {LINK}"],
    ),
    "bfd": Cause("bfd-down", near={"link": bfd("old")}, far={"link": bfd("new")}),
}
CAUSES: Mapping[str, Mapping[str, Cause]] = {
    "ospf": _BOTH
    | {
        "mtu": Cause("mtu-mismatch", before=[f"ip link set {LINK} mtu 1400"]),
        "hello-interval": Cause(
            "hello-interval-mismatch", far={"link": {"hello-interval": 10, "dead-interval": 40}}
        ),
        "dead-interval": Cause("dead-interval-mismatch", far={"link": {"dead-interval": 10}}),
        "key": Cause("auth-digest", near={"link": ospf_key("old")}, far={"link": ospf_key("new")}),
        "key-missing": Cause("auth-type", near={"link": ospf_key("old")}),
        "area": Cause("area-mismatch", far={"area": "0.0.0.1"}),
        "duplicate-id": Cause("duplicate-router-id", far={"router-id": "10.255.0.1"}),
        "no-address": Cause(
            "no-address",
            before=[f"near ip addr flush dev {LINK}", "near ip addr del 10.255.0.1/32 dev lo"],
        ),
    },
    "isis": _BOTH
    | {
        "mtu": Cause("mtu-mismatch", before=[f"near ip link set {LINK} mtu 9000"]),
        "mtu-too-small": Cause("mtu-too-small", before=[f"near ip link set {LINK} mtu 1400"]),
        "key": Cause("auth", near={"link": key("old")}, far={"link": key("new")}),
        "area": Cause(
            "area-mismatch",
            near={"level": "level-1"},
            far={"level": "level-1", "net": "49.0002.0102.5500.0002.00"},
        ),
        "level": Cause("level-mismatch", far={"level": "level-1"}),
        "duplicate-id": Cause("duplicate-system-id", far={"net": "49.0001.0102.5500.0001.00"}),
        "family": Cause(
            "no-common-protocol",
            near={"address-families": ["ipv4"]},
            far={"address-families": ["ipv6"]},
        ),
        "multi-topology": Cause("topology-mismatch", far={"multi-topology": True}),
    },
}


def config(protocol: str, number: int, changes: Mapping[str, Any]) -> Json:
    """The configuration of leaf1 or spine1; ``changes``: what the mistake changes."""
    differs = copy.deepcopy(dict(changes))
    links = {"lo": {"passive": True}, differs.pop("name", LINK): differs.pop("link", {})}
    made: Json = {
        "router-id": differs.pop("router-id", f"10.255.0.{number + 1}"),
        "hostname": ("leaf1", "spine1")[number],
    }
    if protocol == "ospf":
        made["ospf"] = {"areas": {differs.pop("area", "0.0.0.0"): {"interfaces": links}}}
    else:
        net = f"49.0001.0102.5500.000{number + 1}.00"
        made["isis"] = {"net": net, **differs, "interfaces": links}
    return made


@contextlib.contextmanager
def routers(protocol: str, cause: Cause, directory: Path) -> Iterator[tuple[Live, Live]]:
    """Run leaf1 and spine1 with a mistake, until it shows."""
    tag = f"{os.getpid()}-{next(_numbers)}"
    ends = [Netns.create(f"causes{tag}{name}") for name in "ab"]
    near, far = pair = [
        Live(netns, directory / f"{tag}{number}", config(protocol, number, differs))
        for number, (netns, differs) in enumerate(zip(ends, (cause.near, cause.far), strict=True))
    ]
    try:
        near.netns.batch("ip", [f"link add {LINK} type veth peer name {LINK} netns {ends[1].name}"])
        for number, one in enumerate(pair):
            addresses = {"lo": f"10.255.0.{number + 1}/32", LINK: f"10.0.0.{number}/31"}
            lines = [f"addr add {address} dev {link}" for link, address in addresses.items()]
            one.netns.batch("ip", [*lines, "link set lo up", f"link set {LINK} up"])
        _run(cause.before, near, far)
        near.start()
        if not cause.alone:
            far.start()
        if cause.after:
            wait_for(lambda: near.full() == far.full() == 1, 30, "the adjacency is up")
            _run(cause.after, near, far)
        wait_for(lambda: cause.code in _told(near), 30, f"{protocol} tells of {cause}")
        if far.alive():
            with contextlib.suppress(AssertionError):
                wait_for(lambda: "" in _told(far), 5, "the far end tells it too")
        yield near, far
    finally:
        for one in pair:
            one.kill()
            one.netns.delete()


def _run(commands: Sequence[str], near: Live, far: Live) -> None:
    for command in commands:
        if command == "kill":
            far.kill()
            continue
        at = near if command.startswith("near ") else far
        at.netns.run(shlex.split(command.removeprefix("near ")))


def _told(near: Live) -> set[str]:
    """The causes that the near end tells, and nothing, if it has told one at all."""
    found = {missing["cause"] for missing in near.show("status")["links"]["missing"]}
    neighbors = near.show("neighbors")["neighbors"]
    found |= {each["problem"]["cause"] for each in neighbors if each.get("problem")}
    return found | {""} if found - {"forming", "silent"} else found


def screen(router: Live, command: str) -> str:
    """What a command prints on 80 columns."""
    _, shown = router.on_terminal(*command.split())
    shown = shown.replace(str(router.file), "/etc/fared/fared.yaml")
    text = "\n".join(line.rstrip() for line in shown.splitlines())
    return f"{router.config['hostname']}$ fared-cli {command}\n{text.strip()}\n"


def screens(wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return what the page is to show of each cause and command (``NAME``, ``isis/NAME``)."""
    found: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in dict.fromkeys(name for name, _ in wanted):
            protocol, _, cause = name.rpartition("/")
            which = CAUSES[protocol or "ospf"][cause]
            with routers(protocol or "ospf", which, Path(directory)) as pair:
                for command in (command for each, command in wanted if each == name):
                    at, _, words = command.partition(": ")
                    router = pair[FAR] if at == "spine1" else pair[0]
                    found[name, command] = screen(router, words or command)
    return found


def filled(page: str) -> str:
    """Return the page with its screens."""
    found = screens([(mark[1], mark[2]) for mark in MARK.finditer(page)])

    def fill(mark: re.Match[str]) -> str:
        return f"<!-- screen: {mark[1]} {mark[2]} -->\n```\n{found[mark[1], mark[2]]}```\n"

    return MARK.sub(fill, page)


def main() -> None:
    """Fill the page."""
    PAGE.write_text(filled(PAGE.read_text()))


if __name__ == "__main__":
    main()
