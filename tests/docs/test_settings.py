"""The pages name the settings that the code has."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from deb.sample import sections
from fared.config import ConfigErrors, load_text
from fared.config.bgp import Bgp
from fared.config.bier import BierRouter
from fared.config.errors import format_path
from fared.config.isis import Isis
from fared.config.model import Api, Config, Fib, Ina
from fared.config.ospf import Ospf
from fared.config.platform import Platform
from fared.config.reading import Reading
from fared.config.section import Reload, Section
from fared.config.shapes import Field, fields_of
from fared.kernel.sysctl import wanted_sysctls
from tests.docs.test_commands import FENCE, INLINE, PAGES_OF_NOW

_OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"


def _restart(kind: type[Section]) -> set[str]:
    return {key for key, field in fields_of(kind).items() if field.reload is Reload.RESTART}


def test_operating_lists_every_setting_that_needs_a_restart() -> None:
    text = _OPERATING.read_text().partition("\n## Reload\n")[2].partition("\n## ")[0]
    items = re.findall(r"^- (.*?[;.])$", text, re.MULTILINE | re.DOTALL)
    daemon, isis, bgp, others = (set(re.findall(r"`([^`]+)`", item)) for item in items)
    own = {f"ospf: {key}" for key in _restart(Ospf)}
    parts = {"ospf", "isis", "bgp", "bier"}
    assert daemon == _restart(Config) - parts | own | {f"{name}:" for name in parts}
    assert bgp == _restart(Bgp) | {"bgp:"}
    assert isis == _restart(Isis) | {"isis:"}
    named = {"fib:", "api:", "ina:", "platform:"} | _restart(BierRouter) | {"bier:"}
    assert others == fields_of(Fib).keys() - _restart(Fib) | _restart(Api) | named
    for kind in (Ina, Platform):
        assert fields_of(kind).keys() == _restart(kind), "all of it"
    listed = {Config, Ospf, Isis, Bgp, BierRouter, Fib, Api, Ina, Platform}
    assert {kind for kind in sections() if _restart(kind)} == listed


def test_operating_lists_every_sysctl_that_fared_sets() -> None:
    wanted = wanted_sysctls(1, ["NAME"], ipv6=True)
    names = {re.sub(r"NAME|(all|default)(?=\.rp_filter)", "*", setting.name) for setting in wanted}
    assert names == set(re.findall(r"^\| (net\.\S+) \|", _OPERATING.read_text(), re.MULTILINE))


_INTERFACE = ("ospf", "areas", 1, "interfaces", "x")
_PLACES: list[tuple[object, ...]] = [
    (),
    *[(name,) for name in ("adaptive", "fib", "api", "bier", "ospf", "isis")],
    ("ospf", "areas", 1),
    ("ospf", "graceful-restart"),
    ("ospf", "redistribute", "default"),
    ("ospf", "redistribute", "static"),
    _INTERFACE,
    (*_INTERFACE, "bfd"),
    ("isis", "graceful-restart"),
    ("isis", "inter-level-propagation-policies"),
    ("isis", "interfaces", "x"),
    ("link-health", "interfaces", "x"),
    ("bgp",),
    ("bgp", "neighbors", "x"),
    ("bgp", "path-bandwidth"),
    ("bgp", "neighbors", "x", "path-bandwidth"),
    ("bgp", "graceful-restart"),
]
"""Where the settings are that the pages name without their section."""
_FABRICS = {"name", "defaults", "sysctls", "binds", "cmd", "kind", "container", "addresses"}
_FABRICS |= {"privileged", "cap-add", "network-mode", "mtu", "accept_dad"}
_OTHER_FILES = _FABRICS | {"demands", "import", "fared", "keys", "lo"}
"""Keys of fabrics, demands and logs; an interface; ``keys``, which needs an algorithm beside it;
keys of containerlab and netlab."""


def refused(keys: tuple[object, ...], value: object) -> bool:
    """Whether a key of this path is unknown, or its value not possible."""
    document = value
    for key in reversed(keys):
        document = {key: document}
    assert isinstance(document, dict)
    if isinstance(document.get("isis"), dict):
        document["isis"].setdefault("net", "49.0001.0102.5500.0001.00")
    if isinstance(document.get("bgp"), dict):
        document["bgp"].setdefault("as", 65001)
    if keys[:3] == ("ospf", "areas", 1):
        document["ospf"]["areas"][1].setdefault("type", "stub")
    document.setdefault("filters", {"NAME": ["permit any"], "servers": ["permit any"]})
    try:
        load_text(yaml.safe_dump(document))
    except ConfigErrors as errors:
        at, above = format_path(keys), format_path(keys[:-1])
        return any(
            "unknown key" in error.got
            or (value is not None and error.path.startswith(at))
            or (error.path == above and error.got == "a mapping")
            for error in errors.errors
        )
    return False


@functools.cache
def refused_everywhere(text: str) -> bool:
    """Whether ``a: b`` is neither a setting with its value nor one without, in any section."""
    *keys, last = re.split(r": ?(?![^{\[]*[}\]])", text)
    value = None if last.isupper() else yaml.safe_load(last)
    return all(
        refused((*place, *keys), value) and refused((*place, *keys, last), None)
        for place in _PLACES
    )


def test_the_settings_in_examples_are_settings(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret")
    key.chmod(0o600)
    blocks = [
        block.replace("/etc/fared/isis.key", str(key))
        for page in PAGES_OF_NOW
        for kind, block in FENCE.findall(page.read_text())
        if kind == "yaml"
    ]
    documents = [next(yaml.safe_load_all(block)) for block in blocks]
    found = [each for each in documents if each.keys() <= fields_of(Config).keys()]
    assert len(found) > 6
    assert [each for each in found if refused((), each)] == []


def test_the_settings_in_sentences_are_settings() -> None:
    named = {
        (page.name, " ".join(text.split()))
        for page in PAGES_OF_NOW
        for text in INLINE.findall(FENCE.sub("", page.read_text()))
        if re.match(r"[a-z][a-z0-9-]*:(\s|$)", text) and text.partition(":")[0] not in _OTHER_FILES
    }
    assert len(named) > 60
    assert [found for found in named if refused_everywhere(found[1])] == []


_NUMBER = re.compile(
    r"`(?:[a-z-]+: )*([a-z-]+)`(?:, | \()(\d[\d.,]*(?<=\d)(?: ?/s| m?s| %| minutes)?)"
)


def test_the_numbers_after_settings_in_sentences_are_their_defaults() -> None:
    """Such as ``fib: metric`` (20)."""
    defaults: dict[str, list[tuple[Field, object]]] = {}
    for section in sections():
        for known, field in zip(structs.fields(section), fields_of(section).values(), strict=True):
            defaults.setdefault(field.key, []).append((field, known.default))
    found = [
        (page.name, key, text)
        for page in PAGES_OF_NOW
        for key, text in _NUMBER.findall(page.read_text())
        if key in defaults
    ]
    assert len(found) > 15
    for page, key, text in found:
        value = yaml.safe_load(text.replace(",", "").replace(" minutes", "m").replace(" ", ""))
        possible = [field.shape.read(value, (), Reading()) == at for field, at in defaults[key]]
        assert any(possible), f"{page}: {key} is not {text}"


@pytest.mark.parametrize(
    "text",
    ["adaptive: available", "fib: metrc", "priority: high", "flooding: reduction: leafs", "spv:"],
)
def test_a_setting_that_is_none_is_found(text: str) -> None:
    assert refused_everywhere(text)
