"""The routing protocols: OSPF, IS-IS and BFD, as engines without I/O."""
