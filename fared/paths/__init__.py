"""From links to forwarding: attributes, TED, SPF, path capacity, weights, routes, FIB plan."""
