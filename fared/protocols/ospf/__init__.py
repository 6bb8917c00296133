"""OSPFv2 (RFC 2328) as a state machine without I/O.

Packets, link events and the time go in; packets to send and changes of the TED come out.

This package has ``engine``, which connects the parts, its inputs and outputs (``events``,
``settings``), and ``reception``, which checks and decodes packets and gives them to their part.
Here are also the data structures that all parts use: the process and its areas (``instance``, §5
and §6), interfaces and neighbors (``interface``, ``neighbor``, §9 and §10), those that take part in
flooding (``participants``), send queues (``outgoing``, ``outbox``) and their rate for bandwidths
(``bandwidth_rate``), the database (``lsdb``, §12.2) and the database summary list
(``database_summary``, §10; ``header_page``). ``links`` runs the interface state machine (§9.3),
``restarter`` a graceful restart of this router (RFC 3623). ``route_tags`` looks up tags of
externals, ``common_ends`` compares lists, ``counted`` has what is counted. The packages below
follow RFC 2328:

- ``packet/``: the formats of packets and LSAs (appendix A), ``auth/``: authentication (appendix D)
- ``processing/``: checks, authentication and transmission of all packets (§8)
- ``adjacency/``: Hello protocol, elections, database exchange (§9.4, §9.5, §10)
- ``flooding/``: the flooding procedure and the databases (§13, §14)
- ``origination/``: self-originated LSAs (§12.4), also of area border and AS boundary routers
- ``ted/``: from LSAs to the graph for SPF (§16)

Imports run one way: ``adjacency`` imports ``flooding``, ``origination`` imports both, and only
``links`` and ``engine`` import the TED builder.
"""
