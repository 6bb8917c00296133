"""Codecs of BGP messages (RFC 4271 §4).

``framing`` cuts a stream into messages, ``messages`` has them as values, ``codec`` their bytes.
``coded`` says how attributes and capabilities are declared; ``attributes``, with ``as_path`` and
``communities``, and ``capabilities`` declare them. ``attribute_block`` reads all attributes of an
UPDATE by RFC 7606, ``update`` the whole message, and ``packing`` makes as few as possible. ``nlri``
has prefixes and next hops, ``notification`` errors and their names.
"""
