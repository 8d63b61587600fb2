"""`bluetree doctor`."""

from __future__ import annotations

import click

from controller.cli_options import debug_option, json_option, print_json, printing, stdout
from controller.doctor import diagnose
from controller.report import doctor_document

__all__ = ["doctor_command"]


@click.command("doctor")
@json_option
@debug_option
def doctor_command(as_json: bool) -> None:
    """Say what is installed, what is missing, and which targets will work."""
    diagnosis = diagnose()
    if as_json:
        print_json(doctor_document(diagnosis))
        return
    from controller.render import show_doctor

    with printing():
        show_doctor(stdout(), diagnosis)
