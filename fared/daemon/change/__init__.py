"""From the configuration to settings, and every change of them while the daemon runs."""
