"""In-network aggregation: its plans, and all-reduce in the lab."""
