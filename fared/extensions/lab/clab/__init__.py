"""containerlab's files, as people have them: what of them runs here, and what does not.

The lab's own files need none of this: they say with labels what each node is. Others are read by
these modules, one for each question:

- ``faults``: what is wrong with a file, each with its line
- ``text``: the text of a file, with variables of the environment, as YAML with line numbers
- ``others``: files of other programs, which are refused by name
- ``roles``: which nodes are routers, hosts and LAN segments, and what routes in place of an image
- ``wires``: links in all formats, and LAN segments
- ``names``: names of interfaces that Linux refuses
- ``addresses``: addresses that a file's own configuration gives, for ``--keep-addresses``
- ``ignored``: what the lab does not do, a line each

They know the shape of a file (``topology_file``) and nothing of ``topology``, which uses them.
"""
