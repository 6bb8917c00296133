"""Warm restart and rows of a former process, in a real Redis."""

from __future__ import annotations

from fared.sonic.connection import RedisConnection
from fared.sonic.warm_restart import WarmRestart, WarmState


async def test_the_end_of_the_initial_routes_is_told_and_taken_back(server):
    connection = RedisConnection(server.databases)
    warm = WarmRestart(connection, server.databases)
    await warm.reached()
    with server.db("STATE_DB") as client:
        for family in (b"IPv4", b"IPv6"):
            assert client.hgetall(b"BGP_STATE_TABLE|%s|eoiu" % family) == {b"state": b"reached"}
        await warm.begin()
        assert client.keys("*") == []
    await connection.close()


async def test_the_state_of_a_warm_restart_is_read(server):
    connection = RedisConnection(server.databases)
    warm = WarmRestart(connection, server.databases)
    assert await warm.state() == WarmState()
    server.set("STATE_DB", "WARM_RESTART_ENABLE_TABLE|bgp", enable="true")
    server.set("STATE_DB", "WARM_RESTART_TABLE|bgp", state="reconciled", restore_count="1")
    assert await warm.state() == WarmState(enabled=True, state="reconciled")
    await connection.close()


async def test_rows_of_our_protocol_are_found_staged_or_not_and_those_of_others_are_not(server):
    server.set("APPL_DB", "ROUTE_TABLE:10.1.0.0/16", protocol="fared", nexthop="10.0.0.1")
    server.set("APPL_DB", "ROUTE_TABLE:2001:db8:1::/48", protocol="fared")
    server.set("APPL_DB", "_ROUTE_TABLE:10.2.0.0/16", protocol="fared")
    server.set("APPL_DB", "ROUTE_TABLE:Vrf1:10.8.0.0/16", protocol="fared")
    server.set("APPL_DB", "ROUTE_TABLE:10.3.0.0/16", protocol="static")
    connection = RedisConnection(server.databases)
    found = await WarmRestart(connection, server.databases).routes_of({"fared"})
    assert found == {"10.1.0.0/16", "2001:db8:1::/48", "10.2.0.0/16", "Vrf1:10.8.0.0/16"}
    await connection.close()
