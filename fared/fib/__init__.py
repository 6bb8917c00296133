"""What the kernel should hold, and the smallest safe list of operations to get there."""
