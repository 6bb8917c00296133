"""The files for SONiC's container: they parse, and name what this tree has."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

from fared.config.model import Fib

ROOT = Path(__file__).parents[2]
FILES = ROOT / "containerlab" / "sonic"


def supervised():
    found = configparser.ConfigParser(interpolation=None)
    found.read_string((FILES / "supervisord.conf").read_text())
    return {name.partition(":")[2]: found[name] for name in found if name.startswith("program:")}


def test_the_protocol_has_the_number_that_fared_writes():
    assert (FILES / "rt_protos").read_text() == f"{Fib().protocol} fared\n"


def test_fpmsyncd_stays_and_starts_before_fared_and_the_programs_of_frr_are_gone():
    programs = supervised()
    assert {"fpmsyncd", "fared"} < set(programs)
    assert not set(programs) & {"zebra", "bgpd", "staticd", "mgmtd", "bgpcfgd"}
    assert int(programs["fpmsyncd"]["priority"]) < int(programs["fared"]["priority"])


def test_what_is_critical_is_supervised():
    lines = (FILES / "critical_processes").read_text().split()
    assert lines == ["program:fpmsyncd", "program:fared"]
    assert {line.partition(":")[2] for line in lines} <= set(supervised())


def test_hellos_of_every_protocol_have_a_trap():
    traps = json.loads((FILES / "copp_cfg.json").read_text())["COPP_TRAP"]
    ids = {one for trap in traps.values() for one in trap["trap_ids"].split(",")}
    assert ids == {"ospf", "ospfv6", "isis", "bfd", "bfdv6"}


def test_the_feature_is_that_of_the_container_that_is_replaced():
    features = json.loads((FILES / "feature.json").read_text())["FEATURE"]
    assert features["bgp"]["state"] == "enabled"


def test_the_dockerfile_copies_files_that_are_there():
    text = (FILES / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (\S+)", text, re.MULTILINE)
    assert [name for name in copied if "*" not in name and not (FILES / name).is_file()] == []
    wanted = re.search(r'^sonic = \["(.*)"\]$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert f"'{wanted[1]}'" in text
