"""The control socket: requests and answers in lines; no client can disturb the daemon."""

import asyncio
import json
import socket
import stat
import threading
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from fared.management.api.client import ControlClient, DaemonRefusedError, DaemonUnreachableError
from fared.management.api.control import MAX_REQUEST, ControlServer, SocketInUse
from fared.management.api.respond import Responder
from fared.management.documents.errors import CommandError
from fared.management.documents.rows import Rows
from tests.api.uncollected import collector_off, number_of


def answers(command, args):
    match command:
        case "show status":
            return {"format": "fared-status/1", "args": args}
        case "show routes":
            return later({"format": "fared-routes/1", "routes": [{"n": n} for n in range(50_000)]})
        case "explain":
            raise CommandError("not-found", "no route to 10.0.0.0/8")
        case "show object":
            return {"value": object()}
    raise RuntimeError(command)


async def later(document):
    await asyncio.sleep(0)
    return document


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "fared.sock"


@asynccontextmanager
async def serving(path, dispatcher=answers, on_error=None):
    server = ControlServer(str(path), Responder(dispatcher, on_error))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def ask(path, command, what=None, args=None):
    client = ControlClient(str(path), timeout=10)
    return await asyncio.to_thread(client.request, command, what, args)


async def raw(path, data: bytes) -> list[bytes]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    writer.write_eof()
    lines = (await reader.read()).splitlines()
    writer.close()
    return lines


async def test_a_request_is_answered_with_a_document(path):
    """The client receives the dispatcher's document; arguments are passed."""
    async with serving(path):
        document = await ask(path, "show", "status", {"x": 1})
        assert document == {"format": "fared-status/1", "args": {"x": 1}}


async def test_a_request_is_answered_two_turns_of_the_loop_after_it_came(path):
    """In a flood each turn takes as long as a slice of packets."""
    async with serving(path):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b'{"command": "explain"}\n')
            client.setblocking(False)
            await asyncio.get_running_loop().sock_recv(client, 4096)  # connected
            client.sendall(b'{"command": "explain"}\n')
            answer, turns = b"", 0
            while not answer:
                await asyncio.sleep(0)
                turns += 1
                with suppress(BlockingIOError):
                    answer = client.recv(4096)
        assert b"not-found" in answer
        assert turns <= 3


async def test_large_answers_arrive_complete_and_do_not_block_the_loop(path):
    """A dispatcher may be a coroutine; a big table is written in pieces."""
    async with serving(path):
        document = await ask(path, "show", "routes")
        assert len(document["routes"]) == 50_000


async def test_several_requests_on_one_connection(path):
    """Each line is answered in turn."""
    async with serving(path):
        line = b'{"command": "show status"}\n'
        lines = await raw(path, line * 3)
        assert [json.loads(answer)["ok"] for answer in lines] == [True] * 3


async def test_errors_have_a_code_and_a_message(path):
    """The dispatcher's error is passed on; an exception in it is 'internal', and is reported."""
    seen = []
    async with serving(path, on_error=lambda command, error: seen.append((command, error))):
        with pytest.raises(DaemonRefusedError, match="no route") as refused:
            await ask(path, "explain")
        assert refused.value.code == "not-found"
        with pytest.raises(DaemonRefusedError, match="RuntimeError") as refused:
            await ask(path, "boom")
        assert refused.value.code == "internal"
        with pytest.raises(DaemonRefusedError, match="TypeError"):
            await ask(path, "show", "object")
    assert len(seen) == 2
    assert seen[0][0] == "boom"


@pytest.mark.parametrize(
    "line",
    [b"nonsense", b"[]", b"{}", b'{"command": 1}', b'{"command":"a","args":[]}', b"[" * 9999],
)
async def test_malformed_requests_are_answered_with_an_error(path, line):
    """For any contents of the line, the answer is bad-request and the connection remains open."""
    async with serving(path):
        lines = await raw(path, line + b"\n" + b'{"command": "show status"}\n')
        first, second = map(json.loads, lines)
        assert first["error"]["code"] == "bad-request"
        assert second["ok"]


async def test_a_request_has_a_bounded_size(path):
    """Endless lines are cut off with an explanation."""
    async with serving(path):
        lines = await raw(path, b"x" * (MAX_REQUEST + 10_000))
        assert "too large" in json.loads(lines[0])["error"]["message"]
        assert (await ask(path, "show", "status"))["format"] == "fared-status/1"


async def test_clients_that_disconnect_or_never_read_do_not_affect_others(path):
    """After half a line, a full buffer, or many connections, the next client is served."""
    async with serving(path) as server:
        stuck = []
        for _ in range(10):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(b'{"command": "show routes"}\n' * 20)
            stuck.append((reader, writer))
        _, half = await asyncio.open_unix_connection(str(path))
        half.write(b'{"comm')
        half.transport.abort()
        assert (await ask(path, "show", "status"))["format"] == "fared-status/1"
        await server.stop()
        for _, writer in stuck:
            writer.transport.abort()


async def test_clients_that_have_left_need_no_collector(path):
    """The collector runs rarely: thousands of connections would stay in memory until then."""
    async with serving(path):
        with collector_off():
            before = number_of("_SelectorSocketTransport")
            for _ in range(20):
                await ask(path, "show", "status")
            await asyncio.sleep(0)
            assert number_of("_SelectorSocketTransport") <= before + 1


async def test_the_socket_is_for_owner_and_group(path):
    """Mode 0660 from its creation; removed after a stop."""
    async with serving(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert not path.exists()


async def test_a_second_daemon_is_refused_and_the_first_lives_on(path):
    """Two daemons on one socket would modify one routing table."""
    async with serving(path):
        with pytest.raises(SocketInUse, match="another daemon is listening"):
            await ControlServer(str(path), Responder(answers)).start()
        assert (await ask(path, "show", "status"))["format"] == "fared-status/1"


async def test_the_socket_of_a_dead_daemon_is_replaced(path):
    """A crash leaves the file; it does not prevent the start."""
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with serving(path):
        assert (await ask(path, "show", "status"))["format"] == "fared-status/1"


async def test_whoever_sees_the_socket_may_connect(path, monkeypatch):
    """A daemon that had been killed was told of as not running when its successor was there."""
    serve, seen = asyncio.start_unix_server, []

    async def served(*arguments, **options):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))
        seen.append(path)
        return await serve(*arguments, **options)

    monkeypatch.setattr(asyncio, "start_unix_server", served)
    async with serving(path):
        assert seen == [path]


async def test_a_file_in_the_way_is_left_alone(path):
    """What is not a socket is not removed."""
    path.parent.mkdir()
    path.write_text("precious")
    with pytest.raises(OSError, match="not a socket"):
        await ControlServer(str(path), Responder(answers)).start()
    assert path.read_text() == "precious"


async def test_stop_does_not_remove_the_successors_socket(path):
    """A socket that another process has created there meanwhile remains."""
    async with serving(path):
        path.unlink()
        async with serving(path):
            pass
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(path))
    assert path.exists()
    other.close()


def test_without_a_daemon_the_client_says_what_to_do(tmp_path):
    """Not running, no such socket, no permission: each has its own message."""
    with pytest.raises(DaemonUnreachableError, match="not running"):
        ControlClient(str(tmp_path / "none.sock")).request("show", "status")


def test_a_daemon_that_hangs_up_or_hangs_is_unreachable(tmp_path):
    """An incomplete answer is an error; a daemon that does not answer times out."""
    path = tmp_path / "mute.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def cut():
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(b'{"ok": tr')
            connection.close()

        thread = threading.Thread(target=cut)
        thread.start()
        with pytest.raises(DaemonUnreachableError, match="cut short"):
            ControlClient(str(path)).request("show", "status")
        thread.join()
        with pytest.raises(DaemonUnreachableError, match="does not answer"):
            ControlClient(str(path), timeout=0.05).request("show", "status")


async def test_an_answer_that_fails_half_way_is_cut_off(path):
    """Half a table must not look complete; the exception is reported."""
    seen = []

    def row(number):
        if number == 500:
            raise RuntimeError("gone")
        return {"n": number, "text": "x" * 1000}

    # With a clock that jumps, each block of rows is a slice of its own.
    ticks = count()
    responder = Responder(
        lambda *_: {"rows": Rows(range(1000), row)},
        lambda *what: seen.append(what),
        lambda: next(ticks),
    )
    server = ControlServer(str(path), responder)
    await server.start()
    with pytest.raises(DaemonUnreachableError):
        await ask(path, "show", "routes")
    await server.stop()
    assert [type(error) for _, error in seen] == [RuntimeError]
