"""Running daemons: start, idle, convergence, load of links, overload."""
