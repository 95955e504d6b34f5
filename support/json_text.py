"""JSON (RFC 8259) that somebody else may have written: its value, or where it is none."""

import json
from typing import Any

from rvtrace_gdb.support.errors import RvtraceError


class NotJson(RvtraceError):
    """A text that is not JSON, or none that can be read; the message continues a line that begins with its name."""


def json_value(text: bytes | str) -> Any:
    """Return the value of a JSON text, whose bytes are UTF-8. Raises `NotJson`, which says where."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"is not JSON: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"is not JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise NotJson("is not JSON that can be read: too deep, or a number is too long") from None
