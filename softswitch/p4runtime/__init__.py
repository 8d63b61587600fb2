"""P4Runtime for the software switch: one gRPC server for any number of devices.

p4info       what the server needs of a P4Info, by id and by name
values       byte strings and matches on the wire
translate    messages <-> the device's values
actions      the same for what entries do
profiles, meters, value_sets, notices    one kind of entity each, written and read
digests      which samples wait, and until when: a state machine without I/O
arbitration  who may write: a state machine without I/O
writes       one update, carried out
reads        one read, answered
config       the pipeline: verify, save, commit, read back
sessions     a device between calls, and a stream
servicer     the RPCs
server       listening, and a thread to do it in
"""

from softswitch.p4runtime.server import P4RuntimeServer, ServerError, ServerThread, Tls

__all__ = ["P4RuntimeServer", "ServerError", "ServerThread", "Tls"]
