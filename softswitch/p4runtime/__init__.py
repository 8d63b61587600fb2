"""P4Runtime for the software switch: one gRPC server for any number of devices.

p4info       what the server needs of a P4Info, by id and by name
values       byte strings and matches on the wire
translate    messages <-> the device's values
arbitration  who may write: a state machine without I/O
writes       one update, carried out
reads        one read, answered
config       the pipeline: verify, save, commit, read back
servicer     the RPCs
server       listening, and a thread to do it in
"""

from softswitch.p4runtime.server import P4RuntimeServer, ServerError, ServerThread, Tls

__all__ = ["P4RuntimeServer", "ServerError", "ServerThread", "Tls"]
