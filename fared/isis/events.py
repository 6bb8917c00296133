"""Inputs and outputs of the IS-IS engine.

Packets are PDUs without the LLC header of their 802.2 frame (0xFE 0xFE 0x03). Addresses are MAC
addresses.
"""

from __future__ import annotations

from fared.core import igp
from fared.isis.settings import CircuitSettings, IsisSettings
from fared.ted import events as ted

Input = igp.Input[CircuitSettings, IsisSettings] | ted.Computed
Output = igp.Output | ted.Output
