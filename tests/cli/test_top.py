"""``fared-cli top``: the page at any size, and on a terminal of 80x24."""

import os
import signal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fared.management.cli.main import main
from fared.management.cli.top_page import Snapshot, page
from tests.api.documents.bgp import BGP_INTERFACES, BGP_NEIGHBORS, BGP_STATUS
from tests.api.documents.common import NOW
from tests.api.documents.links import INTERFACES, NEIGHBORS
from tests.api.documents.router import LOG, STATUS
from tests.api.documents.routing import CONVERGENCE, WEIGHTS
from tests.cli.terminal import Terminal
from tests.cli.test_main import Daemon

SNAPSHOT = Snapshot(STATUS, INTERFACES, NEIGHBORS, WEIGHTS, LOG, CONVERGENCE)
SWP1 = next(e for e in INTERFACES["interfaces"] if e["interface"] == "swp1")
LEFT = "\x1b[?1049l"
CURSOR_SHOWN = "\x1b[?25h"


def shown(snapshot=SNAPSHOT, width=80, height=24, problem=""):
    return [line.plain for line in page(snapshot, NOW, width, height, problem)]


def many(count):
    """A leaf with many links, each to a spine of its own."""
    neighbor = NEIGHBORS["neighbors"][0]
    names = [f"swp{number}" for number in range(count)]
    return SNAPSHOT._replace(
        interfaces={"interfaces": [{**SWP1, "interface": name} for name in names]},
        neighbors={"neighbors": [{**neighbor, "interface": name} for name in names]},
    )


def test_a_page_has_links_weights_and_events():
    lines = shown()
    assert lines[0].startswith("leaf1  10.255.0.5  ready  up 1d02h")
    text = "\n".join(lines)
    assert "Links  2 of 3 up" in text
    assert any(line.startswith("swp1  spine1      Full") and "88%" in line for line in lines)
    assert "10.0.2.0/24  ▃███  spine1 7.7%  spine2 30.8%" in text
    assert "neighbor-changed interface=swp1 previous=Full state=Down" in text


def test_changes_are_told_in_words_among_the_events_of_the_log():
    lines = [*LOG["lines"], {"time": NOW - 12, "level": "info", "event": "converged", "fields": {}}]
    text = shown(SNAPSHOT._replace(log={**LOG, "lines": lines}), height=40)
    assert any("spine1 > leaf2: 100G to 25G  1 route in 50.3ms" in line for line in text)
    assert not any("converged" in line for line in text)


def test_sessions_of_bgp_are_links_that_are_up_when_they_are_established():
    found = SNAPSHOT._replace(status=BGP_STATUS, interfaces=BGP_INTERFACES, neighbors=BGP_NEIGHBORS)
    text = "\n".join(shown(found))
    assert "BGP 1544 prefixes" in text
    assert any(line.startswith("swp1  spine1  Established") for line in text.splitlines())


def test_equal_weights_are_not_listed():
    text = "\n".join(shown())
    assert "1 of 2 sets" in text
    assert "25%" not in text


def test_sets_of_next_hops_are_aligned_the_farthest_from_equal_first():
    apart = next(v for v in WEIGHTS["vectors"] if "10.0.2.0/24" in v["examples"])
    slightly = [{**hop, "share": hop["ecmp_share"] * 1.1} for hop in apart["members"]]
    other = {**apart, "examples": ["10.0.30.0/24"], "prefixes": 12, "members": slightly}
    vectors = {**WEIGHTS, "vectors": [other, apart]}
    text = "\n".join(shown(SNAPSHOT._replace(weights=vectors)))
    assert "10.0.2.0/24       ▃███  spine1" in text
    assert "10.0.30.0/24 +11  ████  spine1" in text
    assert text.index("10.0.2.0/24") < text.index("10.0.30.0/24")


def test_links_with_a_problem_come_first_and_the_others_are_counted():
    snapshot = many(64)
    snapshot.interfaces["interfaces"][40].update(up=False)
    lines = shown(snapshot)
    first = next(index for index, line in enumerate(lines) if line.startswith("Links"))
    assert lines[first + 1].startswith("swp40")
    assert "down" in lines[first + 1]
    counted = [line for line in lines if line.startswith("and ") and line.endswith(" more")]
    assert len(counted) == 1
    assert any(line.startswith("Events") for line in lines)


def test_a_derated_link_says_why():
    derated = {"by": "anna", "share": 0.25, "at": NOW, "reason": "optics"}
    link = {**SWP1, "derated": [derated]}
    lines = shown(SNAPSHOT._replace(interfaces={"interfaces": [link]}))
    assert any(line.endswith("25% left: optics") for line in lines)


def test_names_of_other_routers_cannot_control_the_terminal():
    neighbor = {**NEIGHBORS["neighbors"][0], "hostname": "a\x1b[2J\nb"}
    text = "".join(shown(SNAPSHOT._replace(neighbors={"neighbors": [neighbor]})))
    assert "\x1b" not in text
    assert "a?[2J?b" in text


@given(
    st.integers(1, 300), st.integers(1, 100), st.integers(0, 80), st.sampled_from(["", "no daemon"])
)
def test_a_page_fits_any_terminal(width, height, links, problem):
    lines = page(many(links), NOW, width, height, problem)
    assert len(lines) == height
    assert max(line.cell_len for line in lines) <= width


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path / "fared.sock") as running:
        yield running


def top(daemon, *words):
    return Terminal("-s", str(daemon.path), *words, "top", "--watch", "0.3")


def complete(screen):
    return len(screen) == 24 and screen[-1].startswith("q quit")


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "Ctrl-C"])
def test_it_fits_a_terminal_of_80x24_and_quits_cleanly(daemon, key):
    """The screen of before returns, with the cursor and the settings of the terminal."""
    with top(daemon) as terminal:
        terminal.until(complete, "a page")
        assert max(map(len, terminal.screen())) <= 80
        assert any("swp1  spine1" in line for line in terminal.screen())
        terminal.type(key)
        code, settings = terminal.ended()
        assert code == 0
        assert settings == terminal.before
        assert LEFT in terminal.output
        assert terminal.output.rindex(CURSOR_SHOWN) > terminal.output.rindex("\x1b[?25l")
        assert "Traceback" not in terminal.output


def test_a_terminated_page_leaves_the_terminal_as_it_was(daemon):
    with top(daemon) as terminal:
        terminal.until(complete, "a page")
        os.kill(terminal.pid, signal.SIGTERM)
        code, settings = terminal.ended()
        assert code == 128 + signal.SIGTERM
        assert settings == terminal.before
        assert LEFT in terminal.output


def test_the_page_follows_the_size_of_the_terminal(daemon):
    with top(daemon) as terminal:
        terminal.until(complete, "a page")
        terminal.resize(60, 12)
        terminal.until(lambda screen: len(screen) == 12, "a page of 12 lines")


def test_a_restart_of_the_daemon_is_survived(tmp_path):
    """The last page stays, with the reason, until the daemon is back."""
    path = tmp_path / "fared.sock"
    gone = "fared is not running"
    with Daemon(path) as daemon:
        terminal = top(daemon)
        terminal.until(complete, "a page")
    with terminal:
        terminal.until(lambda screen: any(gone in line for line in screen), "the reason")
        terminal.until(complete, "the former page")
        assert any("swp1  spine1" in line for line in terminal.screen())
        with Daemon(path):
            terminal.until(
                lambda screen: complete(screen) and not any(gone in line for line in screen),
                "a page of the new daemon",
            )
            terminal.type(b"q")
            assert terminal.ended()[0] == 0


def test_without_terminal_or_daemon_it_says_what_to_do(daemon, tmp_path):
    piped = CliRunner().invoke(main, ["-s", str(daemon.path), "top"])
    assert (piped.exit_code, "show ... --watch 1" in piped.stderr) == (1, True)
    document = CliRunner().invoke(main, ["-s", str(daemon.path), "top", "--json"])
    assert (document.exit_code, "--json --watch 1" in document.stderr) == (2, True)
    with Terminal("-s", str(tmp_path / "no"), "top") as terminal:
        assert terminal.ended()[0] == 3
        assert LEFT not in terminal.output
