"""The update process (ISO 10589 §7.3.14 to §7.3.17).

``flooding`` receives LSPs (§7.3.15.1, §7.3.16) and passes sequence numbers PDUs to ``snp``
(§7.3.15.2); both set and clear the SRM and SSN flags that ``circuit_tx`` holds by circuit, and
``shared_flags`` for many circuits at once (§7.3.15); ``copies`` recognizes LSPs that change
nothing. ``lsp_transmitter`` sends what is flagged (§7.3.15.5), at the pace of ``pacing``, with
``csnps`` (§7.3.15.3), ``acknowledgments`` and ``requests`` (§7.3.15.4). ``suppression`` and
``dynamic`` (RFC 9667) defer or spare copies that a neighbor receives from elsewhere; ``bandwidth``
recognizes LSPs that can wait for others. ``database`` installs, ages, purges and removes LSPs
(§7.3.16.4), within ``limits``; ``sequence`` keeps our own numbers above all that were ever received
(§7.3.16.1).
"""
