"""Topology files of any size: ``fared-lab generate NAME``, for namespaces and containers.

``model`` is what a topology declares: its parameters, nodes and links. ``writer`` makes the text of
the file, ``command`` the command with its options; ``registry`` names the topologies, a module
each: ``clos3`` and ``clos5`` are the draft's Figures 1 and 2, ``permutation`` is TopoOpt's;
``direct`` is what topologies without switches share.
"""
