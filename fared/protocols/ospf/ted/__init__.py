"""From the databases to the TED, the input of the routing table calculation (RFC 2328 §16).

``builder`` processes changes of the databases and keeps one ``NodeBlock`` for each router, made by
``blocks`` from its router LSA and TE LSAs (§12.4.1, RFC 3630), or by ``lost_links`` from the former
one; and one for each transit network, made by ``networks`` (§12.4.2). ``reachability`` has the
destinations beyond an area: summaries (§16.2), AS externals (§16.4) and the capacities advertised
with them, ``external_capacities`` those of externals; ``used_prefixes`` limits them.
``own_networks`` has the networks whose hosts can be next hops (§16.1.1), ``bier`` the BFR-ids of
routers.
"""
