"""Inputs and outputs of the IS-IS engine.

Packets are PDUs without the LLC header of their 802.2 frame (0xFE 0xFE 0x03). Addresses are MAC
addresses.
"""

from __future__ import annotations

from fared.paths.ted import events as ted
from fared.protocols.igp import events as igp
from fared.protocols.isis.settings import CircuitSettings, IsisSettings

Input = igp.Input[CircuitSettings, IsisSettings] | ted.Computed
Output = igp.Output | ted.Output
