"""What plugs into the router or stands beside it: aggregation, offline tools, lab, simulator."""
