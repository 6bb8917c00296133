"""The log: its level and form, which a reload may change."""

import asyncio
import contextlib
import fcntl
import io
import json
import logging
import os
import sys
import threading
import time
import tracemalloc
from datetime import datetime
from pathlib import Path

import pytest

from fared.daemon import main
from fared.daemon.people import logs
from fared.daemon.people.logs import DaemonLog, LibraryLog
from fared.management.api.encode import encode
from fared.management.documents.log_ring import LogRing
from fared.protocols.ospf.packet.lsa import LsType


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


def test_an_exception_is_text_that_the_log_can_show(capsys):
    """The record holds no frames, and is JSON like any other."""
    log = DaemonLog("info", "json")
    log.logger.error("internal-error", where="here", exc_info=ValueError("bad"), file=Path("/x"))
    (record,) = log.ring
    fields = record["fields"]
    assert encode(record)
    assert fields == {"where": "here", "exception": "ValueError: bad", "file": "/x"}
    assert "ValueError: bad" in json.loads(capsys.readouterr().err)["exception"]


def test_the_last_records_are_kept_whatever_their_fields_are():
    ring = LogRing(2)
    given = {"by": {(1, 2): 3}, "file": Path("/x")}
    odd = {"state": LsType.ROUTER, "name": "\ud800", "much": 1 << 70, "at": (1, 2)}
    for number in range(3):
        ring.append({"event": str(number), "fields": odd | given})
    assert len(ring) == 2
    assert [record["event"] for record in ring] == ["1", "2"]
    for record in ring:
        assert record["fields"] == {**odd, "at": [1, 2], "by": {}, "file": "/x"}


@pytest.mark.parametrize("most", [0, 1, 31, 32, 33, 64, 100])
def test_the_last_records_are_kept_in_order(most):
    ring, given = LogRing(most), []
    for number in range(150):
        given.append({"event": str(number), "fields": {"text": "a\nb"}})
        ring.append(given[-1])
        assert len(ring) == min(most, number + 1)
        assert list(ring) == given[max(0, len(given) - most) :]


def test_records_take_little_memory():
    """What a neighbor says that comes and goes a thousand times is nearly the same each time."""
    ring = LogRing(1000)
    tracemalloc.start()
    for number in range(1000):
        fields = {"interface": "eth1", "neighbor": "0000.0000.0002", "reason": "hello", "n": number}
        ring.append({"time": number / 7, "level": "info", "event": "neighbor", "fields": fields})
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ring) == 1000
    assert taken < 60_000


async def test_a_level_is_wanted_while_it_is_written_or_followed():
    log = DaemonLog("info", "json")
    assert (log.wants("debug"), log.wants("info")) == (False, True)
    follower = log.feed.follow({"level": "debug"})
    assert log.wants("debug")
    log.feed.leave(follower)
    assert not log.wants("debug")
    log.configure("debug", "json")
    assert log.wants("debug")


async def test_followers_see_events_below_the_level_of_the_log(capsys):
    log = DaemonLog("info", "json")
    follower = log.feed.follow({"level": "debug"})
    log.logger.debug("fine", number=1)
    log.logger.info("shown")
    await follower.arrived()
    assert [record["event"] for record in follower.take(9)] == ["fine", "shown"]
    assert [record["event"] for record in log.ring] == ["shown"]
    assert len(capsys.readouterr().err.splitlines()) == 1


async def test_lines_wait_until_packets_and_routes_of_other_routers_are_done(capsys):
    """With the time of their event; a warning, and whoever reads, gets them at once, in order."""
    log = DaemonLog("info", "json")
    begun = time.time()
    log.logger.info("first")
    log.logger.info("second")
    ended = time.time()
    assert capsys.readouterr().err == ""
    assert [record["event"] for record in log.ring] == ["first", "second"]
    assert all(begun <= record["time"] <= ended for record in log.ring)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["first", "second"]
    assert begun - 1e-6 <= datetime.fromisoformat(lines[0]["timestamp"]).timestamp() <= ended
    log.logger.info("third")
    log.logger.warning("now")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["third", "now"]
    log.logger.info("later")
    written = ""
    while not written:
        await asyncio.sleep(0.001)
        written = capsys.readouterr().err
    assert json.loads(written)["event"] == "later"


def test_a_log_that_nobody_reads_holds_up_nobody(monkeypatch):
    """What does not fit is dropped, and counted where it is missing."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(reader) as pipe:
        with os.fdopen(writer, "w") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            log = DaemonLog("info", "json")
            flaps = threading.Thread(target=_flap, args=(log, FLAPS), daemon=True)
            flaps.start()
            flaps.join(30)
            assert not flaps.is_alive()
            lines = [json.loads(pipe.readline())]
            while lines[-1]["event"] != "log-lines-lost":
                lines.append(json.loads(pipe.readline()))
            log.logger.warning("later")
            log.output.finish()
        *flapped, lost = lines
        assert [line["number"] for line in flapped] == list(range(len(flapped)))
        assert lost["count"] == FLAPS - len(flapped) == log.output.dropped
        assert [json.loads(line)["event"] for line in pipe] == ["later"]


FLAPS = 10_000


def _flap(log: DaemonLog, times: int) -> None:
    for number in range(times):
        log.logger.warning("neighbor-changed", number=number, reason="inactivity-timer")


def test_stderr_stays_as_the_shell_has_made_it(monkeypatch):
    """O_NONBLOCK would be that of all who have the pipe or the terminal."""
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        log = DaemonLog("info", "json")
        log.logger.warning("first")
        log.output.finish()
        assert os.get_blocking(writer)


def test_a_reader_that_has_gone_ends_nothing(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        log = DaemonLog("info", "json")
        for event in ("first", "second"):
            log.logger.warning(event)
            log.output.finish()
        assert log.output.dropped == 2


async def test_the_last_lines_of_a_process_are_written(capsys):
    log = DaemonLog("info", "json")
    log.logger.info("before")
    log.end()
    log.logger.info("after")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["before", "after"]


class Full(io.StringIO):
    """There is no memory to write with."""

    def write(self, _: str) -> int:
        raise MemoryError


@pytest.mark.parametrize(
    ("stream", "error", "ends"),
    [
        (Full(), None, True),
        (io.StringIO(), MemoryError(), True),
        (io.StringIO(), ValueError(), False),
        (io.StringIO(), None, False),
    ],
)
def test_a_library_that_logs_without_memory_ends_the_process(monkeypatch, stream, error, ends):
    """asyncio does so if it cannot report a MemoryError."""
    monkeypatch.setattr(logs, "end_out_of_memory", lambda: sys.exit("out of memory"))
    library = logging.getLogger("a library")
    library.propagate = False
    library.addHandler(LibraryLog(stream))
    try:
        with pytest.raises(SystemExit) if ends else contextlib.nullcontext():
            library.error("Unhandled error in exception handler", exc_info=error)
    finally:
        library.handlers.clear()
    assert ends or "Unhandled error" in stream.getvalue()


def test_a_line_of_a_library_that_cannot_be_written_is_reported(capsys):
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise ValueError("closed")

    LibraryLog(Closed()).handle(logging.makeLogRecord({"msg": "lost"}))
    assert "ValueError: closed" in capsys.readouterr().err


@pytest.mark.parametrize("style", ["json", "text"])
def test_the_journal_learns_the_priority_of_each_line(style, tmp_path, monkeypatch):
    with (tmp_path / "journal").open("w+") as stream:
        file = os.fstat(stream.fileno())
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("JOURNAL_STREAM", f"{file.st_dev}:{file.st_ino}")
        log = DaemonLog("info", style)
        log.logger.warning("link-lost")
        log.logger.info("link-back")
        with contextlib.suppress(ZeroDivisionError):
            try:
                _ = 1 / 0
            except ZeroDivisionError:
                log.logger.exception("failed")
                raise
        logging.getLogger("asyncio").handle(
            logging.makeLogRecord({"msg": "slow", "levelname": "WARNING", "levelno": 30})
        )
        log.end()
        lines = (tmp_path / "journal").read_text().splitlines()
    marks = {
        event: line[:3] for line in lines for event in ("link-lost", "link-back") if event in line
    }
    assert marks == {"link-lost": "<4>", "link-back": "<6>"}
    assert {line[:1] for line in lines} == {"<"}
    assert {line[:3] for line in lines if "Error" in line} == {"<3>"}


def test_the_journal_has_the_errors_of_a_refused_file_as_errors(tmp_path, monkeypatch):
    """There is no logger yet; ``journalctl -p warning`` says why the service has failed."""
    (tmp_path / "fared.yaml").write_text("nonsense: 1\nospf: {areas: 1}\n")
    with (tmp_path / "journal").open("w+") as stream:
        file = os.fstat(stream.fileno())
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("JOURNAL_STREAM", f"{file.st_dev}:{file.st_ino}")
        with pytest.raises(SystemExit):
            main._load(str(tmp_path / "fared.yaml"), fallback=False)
    lines = (tmp_path / "journal").read_text().splitlines()
    assert len(lines) == 2
    assert {line[:3] for line in lines} == {"<3>"}


def test_a_stream_that_the_journal_does_not_read_gets_no_priorities(capsys, monkeypatch):
    monkeypatch.setenv("JOURNAL_STREAM", "1:2")
    DaemonLog("info", "json").logger.warning("link-lost")
    assert capsys.readouterr().err.startswith("{")
