"""SPF over arrays: distances, the ECMP DAG and the plan that capacities flow through."""
