"""Codecs of IS-IS PDUs and TLVs (ISO 10589 §9).

``model`` has PDUs as values, ``codec`` their bytes, ``header`` reads and patches fixed headers
alone; ``auth`` signs and verifies, ``render`` makes JSON. ``tlv`` says what a TLV is, ``triplet``
how it is framed, and ``tlv_lists`` treats all of a PDU. ``tlvs`` declares most of them, and names
the others: ``is_reach``, ``ip_reach``, ``narrow``, ``lsp_entries``, ``flooding_parameters``,
``router_capability``, ``geninfo``, ``bier``.
"""
