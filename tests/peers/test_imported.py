"""A fabric of FRR or BIRD becomes one of fared: files are imported, kernels have the same routes.

The small fabric runs both protocols at once. With ``FARED_TEST_SOAK=1`` FRR runs 4x8 from the same
files first, with one protocol after the other, then BIRD, and every kernel of fared must have the
next hops of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from click.testing import CliRunner

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import Hop
from fared.extensions.lab.kinds import bird, frr
from fared.management.api.client import ControlClient
from fared.management.cli.main import main
from tests.peers.peers import await_all_paths, fared
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers]

KEYS = {
    "ospfd": " ip ospf authentication message-digest\n ip ospf message-digest-key 7 md5 fabric\n"
    " ip ospf bfd\n",
    "isisd": " isis password md5 fabric\n isis bfd\n",
}
NETWORK = {"ospfd": "ip ospf network", "isisd": "isis network"}


def topology(spines: int, leaves: int, kind: str, proto: str, startup: str = "") -> str:
    """A Clos fabric with a host at each leaf; ``startup``: the ending of each router's file."""
    routers = [f"S{i + 1}" for i in range(spines)] + [f"L{i + 1}" for i in range(leaves)]
    lines = [
        "name: imported",
        "topology:",
        f"  defaults: {{labels: {{fared-lab.rate: 100M, fared-lab.protocol: {proto}}}}}",
        "  nodes:",
    ]
    for name in routers:
        file = f", startup-config: {name}.{startup}" if startup else ""
        lines.append(f"    {name}: {{kind: {kind}{file}}}")
    lines += [f"    h{i + 1}: {{kind: linux}}" for i in range(leaves)]
    lines.append("  links:")
    pairs = [(f"S{s + 1}", f"L{i + 1}") for i in range(leaves) for s in range(spines)]
    pairs += [(f"L{i + 1}", f"h{i + 1}") for i in range(leaves)]
    lines += [f'    - endpoints: ["{a}:{b}", "{b}:{a}"]' for a, b in pairs]
    return "\n".join(lines) + "\n"


STATIC = (
    "198.51.100.0/24",
    "192.0.2.0/24",
    "198.51.100.128/25",
    "203.0.113.0/24",
    "203.0.113.64/26",
)
"""Routes of L1, of which its filters permit the first two."""
FILTERS = """
access-list NET seq 5 deny 203.0.113.0/24
access-list NET seq 10 permit any
ip prefix-list LOW seq 20 permit 198.51.100.0/24 le 32
ip prefix-list LOW seq 10 deny 198.51.100.128/25
ip prefix-list HALF permit 198.51.100.128/25
route-map OUT permit 10
 match ip address prefix-list LOW
route-map OUT deny 15
 match ip address prefix-list HALF
route-map OUT permit 20
router ospf
 redistribute kernel route-map OUT
 distribute-list NET out kernel
"""


def frr_conf(plan: NodePlan, daemons: tuple[str, ...]) -> str:
    """The integrated file of a router, with keys and BFD on links to routers."""
    lines = [f"hostname {plan.name}", "frr version 8.4.4"]
    for port in plan.ports:
        lines += [f"interface {port.name}", f" ip address {port.address}"]
    lines += ["interface lo", f" ip address {plan.router_id}/32"]
    for daemon in daemons:
        for line in {"ospfd": frr._ospfd, "isisd": frr._isisd}[daemon](plan):
            lines.append(line)
            if line.strip().startswith(NETWORK[daemon]):
                lines.append(KEYS[daemon].rstrip("\n"))
    filters = FILTERS if plan.name == "L1" and "ospfd" in daemons else ""
    return "\n".join(lines) + "\n" + filters


def bird_conf(plan: NodePlan) -> str:
    """The file of a router, with keys and BFD on links to routers; L1 exports with a filter."""
    link = 'type ptp; authentication cryptographic; password "fabric" { id 7; }; bfd yes;'
    text = "\n".join(bird._config(plan)).replace("type ptp;", link)
    if plan.name == "L1":
        routes = " ".join(f"route {prefix} blackhole;" for prefix in STATIC)
        text = text.replace(
            "export none;",
            "export filter { if net ~ [ 198.51.100.128/25+ ] then reject;"
            " if source = RTS_STATIC && net ~ [ 198.51.100.0/24+, 192.0.2.0/24 ] then accept; };",
        )
        text += f"\nprotocol static {{ ipv4; {routes} }}"
    return f"{text}\nprotocol bfd {{ }}\n"


def bird_bgp_conf(plan: NodePlan) -> str:
    """The file of a router, with keys, GTSM and a template; L1 has static networks and a filter."""
    more = '  password "fabric"; ttl security on;\n}\nprotocol bgp'
    text = "\n".join(bird._config(plan)).replace("}\nprotocol bgp", more, 1)
    if plan.name == "L1":
        routes = " ".join(f"route {prefix} unreachable;" for prefix in STATIC)
        told = "net ~ [ 10.0.0.0/8+, 198.51.100.0/24, 192.0.2.0/24 ]"
        text = f"protocol static nets {{ ipv4; {routes} }}\n" + text.replace(
            'source = RTS_BGP || proto = "own";',
            f'{told} && (source = RTS_BGP || proto = "own" || proto = "nets");',
        )
    return text


def write_files(
    directory: Path, plans: list[NodePlan], fabric: Path, conf: Callable[[NodePlan], str]
) -> None:
    """Write ``NAME.conf`` of each router, and ``NAME.yaml`` imported from it."""
    for plan in plans:
        source = directory / f"{plan.name}.conf"
        source.write_text(conf(plan))
        done = CliRunner().invoke(main, ["config", "import", str(source)])
        assert done.exit_code == 0, done.stderr
        place = fabric / "nodes" / plan.name
        of_lab = f"state-directory: {place}\napi: {{socket: {place}/fared.sock}}\n"
        (directory / f"{plan.name}.yaml").write_text(done.stdout + of_lab)


@contextmanager
def running(directory: Path, text: str) -> Iterator[Fabric]:
    file = directory / "topology.clab.yml"
    file.write_text(text)
    fabric = Fabric.from_file(file, directory=directory / "state")
    try:
        fabric.build()
        fabric.start()
        yield fabric
    finally:
        fabric.stop()


def next_hops(fabric: Fabric, proto: str) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Interfaces and gateways by router and prefix, of routes with gateways."""
    found = {}
    for plan in fabric.plan.routers:
        view = fabric.view(plan.name)
        routes = view.routes() | (view.routes6() if proto == "isis" else {})
        for prefix, hops in routes.items():
            if gateways := [hop for hop in hops if hop.gateway]:
                found[plan.name, prefix] = frozenset((h.interface, _side(h)) for h in gateways)
    return found


def _side(hop: Hop) -> str:
    """The gateway; a link-local one is that of the interface, and differs from run to run."""
    gateway = str(hop.gateway)
    return "" if ip_address(gateway).is_link_local else gateway


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for parent in (tmp_path, tmp_path.parent):
        parent.chmod(0o755)  # FRR's daemons are not root
    return tmp_path


def test_a_fabric_with_imported_files_has_all_paths_over_both_protocols(directory: Path):
    planned = directory / "planned.clab.yml"
    planned.write_text(topology(2, 2, "fared", "isis"))
    plans = Fabric.from_file(planned, directory=directory / "planned").plan.routers
    daemons = ("ospfd", "isisd")
    write_files(directory, plans, directory / "state", lambda plan: frr_conf(plan, daemons))
    with running(directory, topology(2, 2, "fared", "isis", "yaml")) as fabric:
        await_all_paths(fabric)  # IPv4 by OSPF, which is preferred, and IPv6 by IS-IS
        for plan in fabric.plan.routers:
            client = fared(fabric.node(plan.name))
            wait_for(lambda c=client: states(c) == WHOLE, 20.0, lambda c=client: f"{states(c)}")


WHOLE = {("Full", "Up"): 2, ("Up", "Up, Up"): 2}
"""Neighbors of OSPF, and those of IS-IS with sessions in both families."""


def states(client: ControlClient) -> dict[tuple[str, str], int]:
    """How many neighbors have a state, and sessions of BFD in these states."""
    rows = client.request("show neighbors")["neighbors"]
    bfd = [row["bfd"] if isinstance(row["bfd"], dict) else {"ipv4": row["bfd"]} for row in rows]
    found = zip(rows, bfd, strict=True)
    return Counter((row["state"], ", ".join(map(str, of.values()))) for row, of in found)


def test_a_fabric_of_imported_bgp_has_the_next_hops_of_bird(directory: Path):
    """With keys, GTSM, a template, static networks and a filter."""
    kept = compare(directory, (2, 2), "bird", "bgp", bird_bgp_conf)
    assert kept & set(STATIC) == set(STATIC[:2])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "proto"),
    [("frr", "ospf"), ("frr", "isis"), ("bird", "ospf"), ("bird", "bgp")],
    ids=["frr-ospf", "frr-isis", "bird-ospf", "bird-bgp"],
)
def test_fared_has_the_next_hops_of_the_other_make_in_every_kernel_of_4x8(
    kind: str, proto: str, directory: Path
):
    def conf(plan: NodePlan) -> str:
        if kind == "frr":
            return frr_conf(plan, ({"ospf": "ospfd", "isis": "isisd"}[proto],))
        return bird_bgp_conf(plan) if proto == "bgp" else bird_conf(plan)

    kept = compare(directory, (4, 8), kind, proto, conf)
    assert proto == "isis" or kept & set(STATIC) == set(STATIC[:2])


def compare(
    directory: Path, size: tuple[int, int], kind: str, proto: str, conf: Callable[[NodePlan], str]
) -> set[str]:
    """Run a fabric of the other make, then fared from its files; return the prefixes of both."""
    planned = directory / "planned.clab.yml"
    planned.write_text(topology(*size, kind, proto))
    plans = Fabric.from_file(planned, directory=directory / "planned").plan.routers
    theirs, ours = directory / kind, directory / "fared"
    for place in (theirs, ours):
        place.mkdir()
        write_files(place, plans, place / "state", conf)
    with running(theirs, topology(*size, kind, proto, "conf")) as fabric:
        if kind == "frr":
            add_static(fabric)
        await_all_paths(fabric, 90.0)
        if proto != "isis":
            wait_for(lambda: static_known(fabric), 60.0, "all routers have the routes of L1")
        wanted = next_hops(fabric, proto)
    with running(ours, topology(*size, "fared", proto, "yaml")) as fabric:
        if proto != "bgp":
            add_static(fabric)
        await_all_paths(fabric, 90.0)
        wait_for(
            lambda: next_hops(fabric, proto) == wanted,
            30.0,
            lambda: f"{kind}'s next hops, but {next_hops(fabric, proto).items() ^ wanted.items()}",
        )
    return {prefix for _, prefix in wanted}


def add_static(fabric: Fabric) -> None:
    """Add the routes of L1, as an administrator does."""
    for prefix in STATIC:
        fabric.node("L1").netns.ip("route", "add", "blackhole", prefix, "proto", "static")


def static_known(fabric: Fabric) -> bool:
    """Whether all other routers have the routes of L1 over all paths to it."""
    (first,) = (plan for plan in fabric.plan.routers if plan.name == "L1")
    tables = [fabric.view(p.name).routes() for p in fabric.plan.routers if p is not first]
    own = f"{first.router_id}/32"
    return all(table.get(prefix) == table[own] for table in tables for prefix in STATIC[:2])
