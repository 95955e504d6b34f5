"""What `rvtrace encode` needs of an encoder, whatever its format: a log in, pieces of a trace out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice

from rvtrace_gdb.decode.executed.reading import Executed
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.ingress import Block, Trap
from rvtrace_gdb.session.formats import How

_BATCH = 4096  # blocks and traps


class Encoding(ABC):
    """A log on its way through an encoder, and what there was in it."""

    messages_are = "messages"
    contexts = True
    """Whether contexts are wanted."""

    def __init__(self) -> None:
        self._traps = self.contexts_seen = self._messages = self._bytes = 0

    @property
    @abstractmethod
    def how(self) -> How:
        """How to read what was encoded; complete only when everything is."""

    @abstractmethod
    def start(self) -> bytes:
        """Tracing starts. The bytes that are sent."""

    @abstractmethod
    def retire(self, items: Sequence[Block | Trap | Context]) -> bytes:
        """The next items."""

    @abstractmethod
    def stop(self) -> bytes:
        """Tracing stops."""

    @abstractmethod
    def notes(self, executed: Executed) -> list[str]:
        """What was asked for and is not there, or has no effect."""

    def pieces(self, executed: Executed) -> Iterator[bytes]:
        """The trace. Raises LogError."""
        yield self._counted(self.start())
        items = executed.items()
        while batch := list(islice(items, _BATCH)):
            self._traps += sum(isinstance(item, Trap) for item in batch)
            self.contexts_seen += sum(isinstance(item, Context) for item in batch)
            yield self._counted(self.retire(batch))
        yield self._counted(self.stop())

    def summary(self, executed: Executed) -> str:
        """One line."""
        instructions = executed.instructions
        traps = f", {self._traps} trap{'s' if self._traps > 1 else ''}" if self._traps else ""
        return (
            f"{instructions} instructions{traps}: {self._messages} {self.messages_are}, {self._bytes} bytes,"
            f" {8 * self._bytes / max(instructions, 1):.3f} bits per instruction"
        )

    def facts(self, executed: Executed) -> dict[str, object]:
        """As `summary`, for programs. *items*: messages or packets."""
        instructions = executed.instructions
        density = round(8 * self._bytes / max(instructions, 1), 6)
        return {
            "instructions": instructions, "traps": self._traps, "items": self._messages, "bytes": self._bytes,
            "bits-per-instruction": density,
        }  # fmt: skip

    def count(self, messages: int) -> None:
        """So many more were sent."""
        self._messages += messages

    def _counted(self, data: bytes) -> bytes:
        self._bytes += len(data)
        return data
