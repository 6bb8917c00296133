"""From the level databases to the TED: what the decision process of ISO 10589 §7.2 reads.

``fragment_facts`` reads an LSP fragment once, when it arrives, its links into arrays, and
``fragment_prefixes`` its prefixes; ``fragment_patch`` only its bandwidths, if nothing else changed.
``builder`` follows the databases, with the ``node_fragments`` of each node: ``blocks`` joins the
links of a node's fragments to one ``NodeBlock`` for each family, ``router_prefixes`` finds the
prefixes that changed with a fragment. ``attributes`` holds the attributes that leaking preserves,
``areas`` determines the attached bit, and ``nexthops`` has the links that this router itself
forwards over. ``information`` puts together what applications flood, ``bier`` what BIER does;
``roles`` tells views which routers are in both levels.
"""
