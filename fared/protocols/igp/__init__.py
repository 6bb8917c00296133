"""What both IGPs share: events, engines, flooding, limits, keys, restarts."""
