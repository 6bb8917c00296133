"""What plugs into the router or stands beside it.

``ina`` is in-network aggregation; ``offline`` computes from files, ``foreign`` reads those of FRR
and BIRD; ``lab`` runs fabrics of daemons in network namespaces, ``sim`` fabrics of routers on a
virtual clock; ``pictures`` draws for them.
"""
