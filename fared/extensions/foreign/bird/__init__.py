"""BIRD's configuration.

``parse`` knows the form of the file, its includes, definitions and templates. ``ospf`` and
``interface`` have tables of the statements of a protocol and of its interfaces, ``bgp`` one of
those of a neighbor, of which ``bgp_assemble`` makes settings, ``bgp_policy`` those of what passes;
``export`` reads filters, and ``read`` begins with a file.
"""
