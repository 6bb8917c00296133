"""The routing protocols, as engines without I/O.

``ospf`` and ``isis`` do not import each other; ``igp`` is what they share. ``bfd`` is for both.
``bgp`` imports neither.
"""
