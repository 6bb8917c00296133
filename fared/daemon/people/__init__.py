"""What people and programs ask of the daemon, and what it tells them."""
