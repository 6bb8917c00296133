"""HTTP clients that hold connections, use a wrong host name, or send malformed requests."""

import asyncio
import contextlib
import json
import logging
import socket
from contextlib import asynccontextmanager

import pytest

from fared.management.api import http_server
from fared.management.api.durations import Observed
from fared.management.api.http import App
from fared.management.api.http_server import SPARE_CONNECTIONS
from fared.management.api.metrics import Metrics
from fared.management.api.respond import Responder
from fared.management.documents.rows import Rows
from tests.api.served import served
from tests.api.test_http import families
from tests.api.uncollected import collector_off, number_of
from tests.waiting import loop_until

SLOW = b"GET /api/v1/routes HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def large(*_):
    """An answer larger than the buffers: it is not complete until the client reads it."""
    return {"routes": Rows(range(3000), lambda n: {"n": n, "text": "x" * 10_000})}


@asynccontextmanager
async def serving(dispatcher=large, names=()):
    app = App(
        Responder(dispatcher), Metrics(families, "0.2.0", Observed()), lambda: True, lambda: names
    )
    async with served(app) as port:
        yield port


@asynccontextmanager
async def held(port: int, number: int, text: bytes = b""):
    """Connections that send this and then nothing."""
    streams = []
    for _ in range(number):
        streams.append(await asyncio.open_connection("127.0.0.1", port))
        streams[-1][1].write(text)
    try:
        yield streams
    finally:
        for _, writer in streams:
            writer.transport.abort()


async def ask(
    port: int, path: str = "/metrics", host: str = "localhost", sent: str = ""
) -> tuple[int, bytes]:
    """Status and body of one request; ``sent``: more of its head."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{sent}Connection: close\r\n\r\n"
    answer = await said(port, request.encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def said(port: int, text: bytes) -> bytes:
    """Send data; return all bytes received until the server closes."""
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
def few(monkeypatch) -> int:
    """Set a low limit of connections."""
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 4)
    return 4


async def gone(reader: asyncio.StreamReader) -> None:
    """Until the server has closed the connection."""
    with contextlib.suppress(ConnectionError):
        await reader.read()


async def test_idle_connections_are_closed_for_new_ones():
    """Of seventy connections with half a request each, the oldest are closed for new ones."""
    async with serving() as port, held(port, 70, b"GET /metr") as streams:
        status, body = await ask(port)
        assert status == 200
        assert b"fared_ready" in body
        async with asyncio.timeout(20):
            await gone(streams[0][0])
            assert not streams[-1][0].at_eof()


async def test_metrics_are_served_while_all_connections_are_in_use(few):
    """Clients do not read their tables; a new client that requests one has to wait for them."""
    async with serving() as port, held(port, few, SLOW) as streams:
        for reader, _ in streams:
            await reader.readline()  # it is being answered
        assert (await ask(port))[0] == 200
        assert (await ask(port, "/healthz"))[0] == 200
        status, body = await ask(port, "/api/v1/status")
        assert (status, json.loads(body)["error"]["code"]) == (503, "busy")


async def test_the_number_of_connections_is_limited(few):
    """Clients cannot use more descriptors of the daemon."""
    async with serving() as port, held(port, few + SPARE_CONNECTIONS, SLOW) as first:
        for reader, _ in first[:few]:
            await reader.readline()
        async with held(port, 2 * SPARE_CONNECTIONS) as more, asyncio.timeout(20):
            await asyncio.gather(*(gone(reader) for reader, _ in more[:SPARE_CONNECTIONS]))
            assert (await ask(port))[0] == 200


async def test_clients_that_have_left_need_no_collector():
    async with serving(lambda *_: {}) as port:
        await ask(port)
        with collector_off():
            before = held_for_clients()
            for _ in range(20):
                await raw_scrape(port)
            await loop_until(lambda: held_for_clients() == before, 10, "all are forgotten")


def held_for_clients() -> tuple[int, int]:
    return number_of("_SelectorSocketTransport"), number_of("Connection")


async def raw_scrape(port: int) -> None:
    """Ask for the metrics from a thread, whose socket is not one of the loop."""

    def scrape() -> None:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while client.recv(1 << 16):
                pass

    await asyncio.to_thread(scrape)


async def test_an_answer_is_not_built_for_a_client_that_has_disconnected():
    built = 0

    def row(number):
        nonlocal built
        built += 1
        return {"n": number, "text": "x" * 10_000}

    async with serving(lambda *_: {"routes": Rows(range(100_000), row)}) as port:
        async with held(port, 1, SLOW) as [(reader, _)]:
            await reader.readline()
        assert (await ask(port))[0] == 200
    assert built < 10_000


async def test_the_head_of_a_request_must_come_in_time(monkeypatch):
    """Single bytes do not extend the deadline, neither of the first request nor of later ones."""
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)

    async def trickle(writer):
        while not writer.transport.is_closing():
            writer.write(b"X")
            await asyncio.sleep(0.02)

    async with serving() as port:
        for before in (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            async with held(port, 1, before) as [(reader, writer)]:
                if before:
                    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                task = asyncio.create_task(trickle(writer))
                async with asyncio.timeout(20):
                    await gone(reader)
                task.cancel()


async def test_an_answer_must_be_taken_in_time(monkeypatch):
    """A client that requests a large table and does not read it is disconnected."""
    monkeypatch.setattr(http_server, "ANSWER_TIMEOUT", 0.3)
    async with serving() as port:
        loop, client = asyncio.get_running_loop(), socket.create_connection(("127.0.0.1", port))
        client.setblocking(False)
        await loop.sock_sendall(client, SLOW)
        async with asyncio.timeout(20):
            while True:
                await asyncio.sleep(0.02)
                try:
                    client.send(b" ")
                except ConnectionError:
                    break
        client.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9547", 200),
        ("10.255.0.1", 200),
        ("[::1]:9547", 200),
        ("localhost", 200),
        ("LEAF1:9547", 200),
        ("leaf1.example.com.", 200),
        ("evil.example.com", 421),
        ("leaf1.evil.example.com", 421),
        ("127.0.0.1.evil.example.com", 421),
        ("localhost@evil.example.com", 421),
        ("", 421),
    ],
)
async def test_only_requests_for_own_host_names_are_answered(host, status):
    """This prevents DNS rebinding: another site's name that resolves to our address is refused."""
    async with serving(lambda *_: {"secret": 1}, names=("leaf1", "leaf1.example.com")) as port:
        for path in ("/api/v1/config", "/metrics", "/"):
            found, body = await ask(port, path, host)
            if path == "/api/v1/config":
                assert found == status
                assert (b"secret" in body) == (status == 200)
            else:
                assert (found == 421) == (status == 421)


BY_LINK = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        ("Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", {200}),
        ("Sec-Fetch-Site: none\r\n" + BY_LINK, {200}),
        ("Origin: http://evil.example.com\r\n", {403}),
        ("Origin: http://localhost:3000\r\n", {403}),
        ("Origin: null\r\n", {403}),
        ("Sec-Fetch-Site: cross-site\r\n", {403}),
        ("Sec-Fetch-Site: same-site\r\nOrigin: http://localhost\r\n", {403}),
        ("Sec-Fetch-Site: same-origin\r\nOrigin: http://evil.example.com\r\n", {403}),
    ],
)
async def test_pages_of_other_sites_are_refused(sent, statuses):
    async with serving(lambda *_: {"secret": 1}) as port:
        paths = ("/api/v1/config", "/metrics", "/healthz", "/")
        assert {(await ask(port, path, sent=sent))[0] for path in paths} == statuses


async def test_a_link_of_another_site_leads_to_the_page_alone():
    async with serving(lambda *_: {"secret": 1}) as port:
        sent = "Sec-Fetch-Site: cross-site\r\n" + BY_LINK
        assert (await ask(port, "/", sent=sent))[0] == 200
        assert (await ask(port, "/api/v1/config", sent=sent))[0] == 403


async def test_a_request_without_a_host_is_old_and_answered():
    """HTTP/1.0 has no such header, and browsers do not use it."""
    async with serving() as port:
        assert (await said(port, b"GET /healthz HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "text",
    [
        b"GET /healthz" + CHUNKED + b"nonsense\r\n",
        b"GET /api/v1/routes" + CHUNKED + b"-1\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_malformed_requests_are_one_line_in_the_log(text, caplog):
    """At any rate: there is no traceback, and the next client is served."""
    with caplog.at_level(logging.INFO, "asyncio"):
        async with serving() as port:
            for _ in range(3):
                with contextlib.suppress(ConnectionError):
                    await said(port, text)
            assert (await ask(port))[0] == 200
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in lines] == ["Invalid HTTP request received."]
    assert not any(record.exc_info for record in lines)


async def test_malformed_data_after_an_answer_is_one_line_too(caplog):
    """A chunk has a bad length after the answer was sent."""
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz" + CHUNKED)
        await reader.readline()
        writer.write(b"zz\r\n")
        async with asyncio.timeout(20):
            await gone(reader)
        writer.close()
    assert [r.getMessage() for r in caplog.records] == ["Invalid HTTP request received."]


async def test_a_large_document_comes_in_pieces():
    """Chunked, whole, and the same as from the control socket."""
    rows = [{"n": n, "text": "x" * 100} for n in range(20_000)]
    async with serving(lambda *_: {"routes": Rows(rows, dict)}) as port:
        status, body = await ask(port, "/api/v1/routes")
    assert status == 200
    text, rest = b"", body
    while (size := int(rest.split(b"\r\n", 1)[0], 16)) > 0:
        rest = rest.split(b"\r\n", 1)[1]
        text, rest = text + rest[:size], rest[size + 2 :]
    assert json.loads(text) == {"routes": rows}
