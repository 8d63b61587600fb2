"""A network that lives for itself, and is controlled by whoever comes.

requests  what a client may ask of it: the values on its socket
network   what any target offers
fabric, mininet
          the two kinds
daemon    the process that holds it: `python -m controller.live.daemon --state DIR ...`
client    the way to it from other processes; `launch` and `NetworkClient` are where to start

The network knows its switches, links and hosts, and which jobs the hosts take part in. It knows
nothing of placement: what switches hold is written by controllers, over P4Runtime.
"""
