"""Tables from topology to routes: graph, SPF, routes, weights, explanation."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    ROUTE_TYPES,
    Json,
    Renderer,
    area_title,
    by_protocol,
    count,
    emit,
    gateway,
    heading,
    plural_list,
    table,
)

_FIRST_HOPS_SHOWN = 4
_INTERFACES_SHOWN = 8


# -- topology and SPF ------------------------------------------------------------------------


def _topology(document: Json, out: Console, _now: float) -> None:
    for index, area in enumerate(document["areas"]):
        names = {n["id"]: human.router(n["id"], n["hostname"]) for n in area["nodes"]}
        nodes, links = len(area["nodes"]), len(area["links"])
        title = f"{area_title(area['area'])}, {count(nodes, 'node')}, {count(links, 'link')}"
        heading(out, title, first=index == 0)
        grid = table("Node", "Id", ">Prefixes", "")
        for node in area["nodes"]:
            grid.add_row(names[node["id"]], node["id"], str(node["prefixes"]), human.kind(node))
        emit(out, grid)
        out.print()
        families = {family for link in area["links"] for family in link["families"]}
        grid = table("From", "To", ">Metric", ">Capacity", ">Available", "")
        for link in area["links"]:
            grid.add_row(
                names.get(link["from"], link["from"]),
                names.get(link["to"], link["to"]),
                str(link["metric"]),
                human.bandwidth(link["capacity"]),
                human.bandwidth(link["available"]),
                _remark(link, families),
            )
        emit(out, grid)


def _remark(link: Json, families: set[str]) -> Text:
    """Return exceptional properties: one-way, or not for every family."""
    text = Text("" if link["two_way"] else "one way", style="yellow")
    if len(link["families"]) < len(families):
        text.append(f"{' ' if text else ''}{link['families'][0]} only", style="dim")
    return text


def _spf(document: Json, out: Console, now: float) -> None:
    if "log" in document:
        _spf_log(document, out, now)
        return
    for _, nodes in by_protocol(document["nodes"], out):
        _spf_tree(nodes, out)


def _spf_tree(nodes: list[Json], out: Console) -> None:
    """Print the shortest paths of one protocol; families are named if their paths differ."""
    names = {n["id"]: human.router(n["id"], n["hostname"]) for n in nodes}
    families = {family for node in nodes for family in node["families"]}
    grid = table("Node", "Id", "Area", ">Metric", "~First hops")
    for node in nodes:
        hops = [names.get(hop, hop) for hop in node["first_hops"]]
        shared = node["families"]
        only = f" ({shared[0]} only)" if len(shared) < len(families) else ""
        grid.add_row(
            names[node["id"]],
            node["id"],
            node["area"],
            str(node["metric"]),
            plural_list(hops, _FIRST_HOPS_SHOWN) + only,
        )
    emit(out, grid)


def because(causes: list[str]) -> str:
    """Return the first cause and the number of others; the JSON has all."""
    if not causes:
        return ""
    more = len(causes) - 1
    return f"{causes[0]} (+{more} more)" if more else causes[0]


def _spf_log(document: Json, out: Console, now: float) -> None:
    grid = table(">Ago", "What", ">Took", ">Nodes", ">Routes", "~Because")
    for run in document["log"]:
        grid.add_row(
            human.duration(now - run["at"]),
            "SPF" if run["spf_ran"] else "capacity",
            human.duration(run["duration"]),
            str(run["nodes"]),
            str(run["routes"]),
            because(run["causes"]),
        )
    emit(out, grid)
    out.print(Text(f"back-off: {document['backoff']}", style="dim"))


# -- routes and weights ----------------------------------------------------------------------


def _routes(document: Json, out: Console, _now: float) -> None:
    """Print a table for each family, since the lengths of addresses differ much."""
    families: dict[bool, list[Json]] = {}
    for route in document["routes"]:
        families.setdefault(":" in route["prefix"], []).append(route)
    if not families:
        out.print("none")
    for index, found in enumerate(families.values()):
        if index:
            out.print()
        _route_table(found, out)


def _route_table(routes: list[Json], out: Console) -> None:
    columns = ("Prefix", "Type", ">Metric", "Next hop", "Interface", ">Weight", ">Share", ">Path")
    grid = table(*columns)
    for route in routes:
        head = (
            route["prefix"],
            ROUTE_TYPES.get(route["type"], route["type"]),
            str(route["metric"]),
        )
        if route["connected"]:
            what = "redistributed" if route["redistributed"] else "connected"
            grid.add_row(*head, Text(what, style="dim"))
            continue
        if route.get("discard"):
            grid.add_row(*head, Text("discard", style="dim"))
            continue
        for index, hop in enumerate(route["nexthops"]):
            grid.add_row(
                *(head if index == 0 else ("", "", "")),
                _via(hop),
                hop["interface"],
                str(hop["weight"]),
                human.share(hop["share"]),
                human.bandwidth(hop["capacity"]),
            )
    emit(out, grid)


def _via(hop: Json) -> str:
    """Return a neighbor's name rather than a link-local address; the JSON has both."""
    address = hop["address"]
    if address is not None and address.startswith("fe80:"):
        return human.router(hop["neighbor"], hop["hostname"])
    return gateway(hop)


def _weights(document: Json, out: Console, _now: float) -> None:
    flows = document.get("flows")
    leaning = "" if flows is None else f", skewed away from small paths for {flows} flows"
    out.print(Text(f"weights follow: {document['metric']}{leaning}", style="dim"))
    loop = document.get("adaptation")
    if loop is not None:
        damping = (
            f"time constant {loop['time_constant']:g} s" if loop["time_constant"] else "undamped"
        )
        out.print(Text(f"loop delay {loop['loop_delay']:g} s, {damping}", style="dim"))
    for area in document.get("announcements", ()):
        out.print(Text(_announcements(area), style="dim"))
    for vector in document["vectors"]:
        more = vector["prefixes"] - len(vector["examples"])
        title = ", ".join(vector["examples"]) + (f" and {more} more" if more else "")
        granularity = vector.get("granularity", "flow")
        heading(out, title if granularity == "flow" else f"{title}, by {granularity}")
        grid = table(
            "Neighbor", "Interface", ">Path", ">Weight", ">Share", ">Wanted", ">Error", ">ECMP"
        )
        for hop in vector["members"]:
            grid.add_row(
                human.router(hop["neighbor"], hop["hostname"]),
                hop["interface"],
                human.bandwidth(hop["capacity"]),
                str(hop["weight"]),
                human.share(hop["share"]),
                human.share(hop["wanted_share"]),
                human.share(hop["error"]),
                human.share(hop["ecmp_share"]),
            )
        emit(out, grid)
        if vector["quantization_error"]:
            lost = human.share(vector["quantization_error"])
            out.print(Text(f"{lost} of the throughput lost to integer weights", style="dim"))
        if vector.get("adaptation") is not None:
            _adaptation(vector["members"], vector["adaptation"], out)


def _announcements(area: Json) -> str:
    """Describe the budget of announced loads in an area, and this router's share."""
    text = (
        f"{area['protocol']} {area['area']}: {area['share']:.3g} of {area['budget']:g} "
        f"announcements/s ({area['own_ends']} of {area['all_ends']} link ends)\n"
        f"  threshold {human.share(area['threshold'])}"
    )
    if area["averaging"]:
        text += f", loads averaged over {area['averaging']:.3g} s"
    if area["deferred"]:
        text += f", {area['deferred']} deferred"
    return text + (", joining" if area["joining"] else "")


def _adaptation(hops: list[Json], adaptation: Json, out: Console) -> None:
    """Print target shares, present shares, and programmed weights."""
    names = {(hop["interface"], hop["address"]): hop for hop in hops}
    grid = table("Neighbor", "Interface", ">Target", ">Relaxed", ">Programmed")
    for member in adaptation["members"]:
        hop = names.get((member["interface"], member["address"]))
        grid.add_row(
            human.router(hop["neighbor"], hop["hostname"]) if hop else "",
            member["interface"],
            *(human.share(member[share]) for share in ("target", "relaxed", "programmed")),
        )
    emit(out, grid)
    gain = adaptation["loop_gain"]
    shown = "without bound" if gain is None else f"{gain:.2f}"
    why = adaptation["fallback"]
    note = f", back to capacities: {why}" if why else ""
    out.print(Text(f"loop gain {shown}{note}", style="dim"))


def _explain(document: Json, out: Console, now: float) -> None:
    # The type of an IS-IS route contains the level.
    area = f", {area_title(document['area']).lower()}" if document["area"] else ""
    area = "" if document["area"] == document["type"] else area
    to = ", ".join(human.router(d["id"], d["hostname"]) for d in document["destinations"])
    heading(out, document["prefix"], first=True)
    out.print(f"{document['type']}{area}, metric {document['metric']}, to {to or 'this router'}")
    out.print(f"\n{document['summary']}")
    if document["nexthops"]:
        out.print()
        _explain_hops(document, out)
    change = document["last_change"]
    if change is not None:
        ago = human.duration(now - change["at"])
        out.print(Text(f"\nlast changed {ago} ago: {'; '.join(change['causes'])}", style="dim"))


def _explain_hops(document: Json, out: Console) -> None:
    grid = table(
        "Neighbor", "Interface", ">Link", ">Path", ">Weight", ">Share", ">ECMP", "Limited by"
    )
    for hop in document["nexthops"]:
        moved = hop["share"] / hop["ecmp_share"] if hop["ecmp_share"] else 1.0
        style = "yellow" if moved < 0.95 else "green" if moved > 1.05 else ""
        grid.add_row(
            human.router(hop["neighbor"], hop["hostname"]),
            hop["interface"],
            human.bandwidth(hop["bandwidth"]),
            human.bandwidth(hop["capacity"]),
            str(hop["weight"]),
            Text(human.share(hop["share"]), style=style),
            human.share(hop["ecmp_share"]),
            _limit(hop["limiting_link"]),
        )
    emit(out, grid)
    out.print()
    reasons: dict[str, list[str]] = {}
    for hop in document["nexthops"]:
        reasons.setdefault(hop["reason"], []).append(hop["interface"])
    for reason, interfaces in reasons.items():
        line = Text(plural_list(interfaces, _INTERFACES_SHOWN), style="bold")
        line.append(f": {reason}", style="not bold")
        out.print(line)


def _limit(link: Json | None) -> str:
    if link is None:
        return human.DASH
    if link["from"] == link["to"]:
        return f"beyond {human.router(link['from'], link['from_hostname'])}"
    ends = (("from", "from_hostname"), ("to", "to_hostname"))
    return " > ".join(human.router(link[end], link[name]) for end, name in ends)


def _path(document: Json, out: Console, _now: float) -> None:
    source = human.router(document["source"], document["source_hostname"])
    target = human.router(document["destination"], document["destination_hostname"])
    heading(out, f"{source} to {target}", first=True)
    out.print(f"metric {document['metric']}, capacity {human.bandwidth(document['capacity'])}\n")
    if not document["edges"]:
        out.print("the path continues beyond the database of this router")
        return
    grid = table("From", "To", ">Metric", ">Capacity", ">Available", ">Share")
    last = None
    for edge in document["edges"]:
        name = human.router(edge["from"], edge["from_hostname"])
        grid.add_row(
            "" if name == last else name,
            human.router(edge["to"], edge["to_hostname"]),
            str(edge["metric"]),
            human.bandwidth(edge["capacity"]),
            human.bandwidth(edge["available"]),
            human.share(edge["share"]),
        )
        last = name
    emit(out, grid)


RENDERERS: dict[str, Renderer] = {
    "fared-topology/1": _topology,
    "fared-spf/1": _spf,
    "fared-routes/1": _routes,
    "fared-weights/1": _weights,
    "fared-explain/1": _explain,
    "fared-path/1": _path,
}
