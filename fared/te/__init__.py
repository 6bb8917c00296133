"""TE link attributes that both IGPs carry, and when to announce a change of them."""
