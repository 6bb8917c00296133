"""Inputs and outputs of the OSPF engine.

Packets are IP protocol 89 datagrams without their IP header, their addresses IPv4.
"""

from __future__ import annotations

from fared.paths.ted import events as ted
from fared.protocols.igp import events as igp
from fared.protocols.ospf.settings import InterfaceSettings, OspfSettings

Input = igp.Input[InterfaceSettings, OspfSettings] | ted.Computed
Output = igp.Output | ted.Output
