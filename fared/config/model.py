"""The configuration file as typed, frozen models, with the defaults that users are promised.

Keys follow the leaf names of ietf-ospf (RFC 9129) in kebab-case. Values are held in the units
of the engines: bytes/s, seconds, ratios, ids as integers. ``Config.document()`` writes them back
in the form of the file.

Keys of ``interfaces`` sections are names or globs. For any interface the most exact key counts,
and counts wholly: an exact name before any glob, a longer glob before a shorter one.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from fared.config import values
from fared.config.authentication import OspfAuthentication
from fared.config.flooding import FloodingOptions
from fared.config.isis import Isis, IsisInterface
from fared.config.redistribute import Redistribute
from fared.config.secrets import COMPARING
from fared.config.section import Section
from fared.config.spf import SpfBackoff
from fared.core.ids import AreaId
from fared.ospf.packet.extended_prefix import PATH_CAPACITY

_DEAD_INTERVAL_HELLOS = 4
_LAST_METRIC = 0xFFFFFE
"""One below LSInfinity (RFC 2328 appendix B)."""


def _empty_mapping(value: object) -> object:
    return {} if value is None else value


EmptyIsMapping = BeforeValidator(_empty_mapping)


class LinkFacts(Section):
    """What the operator knows of a link. ``bandwidth`` None: ask the kernel (auto)."""

    bandwidth: values.Bandwidth = None


class OspfInterface(Section):
    """OSPF on one interface, or on all that a glob matches (RFC 2328 §C.3)."""

    network_type: Literal["point-to-point", "broadcast"] = "point-to-point"
    priority: Annotated[int, values.Whole(0, 255)] = 1
    cost: Annotated[int, values.Whole(1, 65535)] = 10
    hello_interval: values.WholeSeconds = 1
    dead_interval: values.WholeSeconds = 4
    retransmit_interval: values.Seconds = 5.0
    mtu_ignore: bool = False
    passive: bool = False
    authentication: OspfAuthentication | None = None

    @model_validator(mode="before")
    @classmethod
    def _dead_follows_hello(cls, data: object) -> object:
        """Four hellos (RFC 2328 §C.3), where only the hello interval is given."""
        if isinstance(data, dict) and "hello-interval" in data and "dead-interval" not in data:
            try:
                hello = values.parse_whole_seconds(data["hello-interval"])
            except (ValueError, TypeError):
                return data  # the field's own validator reports it
            return {**data, "dead-interval": min(hello * _DEAD_INTERVAL_HELLOS, 65535)}
        return data

    @model_validator(mode="after")
    def _dead_after_hello(self) -> OspfInterface:
        if self.dead_interval <= self.hello_interval:
            raise values.expected(
                f"more than hello-interval ({self.hello_interval})", field="dead-interval"
            )
        return self


class OspfRange(Section):
    """An address range of an area (RFC 2328 §C.2). ``cost`` None: the greatest inside."""

    cost: Annotated[int, values.Whole(0, _LAST_METRIC)] | None = None
    advertise: bool = True


class OspfArea(Section):
    """One area and the interfaces in it. ``summary`` and ``default_cost`` are of stub areas."""

    type: Literal["normal", "stub"] = "normal"
    summary: bool = True
    default_cost: Annotated[int, values.Whole(0, _LAST_METRIC)] = 1
    ranges: Annotated[dict[values.PrefixText, OspfRange], EmptyIsMapping] = Field(default={})
    interfaces: Annotated[dict[values.InterfaceGlob, OspfInterface], EmptyIsMapping] = Field(
        default={}
    )

    @model_validator(mode="after")
    def _only_stub_areas_are_closed(self) -> OspfArea:
        if not self.summary and self.type != "stub":
            raise values.expected("true unless the area is of type stub", field="summary")
        return self


class Ospf(Section):
    """OSPFv2. ``areas`` in the order of the file, by id."""

    areas: Annotated[dict[values.AreaText, OspfArea], EmptyIsMapping] = Field(default={})
    preference: Annotated[int, values.Whole(1, 255)] = 110
    max_paths: Annotated[int, values.Whole(1, 1024)] = 64
    stub_router: bool = False
    path_capacity_sub_tlv: Annotated[int, values.Whole(0, 65535)] = PATH_CAPACITY
    redistribute: Redistribute = Redistribute()
    flooding: FloodingOptions = FloodingOptions()
    spf: SpfBackoff = SpfBackoff()


class Adaptive(Section):
    """Weighing. Times in seconds, ``time_constant`` 0 undamped; thresholds are ratios 0..1.

    ``flows`` None: many, weights are in proportion.
    """

    enabled: bool = True
    metric: Literal["capacity", "available", "equalise"] = "capacity"
    flows: Annotated[int, values.Whole(1, 1_000_000)] | None = None
    measure_period: values.Period = 1.0
    time_constant: values.Duration = 20.0
    announce_threshold: values.Ratio = 0.03
    dead_band: values.Ratio = 0.05
    floor: values.Ratio = 0.02


class Fib(Section):
    """What is ours in the kernel. ``protocol`` 0..4 belong to the kernel and to static routes."""

    table: values.RouteTable = 254
    protocol: Annotated[int, values.Whole(5, 255)] = 201
    metric: Annotated[int, values.Whole(0, 0xFFFFFFFF)] = 20
    group_type: Literal["hash-threshold", "resilient"] = "hash-threshold"
    sysctls: Literal["set", "check", "ignore"] = "set"
    buckets: Annotated[int, values.Whole(1, 65535)] = 512
    on_exit: Literal["withdraw", "keep"] = "withdraw"


class Api(Section):
    """Where the daemon answers. ``http`` None: off."""

    socket: Annotated[str, Field(min_length=1)] = "/run/fared/fared.sock"
    http: values.HttpListen = values.HttpAddress("127.0.0.1", 9547)


class Log(Section):
    """Logging. ``auto``: JSON under systemd, text elsewhere."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class Config(Section):
    """The whole file.

    ``router_id`` None: the highest loopback address; ``hostname`` None: the kernel's. Both are
    resolved by the daemon.
    """

    router_id: values.RouterIdText | None = None
    hostname: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    interfaces: Annotated[dict[values.InterfaceGlob, LinkFacts], EmptyIsMapping] = Field(default={})
    ospf: Annotated[Ospf | None, EmptyIsMapping] = None
    isis: Annotated[Isis | None, EmptyIsMapping] = None
    adaptive: Adaptive = Adaptive()
    fib: Fib = Fib()
    api: Api = Api()
    log: Log = Log()

    def ospf_interface(self, name: str) -> tuple[AreaId, OspfInterface] | None:
        """Return area and settings of an interface, None where OSPF does not run."""
        if self.ospf is None:
            return None
        entries = {
            key: (AreaId(area_id), settings)
            for area_id, area in self.ospf.areas.items()
            for key, settings in area.interfaces.items()
        }
        key = most_exact(entries, name)
        return None if key is None else entries[key]

    def isis_interface(self, name: str) -> IsisInterface | None:
        """Return the settings of an interface, None where IS-IS does not run."""
        if self.isis is None:
            return None
        key = most_exact(self.isis.interfaces, name)
        return None if key is None else self.isis.interfaces[key]

    def interface_bandwidth(self, name: str) -> float | None:
        """Return the configured bandwidth in bytes/s, None for auto."""
        key = most_exact(self.interfaces, name)
        return None if key is None else self.interfaces[key].bandwidth

    def document(self, *, comparing: bool = False) -> dict[str, Any]:
        """Return the configuration with all defaults in the form of the file, secrets hidden.

        ``comparing``: with the secrets, for ``changes`` only.
        """
        document = self.model_dump(
            mode="json", by_alias=True, exclude_none=False, context=COMPARING if comparing else None
        )
        return {key: value for key, value in document.items() if value is not None}


def most_exact(keys: Iterable[str], name: str) -> str | None:
    """Return the key that counts for interface ``name``: itself, else the longest glob."""
    best: str | None = None
    for key in keys:
        if key == name:
            return key
        if values.is_glob(key) and fnmatch.fnmatchcase(name, key):
            best = key if best is None or len(key) > len(best) else best
    return best


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the file, for editors; defaults stand as a file writes them."""
    schema = Config.model_json_schema(by_alias=True, mode="validation")
    sections = {model.__name__: model for model in Section.__subclasses__()}
    for name, definition in schema["$defs"].items():
        if name not in sections:
            continue
        written = sections[name].model_construct().model_dump(mode="json", by_alias=True)
        for key, entry in definition["properties"].items():
            if "default" in entry and key in written:
                entry["default"] = written[key]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
