"""A viewer of the Waveform Control Protocol, version 0, as its description has it: JSON objects with a NUL behind each.

It is independent of rvtrace: it knows the commands and answers to them, keeps its cursor, and says what came. Surfer
sends no event for its cursor; VaporView sends `cursor_set`, also when a command has moved it (*echoes*).
"""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tests.helpers.wait import until

COMMANDS = ["set_cursor", "set_viewport_to", "load", "get_item_list", "add_items", "zoom_to_fit"]


class WcpPeer:
    """`with WcpPeer() as peer:` waits at `peer.port`; with *port* it connects there, as `surfer --wcp-initiate`."""

    def __init__(self, port: int | None = None, *, version: str = "0", echoes: bool = False) -> None:
        self._version, self._echoes = version, echoes
        self.received: list[dict[str, Any]] = []
        self.cursor: int | None = None
        self.centre: int | None = None
        self.loaded: str | None = None
        self._connection: socket.socket | None = None
        self._listener: socket.socket | None = None
        if port is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port: int = self._listener.getsockname()[1]
        else:
            self._connection = socket.create_connection(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.close()
        self.hang_up()
        self._thread.join(5)

    def hang_up(self) -> None:
        """End the connection, as a viewer does that is closed."""
        if self._connection is not None:
            with suppress(OSError):  # the other end was faster
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()
            self._connection = None

    def move(self, time: int, event: str = "cursor_set") -> None:
        """The user moves the cursor."""
        self.cursor = time
        self.say({"type": "event", "event": event, "timestamp": time})

    def say(self, message: object) -> None:
        self.send(json.dumps(message).encode() + b"\0")

    def send(self, data: bytes) -> None:
        until(lambda: self._connection is not None, "a client")
        assert self._connection is not None
        self._connection.sendall(data)

    def wait_for_cursor(self, time: int) -> None:
        """Wait until a client has moved the cursor there, and the view to it."""
        until(lambda: self.cursor == time == self.centre, f"the cursor at {time}, not {self.cursor}")

    def _serve(self) -> None:
        try:
            if self._listener is not None:
                self._connection = self._listener.accept()[0]
            connection, buffer = self._connection, b""
            while connection is not None and (data := connection.recv(4096)):
                *messages, buffer = (buffer + data).split(b"\0")
                for message in messages:
                    for answer in self._answers(json.loads(message)):
                        connection.sendall(json.dumps(answer).encode() + b"\0")
        except OSError:  # the test is over
            return

    def _answers(self, message: dict[str, Any]) -> Iterator[object]:
        self.received.append(message)
        if message["type"] == "greeting":
            yield {"type": "greeting", "version": self._version, "commands": COMMANDS}
            return
        assert self.received[0]["type"] == "greeting" and message["type"] == "command"
        assert message["command"] in COMMANDS, message
        if message["command"] == "set_cursor":
            self.cursor = message["timestamp"]
            if self._echoes:
                yield {"type": "event", "event": "cursor_set", "timestamp": self.cursor}
        elif message["command"] == "set_viewport_to":
            self.centre = message["timestamp"]
        elif message["command"] == "load":
            self.loaded = message["source"]
        yield {"type": "response", "command": "ack"}
