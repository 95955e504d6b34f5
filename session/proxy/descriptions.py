"""The target descriptions of one gdb: read from the stub, kept by process (in QEMU, harts of different kinds)."""

from typing import TYPE_CHECKING

from rvtrace_gdb.session.proxy.description import Description
from rvtrace_gdb.session.proxy.packets import escaped_within, unescape

if TYPE_CHECKING:
    from rvtrace_gdb.session.proxy.conversation import Conversation

READ = b"qXfer:features:read:"
TARGET = b"target.xml"
_PIECE = 0xFFB  # bytes: a little less than the smallest PacketSize of OpenOCD and QEMU


class Descriptions:
    """*told*: gdb has read one that has our register, and may be told its value with a stop."""

    def __init__(self, it: "Conversation") -> None:
        self._it = it
        self._read: dict[str, Description] = {}
        self._g_sizes: dict[str, int] = {}
        self._live: dict[str | None, bytes] = {}  # what g was answered last in the present, by thread
        self._last: Description | None = None
        self.told = False

    def current(self) -> Description:
        """Of gdb's current thread. Raises StubGone."""
        found = self._read.get(self._process())
        if found is None:
            found = self._read[self._process()] = self._fetch() or self._assumed()
        return found

    def ours(self) -> int | None:
        """The number of our register as far as it is known."""
        found = self._read.get(self._process()) or self._last
        return found.ours if found else None

    def serve(self, body: bytes) -> bool:
        """Answers the reading of a piece of target.xml; False: the stub is to do that. Raises StubGone."""
        if not body.startswith(READ + TARGET + b":"):
            return False
        try:
            offset, size = (int(number, 16) for number in body[len(READ + TARGET) + 1 :].split(b","))
        except ValueError:
            return False
        if offset == 0 or self._last is None:
            found = self._fetch()
            if found is None:
                return False
            self._last = self._read[self._process()] = found
        document = self._last.document
        escaped, length = escaped_within(document[offset:], size)
        is_last = offset + length >= len(document)
        self.told = self.told or (is_last and self._last.ours is not None)
        self._it.send((b"l" if is_last else b"m") + escaped)
        return True

    def note_g(self, body: bytes) -> None:
        """The stub's answer to g: how long it is. One that breaks off says nothing."""
        if body and body[:1] != b"E":
            try:
                body = unescape(body)
            except ValueError:
                return
            self._it.shared.unreadable = False
            self._live[self._it.threads.current] = body
            self._g_sizes[self._process()] = len(body) // 2

    def remember_live(self) -> bool:
        """What the target says now of the current thread is known even when it is gone. Raises StubGone.

        False: it says nothing.
        """
        answer = self._it.transact(b"g")
        self._it.shared.unreadable = True
        self.note_g(answer)
        return not self._it.shared.unreadable

    def forget_live(self) -> None:
        """What the target said does not hold any more."""
        self._live.clear()

    def live_g(self) -> bytes:
        """What g was answered last in the present for the current thread; nothing where that is not known."""
        return self._live.get(self._it.threads.current, b"")

    def live_values(self) -> dict[str, int]:
        """The registers of the current thread as they were last in the present, by name."""
        return self.current().values(self.live_g())

    def g_size(self) -> int:
        """Bytes of the stub's answer to g. Raises StubGone."""
        if self._process() not in self._g_sizes and self._it.live():
            self.note_g(self._it.transact(b"g"))
        return self._g_sizes.get(self._process()) or self.current().pc_size()

    def _process(self) -> str:
        return (self._it.threads.current or "").rpartition(".")[0]

    def _assumed(self) -> Description:
        """What gdb assumes of a stub that does not describe its target, or for a capture alone."""
        xlen = self._it.shared.xlen
        if self._it.live():
            answer = self._it.transact(b"g")
            xlen = 32 if len(answer) // 2 in (33 * 4, 33 * 4 + 32 * 8) else 64
        found = self._of_trace() if self._it.stub is None else Description.of_hart(xlen)
        return found if self._it.stub is None else Description(b"", found.registers_but_ours(), None)

    def _fetch(self) -> Description | None:
        if self._it.stub is None:
            known = self._read.get(self._process()) or self._last
            return known or self._of_trace()
        document = self._document(TARGET)
        return Description.of(document, self._document) if document else None

    def _of_trace(self) -> Description:
        """Of a capture alone."""
        with self._it.lock:
            return Description.of_hart(self._it.shared.xlen, self._it.past.told(self._it.hart))

    def _document(self, annex: bytes) -> bytes:
        """All of a document of the stub; nothing where it has none."""
        parts: list[bytes] = []
        length = 0
        while True:
            answer = self._it.transact(READ + annex + b":%x,%x" % (length, _PIECE))
            if answer[:1] not in (b"l", b"m"):
                return b""
            parts.append(answer[1:])
            length += len(answer) - 1
            if answer[:1] == b"l" or len(answer) == 1:
                return b"".join(parts)
