"""Inputs and outputs of the OSPF engine.

Packets are IP protocol 89 datagrams without their IP header, their addresses IPv4.
"""

from __future__ import annotations

from fared.core import igp
from fared.ospf.settings import InterfaceSettings, OspfSettings
from fared.ted import events as ted

Input = igp.Input[InterfaceSettings, OspfSettings] | ted.Computed
Output = igp.Output | ted.Output
