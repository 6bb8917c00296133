"""Our own LSPs (ISO 10589 §7.3.4 to §7.3.10).

``originate`` determines which fragments change, ``lsp_generator`` when each is generated and
refreshed (§7.3.5, §7.3.6), ``fragments`` the ``fragment`` of each entry (§7.3.4), ``contents``
header, adjacencies and prefixes (§7.3.7 to §7.3.10), of what ``advertisements`` lists.
``external`` redistributes routes of other sources; ``leaking`` advertises routes of one level in
the other (RFC 5302), with the prefix attributes from ``ted/``. ``derated`` follows neighbors that
derate a link, ``bier`` adds BIER.
"""
