"""`bluetree shell`."""

from __future__ import annotations

import os
import subprocess

import click

from controller.cli_options import debug_option, folder_option, print_json
from controller.errors import EnvironmentLacksError, RunFailedError
from controller.installed import SHELL_PYTHON
from controller.service.client import ControllerClient
from controller.service.folder import Folder

__all__ = ["SHELL_PYTHON", "shell_command"]

GUEST_IDS = 90
"""Election ids below those of all controllers, for shells that only read."""


@click.command("shell")
@click.argument("switch")
@click.option(
    "--write",
    is_flag=True,
    help="Take the right to write from the controller. When the shell ends, the controller makes "
    "the switch again what it should be.",
)
@folder_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Open nothing: one JSON document on stdout says where the switch is.",
)
@debug_option
def shell_command(folder: Folder, switch: str, write: bool, as_json: bool) -> None:
    """Open p4runtime-shell on a switch; it only reads, unless --write is given."""
    with ControllerClient(folder) as client:
        where = client.switch(switch)
        primary = client.status().controller.election_id
    election = primary + 1 + os.getpid() % GUEST_IDS if write else 1 + os.getpid() % GUEST_IDS
    if as_json:
        place = {"switch": switch, "address": where.address, "device_id": where.device_id}
        print_json({**place, "election_id": election})
        return
    if not SHELL_PYTHON.exists():
        raise EnvironmentLacksError(
            "p4runtime-shell is not installed: `make shell-env` makes its environment"
        )
    command = [
        str(SHELL_PYTHON),
        "-m",
        "p4runtime_sh",
        "--grpc-addr",
        where.address,
        "--device-id",
        str(where.device_id),
        "--election-id",
        f"0,{election}",
    ]
    code = subprocess.run(command, check=False).returncode
    if code:
        raise RunFailedError(f"{switch}: p4runtime-shell ended with exit code {code}")
