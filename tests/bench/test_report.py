"""The page that ``make bench`` writes, for readers and scripts."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import bench as package
from bench import report, run

BEGAN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
GOOD = {"name": "routes", "ours": 1234.5, "other": 100.0, "unit": "routes/s", "ratio": 12.345}
ROWS = [
    {**GOOD, "goal": ">= 10x", "met": True},
    {**GOOD, "name": "groups", "goal": ">= 20x", "met": False, "note": "the kernel's own work"},
    {**GOOD, "name": "no goal", "met": None},
]


def page(*sections: report.Section) -> list[str]:
    return report.page(list(sections), BEGAN, 60.0).splitlines()


def test_the_last_line_counts_goals():
    section = report.Section("fib", "FIB: routes", 3.0, ROWS)
    assert page(section)[-1] == "1 goals met, 1 missed"


def test_a_section_that_failed_is_a_missed_goal_with_a_reason():
    failed = report.Section("beside", "Beside C", 1.0, failure="ImportError: no peer")
    lines = page(report.Section("fib", "FIB: routes", 3.0, ROWS), failed)
    assert lines[-1] == "1 goals met, 2 missed"
    assert any("**Failed**: ImportError: no peer" in line for line in lines)


def test_every_section_says_its_command_and_how_long_it_took():
    lines = page(report.Section("fib", "FIB: routes", 3.0, ROWS))
    assert "`python -m bench fib`, 3 s" in lines


def test_notes_stand_below_the_table():
    lines = report.table(ROWS)
    assert any("groups (1)" in line for line in lines)
    assert "(1) the kernel's own work" in lines[-1]


def test_goals_are_listed_before_the_sections():
    text = "\n".join(page(report.Section("fib", "FIB: routes", 3.0, ROWS)))
    head = text[: text.index("## FIB")]
    assert "12.3x" in head
    assert "no goal" not in head


def test_missed_goals_come_first():
    lines = page(report.Section("fib", "FIB: routes", 3.0, ROWS))
    at = lines.index("## Goals: 1 met, 1 missed")
    first, second = [line for line in lines[at:] if line.startswith("| FIB")][:2]
    assert "**missed**" in first
    assert second.endswith("| met        |")


def test_a_long_table_shows_goals_and_folds_the_rest_away():
    many = [{**GOOD, "name": f"figure {number}"} for number in range(report.MANY)]
    text = "\n".join(page(report.Section("fib", "FIB: routes", 3.0, [*ROWS, *many])))
    shown, _, folded = text.partition("<details>")
    assert f"{report.MANY + 1} figures without a goal" in folded
    assert "groups" in shown
    assert "figure 7" not in shown


def test_an_unknown_section_is_refused(capsys):
    assert run.main(["nonsense"]) == 2
    assert "no such section: nonsense" in capsys.readouterr().out


def test_each_section_is_the_only_file_of_its_name():
    for name in run.SECTIONS:
        (file,) = (package.ROOT / "bench").rglob(f"{name}.py")
        assert package.module_of(name).replace(".", "/") in str(file)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a bench room of its own."""
    room = tmp_path / "bench"
    room.mkdir()
    for module in (package, run, report):
        file = Path(module.__file__)
        (room / file.name).write_text(file.read_text())
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "__file__", str(room / "run.py"))
    monkeypatch.setattr(run, "OUTPUT", tmp_path)
    return room


def test_a_section_runs_in_a_process_of_its_own(bench):
    rows = json.dumps(GOOD)
    body = f"    print('words')\n    return [{rows} | {{'pid': os.getpid()}}]\n"
    text = f"import os\ndef rows():\n{body}"
    (bench / "mine.py").write_text(text)
    section = run.run("mine")
    assert section.failure is None
    assert section.rows[0]["name"] == "routes"
    assert section.rows[0]["pid"] != run.os.getpid()


def test_a_section_that_raises_says_why(bench):
    (bench / "mine.py").write_text("def rows():\n    raise RuntimeError('no such luck')\n")
    assert run.run("mine").failure == "RuntimeError: no such luck"


def test_a_section_that_hangs_is_stopped(bench, tmp_path):
    mark = tmp_path / "tidied"
    (bench / "mine.py").write_text(
        "import pathlib, time\n"
        "def rows():\n"
        "    try:\n"
        f"        pathlib.Path({str(tmp_path / 'begun')!r}).touch()\n"
        "        time.sleep(600)\n"
        "    finally:\n"
        f"        pathlib.Path({str(mark)!r}).touch()\n"
    )
    section = run.run("mine", patience=3.0)
    assert section.failure == "not over after 3 s"
    assert mark.exists() or not (tmp_path / "begun").exists()


def test_pictures_are_drawn_where_there_are_ratios(tmp_path):
    pytest.importorskip("matplotlib")
    section = report.Section("fib", "FIB: routes", 3.0, ROWS)
    report.draw_ratios(section, tmp_path)
    assert (tmp_path / section.figures[0][0]).stat().st_size > 1000
    assert sys.modules.get("matplotlib.pyplot") is None


def test_what_the_host_took_stands_beside_what_was_measured(tmp_path):
    """The eighth figure of the kernel's account is time given to other machines."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 0 10 60 0 0 0 20 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    before = run.spent(stat)
    stat.write_text("cpu  20 0 20 140 0 0 0 40 5 0\n")
    assert run.stolen(before, run.spent(stat)) == 20 / 120
    assert run.stolen(before, before) == 0.0
    section = report.Section("fib", "FIB: routes", seconds=2.0, stolen=0.17)
    assert "17%" in report.summary([section])[2]
