"""The log: its level and form, which a reload may change."""

import json

import pytest
import structlog

from fared.daemon.logs import DaemonLog


@pytest.fixture(autouse=True)
def restored():
    """Restore structlog's configuration, which is global to the process."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_a_changed_level_applies_to_bound_methods_of_the_logger(capsys):
    """Modules keep methods of the logger from before the reload."""
    log = DaemonLog("info", "json")
    debug, info = log.logger.debug, log.logger.info
    debug("hidden")
    info("shown", number=1)
    log.configure("debug", "json")
    debug("now shown")
    log.configure("error", "json")
    info("hidden again")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("shown", "info"),
        ("now shown", "debug"),
    ]
    assert [(line["event"], line["fields"]) for line in log.ring] == [
        ("shown", {"number": 1}),
        ("now shown", {}),
    ]


def test_the_form_of_lines_changes_too(capsys):
    log = DaemonLog("info", "text")
    log.logger.info("plain", port=1)
    log.configure("info", "json")
    log.logger.info("document", port=2)
    plain, document = capsys.readouterr().err.splitlines()
    assert "plain" in plain
    assert "port=1" in plain
    assert json.loads(document)["port"] == 2
