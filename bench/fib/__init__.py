"""What is written to the kernel: routes, weights, sprayed packets, BIER."""
