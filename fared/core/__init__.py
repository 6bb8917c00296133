"""Ids, units, bytes, checksums and timers, without I/O. Imports nothing but the stdlib.

- On the wire: ``wire``, ``checksum``, ``ids``, ``information``.
- For engines: ``timers``, ``fsm``, ``backoff``, ``damping``, ``rng``, ``log_limit``, ``tables``.
- Values that several packages share: ``links``, ``routes``, ``filters``, ``bfd``, ``bier``,
  ``streams``, ``sysctl``, ``link_errors``, ``link_facts``, ``load_history``,
  ``lost_neighbors``.
- Text: ``text``, ``units``, ``link_text``, ``json_text``. ``closing`` is for what is opened.
"""
