"""TE link attributes, which OSPF and IS-IS both carry, and when to advertise their changes."""
