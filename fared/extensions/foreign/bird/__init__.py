"""BIRD's configuration.

``parse`` knows the form of the file, its includes, definitions and templates. ``ospf`` has tables
of the statements of a protocol, ``export`` what others export into it, and ``read`` begins with a
file.
"""
