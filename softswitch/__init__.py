"""A P4 target in Python: v1model programs as compiled by p4c for bmv2.

`Switch` is the interface for scripts and tests, `Device` the one for servers.
"""

from softswitch.device import Device
from softswitch.switch import Switch

__all__ = ["Device", "Switch"]
