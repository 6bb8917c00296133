"""The section ``bier``."""

from __future__ import annotations

import pytest

from fared.config import ConfigErrors, load_text
from fared.core.bier import BierSettings
from fared.core.ids import parse_dotted
from fared.daemon.change.common_settings import bier_settings

OSPF = "ospf: {areas: {0: {interfaces: {lo: {passive: true}}}}}\n"


def test_the_section_becomes_settings_and_without_it_there_are_none():
    config = load_text(
        f"{OSPF}bier: {{sub-domain: 3, bfr-id: 9, bsl: 256, hosts: {{10.0.1.2: 1}}}}"
    )
    hosts = ((parse_dotted("10.0.1.2"), 1),)
    assert bier_settings(config) == BierSettings(3, 9, 256, hosts)
    assert bier_settings(load_text(f"{OSPF}bier: {{}}")) == BierSettings(0, 0, 64)
    assert bier_settings(load_text(OSPF)) is None


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("{bsl: 100}", "one of 64, 128"),
        ("{bfr-id: 70000}", "0..65535"),
        ("{bfr-id: 16385}", "at most 16384 with bsl 64"),
        ("{hosts: {10.0.1.2: 20000}}", "at most 16384 with bsl 64"),
        ("{bfr-id: 5, hosts: {10.0.1.2: 5}}", "each BFR-id once"),
        ("{hosts: {10.0.1.2: 5, 10.0.1.3: 5}}", "each BFR-id once"),
        ("{hosts: {10.0.1.2: 0}}", "1..65535"),
        ("{sub-domain: 256}", "0..255"),
    ],
)
def test_values_that_rfc_8296_does_not_permit_are_refused(section: str, expected: str):
    with pytest.raises(ConfigErrors) as refused:
        load_text(f"{OSPF}bier: {section}")
    assert expected in str(refused.value)
