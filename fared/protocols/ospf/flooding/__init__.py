"""The flooding procedure and the databases it keeps (RFC 2328 §13, §14).

``procedure`` receives updates and acks (§13, §13.7), installs newer instances (§13.2); ``flood``
floods them (§13.3) to the neighbors of a ``group``, ``acknowledge`` acknowledges them (§13.5).
``copies`` recognizes updates that hold nothing new, ``duplicates`` processes them (§13 (7));
``withdrawals`` processes updates of externals at MaxAge as a whole (§13 (5), §14.1).
``retransmit`` keeps the link state retransmission lists (§13.6); ``suppression`` defers copies that
the neighbor will receive from the originator; ``dynamic`` spares them (RFC 9667), and
``comparison`` finds what is missing then; ``bandwidth`` recognizes LSAs that can wait for others.
``database`` installs and flushes LSAs (§14.1), within ``limits``; ``aging`` refreshes and ages them
(§14).
"""
