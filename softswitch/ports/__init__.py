"""A switch's ports on Linux network interfaces, and the loop that serves them.

naming     "port@interface", and the file that lists ports
interface  what the kernel says of an interface, and the constants of <linux/if_packet.h>
ring       frames in: a memory-mapped ring, no system call a frame
sender     frames out: many a system call
checksum   finishes checksums that a sender left to hardware that is not there
capture    records frames in pcap files
pair       veth pairs that suit a switch
port       one port: a ring, a sender, captures, and what it counts
dataplane  the loop: every frame from every port through the device
"""

from softswitch.ports.dataplane import DataPlane
from softswitch.ports.errors import PortError
from softswitch.ports.naming import PortName, parse_port, read_ports

__all__ = ["DataPlane", "PortError", "PortName", "parse_port", "read_ports"]
