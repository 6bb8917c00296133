"""The traffic engineering database: one graph per area or level, fed by the engines."""
