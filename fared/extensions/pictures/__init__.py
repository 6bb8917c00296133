"""Pictures for the lab and for plans, drawn by matplotlib: ``figures``."""
