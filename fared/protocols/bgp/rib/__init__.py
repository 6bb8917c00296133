"""The routing tables of BGP (RFC 4271 §3.2), without I/O: one ``BgpRib`` (``tables``) for a family.

Prefixes to which all neighbors announce equal paths (``paths``) form a group (``adj_in``). For each
group, not each prefix, ``decision`` chooses paths, ``bandwidth`` says what they carry, with limits
that several neighbors share (``shared``, on LANs ``lans``), by links to next hops or beyond them
(``exits``), ``graph`` describes it to the route solver, and
``adj_out`` tells the neighbors, of which ``hosts`` are told a share. ``origins``: which protocol a
route was redistributed from.
"""
