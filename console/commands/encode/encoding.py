"""The interface of encoders for `rvtrace encode`: they convert a log to pieces of a trace, which go to a destination.

The trace goes to a file of raw bytes, to a capture, or to the listing of `--dump`.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from rvtrace_gdb.decode.coresight.formatter import FrameFormatter
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions
from rvtrace_gdb.support.files import atomic_output
from rvtrace_gdb.support.text import counted
from rvtrace_gdb.views import dump, json_rows

_BATCH = 4096  # blocks and traps


class Encoding(ABC):
    """The encoding of a log in a format, with its counts."""

    messages_are = "messages"
    contexts = True
    """Whether the encoder sends contexts."""

    def __init__(self) -> None:
        self._traps = self.contexts_seen = self._messages = self._bytes = 0

    @property
    @abstractmethod
    def trace_options(self) -> EncoderTraceOptions:
        """How to decode the trace; complete only after everything is encoded."""

    @abstractmethod
    def start(self) -> bytes:
        """Start tracing, and return the bytes that are sent."""

    @abstractmethod
    def retire(self, items: Sequence[Block | IngressTrap | ProgramContext]) -> bytes:
        """Encode the next items, and return the bytes that are sent."""

    @abstractmethod
    def stop(self) -> bytes:
        """Stop tracing, and return the bytes that are sent."""

    @abstractmethod
    def notes(self, executed: Executed) -> list[str]:
        """Return notes about options without effect, and about data that the log does not have."""

    def pieces(self, executed: Executed) -> Iterator[bytes]:
        """Return the trace in pieces. Raises LogError."""
        yield self._count_bytes(self.start())
        items = executed.items()
        while batch := list(islice(items, _BATCH)):
            self._traps += sum(isinstance(item, IngressTrap) for item in batch)
            self.contexts_seen += sum(isinstance(item, ProgramContext) for item in batch)
            yield self._count_bytes(self.retire(batch))
        yield self._count_bytes(self.stop())

    def summary(self, executed: Executed) -> str:
        """One line."""
        instructions = executed.instructions
        traps = f", {self._traps} trap{'s' if self._traps > 1 else ''}" if self._traps else ""
        return (
            f"{counted(instructions, 'instruction')}{traps}: {counted(self._messages, self.messages_are[:-1])},"
            f" {counted(self._bytes, 'byte')},"
            f" {8 * self._bytes / max(instructions, 1):.3f} bits per instruction"
        )

    def facts(self, executed: Executed) -> dict[str, object]:
        """Return the summary as JSON fields. *items*: messages or packets."""
        instructions = executed.instructions
        density = round(8 * self._bytes / max(instructions, 1), 6)
        return {
            "instructions": instructions, "traps": self._traps, "items": self._messages, "bytes": self._bytes,
            "bits-per-instruction": density,
        }  # fmt: skip

    def count(self, messages: int) -> None:
        """Count messages that were sent."""
        self._messages += messages

    def _count_bytes(self, data: bytes) -> bytes:
        self._bytes += len(data)
        return data


@dataclass(frozen=True)
class EncodedLog:
    """The log that is encoded, and where the trace goes. *format*: None: detected. *hart*: None: the only one.

    *start*: where it begins, None: at the program's first instruction. *limit*: of instructions. *output*: a file,
    None: none is written. *dump*: the messages are printed. *frames*: the trace is put into CoreSight frames.
    """

    file: str
    format: str | None
    hart: int | None
    start: str | None
    limit: int | None
    output: str | None
    dump: bool
    frames: ImportedFrames | None = None


@contextmanager
def destination(
    request: EncodedLog, capture_of: Callable[[str, bytes], Capture]
) -> Iterator[Callable[[bytes], object]]:  # fmt: skip
    """Yield the function that takes the trace, which writes it to a file, complete at the end of this context.

    *capture_of*: makes a capture for this file.
    """
    if request.frames is not None:
        with destination(dataclasses.replace(request, frames=None), capture_of) as write:
            (atb_id,) = request.frames.harts
            formatter = FrameFormatter(request.frames.form)
            yield lambda data: write(formatter.put(atb_id, data))
            write(formatter.flush())
    elif request.output is None:
        yield lambda data: None
    elif not request.output.endswith(".rvt"):
        with atomic_output(request.output) as file:
            yield file.write
    else:
        data = bytearray()
        yield data.extend
        target = f"no target (encoded from {PurePath(request.file).name})"
        capture_file.save(dataclasses.replace(capture_of(request.output, bytes(data)), target=target), request.output)


def written(pieces: Iterator[bytes], write: Callable[[bytes], object]) -> Iterator[bytes]:
    """Return the pieces of a trace after they were written."""
    for piece in pieces:
        write(piece)
        yield piece


def items(
    pieces: Iterator[bytes], itemizer: dump.AnyItemizer[dump.One], wording: dump.AnyWording[dump.One], *, json: bool
) -> Iterator[str]:
    """Return the lines of the pieces of a trace, as `rvtrace dump` prints them."""
    for number, item, line in dump.lines_of(pieces, itemizer, wording):
        yield json_rows.message("", number, item.offset, line.partition(" ")[2]) if json else line
