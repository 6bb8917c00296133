"""OSPFv2 packets and LSAs: bytes to frozen structs and back (RFC 2328 appendix A).

``packets`` has the five packets and ``codec`` their bytes, with the block of ``lls`` behind them.
``lsa`` has headers, and LSAs as bytes; ``body`` is the codec of ``bodies`` (those of RFC 2328) and
of ``opaque`` ones, which ``tlv`` frames: ``te``, ``router_info``, ``grace``, and
``extended_prefix`` with ``bier``. ``te_facts`` reads of a TE LSA only what routes need. ``render``
makes JSON.
"""
