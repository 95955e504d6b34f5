"""A trace that is decoded while its bytes arrive, in bounded memory: what a probe delivers from a chip's pins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.arriving import ArrivingBuilder, Piece, is_loss
from rvtrace_gdb.decode.etrace.streams import StreamDecoder as ETraceDecoder
from rvtrace_gdb.decode.history import EventKind
from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.ntrace.streams import StreamDecoder as NTraceDecoder
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.decode.tandem.arriving import ArrivingDecoder as TandemDecoder
from rvtrace_gdb.session import formats, harts
from rvtrace_gdb.session.captured import Capture, TandemPort
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.etrace import ETrace
from rvtrace_gdb.session.formats import How
from rvtrace_gdb.support.lines import warning
from rvtrace_gdb.support.text import printable

_PIECE = 1 << 14
"""Bytes decoded before what they say is given away: bounds memory, and how long the first line has to wait."""


class Source(NamedTuple):
    """Who may speak in a stream. *harts*: by source; None: whoever does, numbered so. *alone*: nobody else can.

    *bytes_tell*: messages say whose they are.
    """

    how: How | TandemPort
    harts: Mapping[int, int] | None
    alone: bool


def source_of(capture: Capture) -> Source:
    """Who feeds the first sink of *capture*, and how what they send is read. Raises Unsupported, NoTrace."""
    fed = harts.feeding(capture.sinks[0], capture.encoders)
    how = harts.options_of(fed)
    if isinstance(how, ETrace | NTrace):
        told = formats.tells_sources(how)
        return Source(how, dict(harts.sources(fed, told)), alone=not told or len(fed) == 1)
    raise Unsupported("the records of a hart do not come as a stream")


@dataclass
class Counts:
    """So far. *losses*: gaps and bytes that could not be used, of which there is an event."""

    bytes: int = 0
    instructions: int = 0
    gaps: int = 0
    losses: int = 0
    problem: str | None = None
    """The first contradiction of trace and program."""
    strangers: dict[int, int] = field(default_factory=dict)
    """Instructions of those who are not known, by source."""


class Arrived(NamedTuple):
    """What a hart did next."""

    hart: int
    piece: Piece


class _Decoder(Protocol):
    def feed(self, data: bytes) -> None: ...
    def finish(self) -> object: ...


class Following:
    """`feed` it with what arrives, and `finish` it. *program*: what runs. *wrapped*: the stream starts in a message.

    No bytes make it fail.
    """

    def __init__(self, source: Source, program: Program, *, wrapped: bool = False, stop_at_error: bool = False) -> None:
        self.counts = Counts()
        self._source = source
        self._builders: dict[int, ArrivingBuilder] = {}
        self._decoder = _decoder(source.how, program, self._builder, wrapped, stop_at_error)

    @property
    def started(self) -> list[int]:
        """The sources for which there was a place where decoding could start."""
        return sorted(source for source, builder in self._builders.items() if builder.started)

    def feed(self, data: bytes) -> Iterator[Arrived]:
        """What the next bytes say, in order of the harts for each piece of them."""
        for at in range(0, len(data), _PIECE):
            part = data[at : at + _PIECE]
            self._decoder.feed(part)
            self.counts.bytes += len(part)
            yield from self._taken(last=False)

    def finish(self) -> Iterator[Arrived]:
        """The end: what is left is decoded as far as it is determined."""
        self._decoder.finish()
        yield from self._taken(last=True)

    def _builder(self, source: int) -> ArrivingBuilder:
        return self._builders.setdefault(source, ArrivingBuilder())

    def _taken(self, *, last: bool) -> Iterator[Arrived]:
        """Of who was never understood there is nothing to say: noise has any source."""
        for source, builder in sorted(self._builders.items()):
            hart = source if self._source.harts is None else self._source.harts.get(source)
            for event in builder.fresh():
                if hart is not None and is_loss(event):
                    self.counts.losses += 1
                if hart is not None and event.kind is EventKind.MISMATCH and self.counts.problem is None:
                    self.counts.problem = event.text
            piece = builder.take(last=last)
            if hart is None:
                self._stranger(source, piece.instructions)
            elif builder.started and (piece.end > piece.begin or piece.events):
                self.counts.instructions += piece.instructions
                self.counts.gaps += piece.gaps
                yield Arrived(hart, piece)

    def _stranger(self, source: int, instructions: int) -> None:
        if instructions:
            self.counts.strangers[source] = self.counts.strangers.get(source, 0) + instructions


def problem(counts: Counts) -> str | None:
    """A line when trace and program contradict each other."""
    return None if counts.problem is None else warning(f"{printable(counts.problem)}: is this the program that ran?")


def strangers(counts: Counts) -> str | None:
    """A line when others than the known encoders speak."""
    if not counts.strangers:
        return None
    who = ", ".join(map(str, sorted(counts.strangers)))
    return warning(f"SRC {who} is in the stream, too, which no known encoder sends")


def _decoder(
    how: How | TandemPort, program: Program, builders: "_Builders", wrapped: bool, stop_at_error: bool
) -> _Decoder:
    if isinstance(how, TandemPort):
        return TandemDecoder(program, how.parameters, builders(0), wrapped=wrapped, stop_at_error=stop_at_error)
    if isinstance(how, ETrace):
        options = replace(how.options, stop_at_error=stop_at_error)
        return ETraceDecoder(program, options, how.encapsulation, wrapped=wrapped, builders=builders)
    options_of_n = replace(how, stop_at_error=stop_at_error)
    return NTraceDecoder(program, options_of_n, wrapped=wrapped, builders=builders)


class _Builders(Protocol):
    def __call__(self, source: int, /) -> ArrivingBuilder: ...
