"""The log of a switch process, in the layout of bmv2's."""

from __future__ import annotations

import logging
import sys
import threading
from logging.handlers import RotatingFileHandler

from softswitch.errors import UsageError
from softswitch.options import Options

TRACE = 5
_LEVELS = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
_LETTERS = {
    TRACE: "T",
    logging.DEBUG: "D",
    logging.INFO: "I",
    logging.WARNING: "W",
    logging.ERROR: "E",
    logging.CRITICAL: "C",
}


class _Layout(logging.Formatter):
    """``[13:03:47.022] [softswitch] [D] [thread 28883] message``."""

    def format(self, record: logging.LogRecord) -> str:
        time = self.formatTime(record, "%H:%M:%S")
        letter = _LETTERS.get(record.levelno, "I")
        thread = threading.get_native_id()
        return (
            f"[{time}.{record.msecs:03.0f}] [softswitch] [{letter}] [thread {thread}] "
            f"{record.getMessage()}"
        )


def set_up(options: Options) -> None:
    """Send the log where the command line says; raises UsageError for a file that cannot be.

    Without a log asked for, what is lost or wrong still shows: warnings go to stderr.
    """
    log = logging.getLogger("softswitch")
    level = _LEVELS[options.log_level]
    handler: logging.Handler
    if options.log_file is not None:
        path = options.log_file.with_name(options.log_file.name + ".txt")
        try:
            handler = RotatingFileHandler(
                path, maxBytes=options.log_size, backupCount=options.log_files
            )
        except OSError as error:
            raise UsageError(f"--log-file: cannot write {path}: {error.strerror}") from error
    elif options.log_console:
        handler = logging.StreamHandler(sys.stdout)
    else:
        handler = logging.StreamHandler(sys.stderr)
        level = max(level, logging.WARNING)
    if isinstance(handler, RotatingFileHandler):
        handler.namer = _rotated
    handler.setFormatter(_Layout())
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(level)


def _rotated(name: str) -> str:
    """Give a full log file the name that bmv2 gives it: FILE.1.txt, and not FILE.txt.1."""
    path, _, number = name.rpartition(".")
    return f"{path.removesuffix('.txt')}.{number}.txt"
