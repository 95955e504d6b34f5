"""`monitor trace ...` where gdb has rvtrace's commands itself: one line says so.

`rvtrace serve` has these commands for debuggers that have not; OpenOCD has a `trace history` of its own.
"""

from rvtrace_gdb.session.proxy.backend import Extension, ExtensionContext
from rvtrace_gdb.support.text import printable

_PREFIX = b"qRcmd,"
_NAMES = ("trace", "rvtrace")
_LONGEST = 200  # characters of a command that are repeated


class GdbCommands(Extension):
    """The extension that says what to type."""

    @property
    def prefixes(self) -> tuple[bytes, ...]:
        return (_PREFIX,)

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        try:
            name, *words = bytes.fromhex(packet[len(_PREFIX) :].decode()).decode().split(None, 1)
        except ValueError:  # no text, or none in it
            return None
        if name not in _NAMES:
            return None
        own = printable(" ".join(["trace", *words])[:_LONGEST]).rstrip()
        stub = f"; OpenOCD's own command is `monitor eval {own}`" if connection.live() else ""
        connection.print(f"rvtrace's commands are gdb's own here: type `{own}`{stub}")
        return b"OK"
