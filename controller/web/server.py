"""The page's process: `python -m controller.web.server --state DIR --listen HOST:PORT`.

It is a client of the controller, and outlives it as every other client does. Whatever it serves is
made when it is asked for. Changes are taken as JSON only, which other sites' pages cannot send, and
from its own origin. It is asked for by an address or by its machine's name: a name that another
site has pointed here would make that site's pages its own (DNS rebinding).
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import signal
import socket
import sys
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from controller.errors import BadInputError, BluetreeError
from controller.placement import STRATEGIES
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
from controller.service.documents import document
from controller.service.folder import Folder
from controller.web.metrics import exposition

PAGE = Path(__file__).with_name("page.html")
MOST_BYTES = 10_000
_HTML = "text/html; charset=utf-8"
_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def page() -> bytes:
    """The page, with the strategies that there are."""
    names = json.dumps(list(STRATEGIES))
    return PAGE.read_text(encoding="utf-8").replace("/*STRATEGIES*/[]", names).encode()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: WebServer

    def do_GET(self) -> None:
        """The page, the status, the metrics."""
        if self._is_foreign():
            return
        try:
            match self.path.partition("?")[0]:
                case "/":
                    self._answer(HTTPStatus.OK, _HTML, page())
                case "/status.json":
                    with ControllerClient(self.server.folder) as client:
                        self._answer_json(HTTPStatus.OK, document(client.status()))
                case "/metrics":
                    with ControllerClient(self.server.folder) as client:
                        text = exposition(client.status(), client.counters())
                    self._answer(HTTPStatus.OK, _PROMETHEUS, text)
                case _:
                    self._refuse(HTTPStatus.NOT_FOUND, f"{self.path}: there is no such page")
        except BluetreeError as error:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def do_POST(self) -> None:
        """A reallocation."""
        if self._is_foreign():
            return
        try:
            if self.path != "/reallocate":
                self._refuse(HTTPStatus.NOT_FOUND, f"{self.path}: there is no such page")
                return
            request = _request(self._body())
            with ControllerClient(self.server.folder) as client:
                self._answer_json(HTTPStatus.OK, document(client.reallocate(request)))
        except BadInputError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except BluetreeError as error:
            self._refuse(HTTPStatus.CONFLICT, str(error))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the page asks every second."""

    def _is_foreign(self) -> bool:
        """Refuse what is asked for under another name than this machine's, or by another site."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not self.server.is_named(host):
            self._refuse(
                HTTPStatus.FORBIDDEN,
                f"Host {host!r}: is not where this page is; use an address or --web-listen's name",
            )
        elif origin is not None and origin.partition("://")[2].lower() != host.lower():
            self._refuse(HTTPStatus.FORBIDDEN, f"Origin {origin!r}: is another site than {host}")
        else:
            return False
        return True

    def _body(self) -> Any:
        if self.headers.get_content_type() != _JSON:
            raise BadInputError(f"a change is {_JSON}")
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            raise BadInputError(f"a change has at most {MOST_BYTES} bytes, and says how many")
        try:
            return json.loads(self.rfile.read(int(length)))
        except ValueError as error:
            raise BadInputError(f"this is no JSON: {error}") from error

    def _answer_json(self, status: HTTPStatus, value: object) -> None:
        self._answer(status, _JSON, json.dumps(value).encode())

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._answer_json(status, {"error": text})

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)


class WebServer(ThreadingHTTPServer):
    """Serves the page of one testbed."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], folder: Folder) -> None:
        super().__init__(address, Handler)
        self.folder = folder
        self._names = {"localhost", socket.gethostname().lower(), address[0].lower()}

    def is_named(self, host: str) -> bool:
        """Whether a Host header (RFC 9110, 7.2) is an address, or a name of this machine."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True


def _request(given: Any) -> api.ReallocateRequest:
    """What the page sends: job, strategy, k, root, each optional."""
    if not isinstance(given, dict):
        raise BadInputError("a change is an object with job, strategy, k and root")
    job, k = given.get("job"), given.get("k")
    strategy, root = given.get("strategy", ""), given.get("root", "")
    numbers = [value for value in (job, k) if value is not None]
    if not (isinstance(strategy, str) and isinstance(root, str)) or not all(
        type(value) is int and 0 <= value < 1 << 32 for value in numbers
    ):
        raise BadInputError("job and k are integers from 0, strategy and root are names")
    if not strategy and not root and k is None:
        raise BadInputError("say what to change: a strategy, k, or another root")
    return api.ReallocateRequest(job=job, choice=api.Choice(strategy=strategy, k=k), root=root)


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM; see the module's text."""
    parser = argparse.ArgumentParser(prog="controller.web.server", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    options = parser.parse_args(arguments)
    host, _, port = options.listen.rpartition(":")
    folder = Folder(options.state)

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    try:
        server = WebServer((host, int(port)), folder)
    except (OSError, OverflowError, ValueError) as error:
        print(f"--web {options.listen}: cannot be served there ({error})", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, end)
    with server, folder.serve_page(host, server.server_port):
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
