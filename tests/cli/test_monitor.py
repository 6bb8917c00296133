"""``fared-cli monitor``: what it refuses without following."""

import pytest
from click.testing import CliRunner

from fared.management.cli.main import main
from tests.cli.test_main import Daemon


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path / "fared.sock") as running:
        yield running


def monitor(path, *words):
    return CliRunner().invoke(main, ["-s", str(path), "monitor", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", "1"], "No such option"),
        (["--level", "loud"], "'loud' is not one of"),
        (["--since", "soon"], "'soon' is not a duration such as 90s or 5m"),
    ],
)
def test_wrong_options_are_a_matter_of_usage(daemon, words, said):
    result = monitor(daemon.path, *words)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_without_a_daemon_it_says_what_to_do(tmp_path):
    result = monitor(tmp_path / "none.sock")
    assert result.exit_code == 3
    assert "Hint: 'systemctl start fared'" in result.stderr


def test_an_older_daemon_is_recognized(daemon):
    """It knows no such command."""
    result = monitor(daemon.path)
    assert result.exit_code == 1
    assert "monitor" in daemon.asked[0][0]
