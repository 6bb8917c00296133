"""The pages name the settings that the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fared.config.bier import BierRouter
from fared.config.isis import Isis
from fared.config.model import Api, Config, Fib, Ina, Ospf
from fared.config.section import Reload, Section
from fared.config.shapes import fields_of
from fared.kernel.sysctl import wanted_sysctls

_OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"


def _sections(kind: type[Section] = Section) -> Iterator[type[Section]]:
    for below in kind.__subclasses__():
        yield below
        yield from _sections(below)


def _restart(kind: type[Section]) -> set[str]:
    return {key for key, field in fields_of(kind).items() if field.reload is Reload.RESTART}


def test_operating_lists_every_setting_that_needs_a_restart() -> None:
    text = _OPERATING.read_text().partition("\n## Reload\n")[2].partition("\n## ")[0]
    items = re.findall(r"^- (.*?[;.])$", text, re.MULTILINE | re.DOTALL)
    daemon, isis, others = (set(re.findall(r"`([^`]+)`", item)) for item in items)
    own = {f"ospf: {key}" for key in _restart(Ospf)}
    assert daemon == _restart(Config) - {"ospf", "isis", "bier"} | own | {"ospf:", "isis:", "bier:"}
    assert isis == _restart(Isis) | {"isis:"}
    named = {"fib:", "api:", "ina:"} | _restart(BierRouter) | {"bier:"}
    assert others == fields_of(Fib).keys() - _restart(Fib) | _restart(Api) | named
    assert fields_of(Ina).keys() == _restart(Ina), "all of it"
    listed = {Config, Ospf, Isis, BierRouter, Fib, Api, Ina}
    assert {kind for kind in _sections() if _restart(kind)} == listed


def test_operating_lists_every_sysctl_that_fared_sets() -> None:
    wanted = wanted_sysctls(1, ["NAME"], ipv6=True)
    names = {re.sub(r"NAME|(all|default)(?=\.rp_filter)", "*", setting.name) for setting in wanted}
    assert names == set(re.findall(r"^\| (net\.\S+) \|", _OPERATING.read_text(), re.MULTILINE))
