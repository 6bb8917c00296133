"""TE link attributes, which OSPF and IS-IS both carry, and when to advertise their changes.

``attributes`` declares them, ``sub_tlvs`` encodes them for either protocol. ``advertise`` decides
when a changed bandwidth of a link is advertised, ``budget`` how many of them an area may have, and
``announcer`` which come first; ``redistributed`` does so for path capacities of redistributed
prefixes. ``far_ends`` follows neighbors that derate a link.
"""
