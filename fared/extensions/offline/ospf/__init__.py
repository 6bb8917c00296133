"""OSPF from files: saved databases, "what if", captures, packets.

``file`` has the LSAs of a document, ``database`` those that are used, and their TED blocks,
``whatif`` the LSAs after some changes. ``capture`` reads packets of a capture, ``gather`` makes a
database of them, ``decode`` a document of one packet.
"""
