"""Topology files of any size: ``fared-lab generate NAME``, for namespaces and containers.

``model`` is what a topology declares: its parameters, nodes and links. ``writer`` makes the text of
the file, ``command`` the command with its options; ``registry`` names the topologies, a module
each. ``clos3`` and ``clos5`` are Figures 1 and 2 of draft-xu-lsr-fare, ``rails`` is its
rail-optimized topology. Of draft-aft-ai-traffic, ``sites`` are the data centers of §2; those of
§3.3 are ``fat_tree``, ``dragonfly``, ``torus``, ``hypercube``, ``full_mesh``, ``star``,
``clustered`` and ``random``; ``permutation`` is TopoOpt's. ``direct`` is what topologies without
switches share, ``graphs`` what those do that networkx has.
"""
