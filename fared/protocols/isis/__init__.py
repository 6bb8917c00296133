"""The IS-IS engine: a state machine without I/O (ISO 10589, RFC 1195 and what followed).

``engine`` connects the parts; ``events`` and ``settings`` are its inputs and outputs, and
``reception`` checks what arrives. All parts use the process (``instance``), ``circuit`` with its
adjacencies and ``addresses``, its ``neighbors``, the ``lsdb`` of a level, ``paths`` over it, and
``ids``. ``links`` creates and removes circuits, ``transmit`` signs and sends PDUs. ``starter`` and
``restarter`` delay our LSPs after a start or restart, ``reacquisition`` is the state of an
adjacency then (RFC 8706), ``counted`` has what is counted. The packages follow ISO 10589:

- ``pdu/``: the formats of PDUs and TLVs (§9)
- ``adjacency/``: hellos, adjacencies, the designated IS (§8.2, §8.4)
- ``update/``: the update process: receiving and sending LSPs and SNPs (§7.3.14 to §7.3.17)
- ``origination/``: our own LSPs (§7.3.4 to §7.3.10), leaking between levels (RFC 5302)
- ``ted/``: from LSPs to the graph that SPF runs on (input of §7.2)

Adjacencies, update process and TED do not use each other; origination uses the update process and,
for leaking, the TED. Clauses are those of ISO/IEC 10589:2002, the second edition.
"""
