"""BIRD's configuration.

``parse`` knows the form of the file, its includes, definitions and templates. ``ospf`` and
``interface`` have tables of the statements of a protocol and of its interfaces, ``export`` what
others export into it, and ``read`` begins with a file.
"""
