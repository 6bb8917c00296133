"""The routing tables of BGP (RFC 4271 §3.2), without I/O: one ``BgpRib`` (``tables``) for a family.

Prefixes to which all neighbors announce equal paths (``paths``) form a group (``adj_in``). For each
group, not each prefix, ``decision`` chooses paths, ``bandwidth`` says what they carry, with limits
that several neighbors share (``shared``), ``graph`` describes it to the route solver, and
``adj_out`` tells the neighbors. ``origins``: which protocol a route was redistributed from.
"""
