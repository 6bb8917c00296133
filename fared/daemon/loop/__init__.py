"""The loop: packets, links and the kernel come in, timers run, faults are contained."""
