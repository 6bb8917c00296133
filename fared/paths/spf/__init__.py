"""SPF over arrays: distances, the ECMP DAG and the plan that capacities flow through.

``search`` finds distances and the DAG from one root; ``plan`` lays out the slots over which
``weights`` sweeps. After a change of the graph, ``patch`` derives the next plan from the present
one where it can; ``laid`` holds what of the former layout stays valid.
"""
