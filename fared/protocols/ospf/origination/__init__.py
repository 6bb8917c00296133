"""Our own LSAs (RFC 2328 §12.4).

``originate`` knows the LSAs and the events that change them; ``self_lsas`` originates them with the
next sequence number (§12.1.6, ``wrap`` after the last one), and flushes them (§14.1). ``contents``
builds router LSAs (§12.4.1), network LSAs (§12.4.2), TE LSAs (RFC 3630, RFC 7471) and router
information (RFC 7770). ``border`` is the area border router (§12.4.3, RFC 3509), with the
``summaries`` of each area, ``external`` the AS boundary router (§12.4.4); both choose link state
ids with ``summary_ids`` (appendix E). ``derated`` follows neighbors that derate a link, ``bier``
advertises BFR-ids.
"""
