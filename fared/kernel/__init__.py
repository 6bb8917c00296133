"""The only room that speaks netlink and raw sockets."""
