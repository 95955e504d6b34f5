"""Messages of the Debug Adapter Protocol as bytes: `Content-Length: N`, an empty line, and N bytes of JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

AdapterMessage = dict[str, Any]
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"(?:^|\r\n)content-length: *(\d{1,10})(?=\r\n)", re.IGNORECASE)
_LONGEST_HEADER = 4096


class MessageStream:
    """Cuts bytes into messages. What is none, such as the text of --help, comes out as it came in: nothing is lost."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._is_other = False

    def fed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the messages that are whole with these bytes, each with its header."""
        self._kept += chunk
        while size := self._size():
            yield bytes(self._kept[:size])
            del self._kept[:size]

    def rest(self) -> bytes:
        """Return what is left where the bytes end: a message that is not whole."""
        return bytes(self._kept)

    def _size(self) -> int:
        """Return the size of the first message. 0: it is not whole. Behind bytes that are none: of everything."""
        head = self._kept.find(_END, 0, _LONGEST_HEADER) if not self._is_other else -1
        if head >= 0:
            length = _LENGTH.search(self._kept[: head + 2])
            if length:
                size = head + len(_END) + int(length[1])
                return size if len(self._kept) >= size else 0
        if head >= 0 or not self._may_become_header():
            self._is_other = True
        return len(self._kept) if self._is_other else 0

    def _may_become_header(self) -> bool:
        """Return whether this is the beginning of a header: lines `Name: value`."""
        name = self._kept.partition(b":")[0]
        return len(self._kept) < _LONGEST_HEADER and re.fullmatch(rb"[A-Za-z-]*", name) is not None


def message_fields(message: bytes) -> AdapterMessage:
    """Return the JSON object of a message; an empty one if it has none."""
    try:
        found = json.loads(message.partition(_END)[2])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def framed(message: AdapterMessage) -> bytes:
    """Return a message as bytes."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return b"Content-Length: %d%s%s" % (len(body), _END, body)
