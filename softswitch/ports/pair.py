"""Veth pairs as a switch wants them: up, without offloads, and without IPv6 of their own.

With offloads, senders on the pair leave checksums and segmentation to hardware that is not there;
with IPv6, the kernel sends router solicitations into the switch.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from softswitch.ports.errors import PortError
from softswitch.ports.interface import disable_offloads

_DEADLINE_S = 30


def create_pair(here: str, there: str, mtu: int = 1500) -> None:
    """Make a veth pair; raises PortError (no right to, no `ip` command, a name is taken)."""
    _ip(
        "link", "add", here, "mtu", str(mtu), "type", "veth", "peer", "name", there, "mtu", str(mtu)
    )
    for name in (here, there):
        switch = Path("/proc/sys/net/ipv6/conf", name, "disable_ipv6")
        if switch.exists():
            switch.write_text("1")
        disable_offloads(name)
        _ip("link", "set", name, "up")


def delete_pair(here: str) -> None:
    """Delete the pair that `here` is one end of, if it exists; raises PortError."""
    if Path("/sys/class/net", here).exists():
        _ip("link", "delete", here)


def _ip(*arguments: str) -> None:
    try:
        subprocess.run(
            ("ip", *arguments), check=True, capture_output=True, text=True, timeout=_DEADLINE_S
        )
    except FileNotFoundError as error:
        raise PortError("veth pairs need the `ip` command: install iproute2") from error
    except subprocess.CalledProcessError as error:
        raise PortError(f"`ip {' '.join(arguments)}` failed: {error.stderr.strip()}") from error
