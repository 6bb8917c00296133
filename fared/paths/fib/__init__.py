"""The desired state of the kernel's FIB, and the smallest safe list of operations to reach it."""
