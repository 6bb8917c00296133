"""Path capacities, integer weights for the kernel, and weights that follow load."""
