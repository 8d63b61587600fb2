"""The part of bmv2's Thrift interface that P4Runtime has no word for: queues, ports, the clock.

protocol   Thrift's binary protocol: calls in, replies out
services   which methods there are, and what they do to a switch
server     a TCP port and its connections
"""

from softswitch.thrift.server import ThriftServer
from softswitch.thrift.services import Services, SwitchControl

__all__ = ["Services", "SwitchControl", "ThriftServer"]
