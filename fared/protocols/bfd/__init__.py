"""Bidirectional Forwarding Detection (RFC 5880, RFC 5881), without I/O.

``packet`` is the codec, ``auth`` authentication, ``fsm`` the state machine; ``session`` is one
session, ``sessions`` are all of them. ``messages`` are those between the daemon and
``kernel.bfdd``, the process that runs the sessions. It must start fast and stay small, so this
package imports little.
"""
