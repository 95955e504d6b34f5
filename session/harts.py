"""The bytes of one sink to the histories of the harts in it."""

from array import array
from dataclasses import dataclass, replace

from decode.history import Accounting, History
from decode.ntrace.dialect import DIALECTS
from decode.ntrace.options import Options
from decode.ntrace.streams import decode_streams
from decode.streams import Program
from session import decoding
from session.captured import CapturedEncoder, CapturedSink, Unregistered, printable
from session.errors import NoTrace, Unsupported
from support.progress import Progress, silent


@dataclass(frozen=True)
class Harts:
    """What ran, by hart, and what became of the sink's bytes. *notes*: what the user must know; no hart is missing."""

    histories: dict[int, History]
    accounting: Accounting
    notes: tuple[str, ...] = ()

    def number(self, wanted: int | None, likely: int | None = None) -> int:
        """The hart that is shown: *wanted*, else *likely* if it is here, else the first. Raises `NoTrace`."""
        if wanted is None:
            return likely if likely is not None and likely in self.histories else min(self.histories)
        if wanted not in self.histories:
            there = ", ".join(map(str, sorted(self.histories)))
            raise NoTrace(f"hart {wanted} is not in this trace, which has hart {there}")
        return wanted


def feeding(sink: CapturedSink, encoders: tuple[CapturedEncoder, ...]) -> list[CapturedEncoder]:
    """The encoders that feed *sink*. Raises `NoTrace` when none is known."""
    found = [encoder for encoder in encoders if encoder.in_force.name in sink.encoders]
    if not found:
        raise NoTrace(printable(f"no encoder is known that feeds {sink.in_force.name}"))
    return found


def options_of(encoders: list[CapturedEncoder]) -> Options:
    """How to read what *encoders* send into one sink, whoever sent it. Raises `Unsupported`."""
    all_options = [
        overridden(decoding.ntrace_options(encoder.in_force, alone=True), encoder.unregistered) for encoder in encoders
    ]
    for encoder, options in zip(encoders, all_options, strict=True):
        if options != all_options[0]:
            names = f"{encoders[0].in_force.name} and {encoder.in_force.name}"
            raise Unsupported(printable(f"{names} feed one sink and are set up differently: that cannot be read"))
    return all_options[0]


def overridden(options: Options, unregistered: Unregistered) -> Options:
    """*options* with what is known better than from the registers."""
    if unregistered.dialect is not None:
        options = replace(options, dialect=DIALECTS[unregistered.dialect])
    if unregistered.address_bits is not None:
        options = replace(options, address_bits=unregistered.address_bits)
    if unregistered.timestamp_bits is not None:
        options = replace(options, timestamp_bits=unregistered.timestamp_bits)
    return options


def decode(
    sink: CapturedSink,
    encoders: tuple[CapturedEncoder, ...],
    program: Program,
    *,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> Harts:
    """The histories of all harts whose encoders feed *sink*; a hart of which nothing was found has an empty one.

    Raises `Unsupported`, `NoTrace`, and what *progress* raises.
    """
    fed = feeding(sink, encoders)
    options = replace(options_of(fed), stop_at_error=stop_at_error)
    found = decode_streams(sink.data, program, options, wrapped=sink.wrapped, progress=progress)
    by_source = dict(found.histories)
    sources = _sources(fed, options, by_source)
    histories = {hart: by_source.pop(src) if src in by_source else _nothing() for src, hart in sources}
    return Harts(histories, found.accounting, tuple(_notes(fed, options, by_source)))


def _sources(fed: list[CapturedEncoder], options: Options, found: dict[int, History]) -> list[tuple[int, int]]:
    """(SRC, hart) of the encoders. One that is alone may not know the SRC it sends."""
    if not options.src_bits:
        return [(0, fed[0].hart)]
    own = [(encoder.in_force.src_id & (1 << options.src_bits) - 1, encoder.hart) for encoder in fed]
    if len(own) == 1 and own[0][0] not in found and found:
        return [(max(found, key=lambda src: found[src].instructions), fed[0].hart)]
    return own


def _nothing() -> History:
    return History([], array("Q"), 0, (), (), Accounting(0, 0, 0, 0))


def _notes(fed: list[CapturedEncoder], options: Options, strangers: dict[int, History]) -> list[str]:
    lines = []
    if not options.src_bits and len(fed) > 1:
        names = ", ".join(encoder.in_force.name for encoder in fed)
        lines.append(f"warning: {names} feed one sink, without SRC in their messages: their harts cannot be told apart")
    unknown = {src: history.instructions for src, history in strangers.items() if history.instructions}
    if unknown:
        what = f"{sum(unknown.values())} instructions of SRC {', '.join(map(str, sorted(unknown)))}"
        lines.append(f"warning: {what} are in the trace too, which no known encoder sends")
    return [printable(line) for line in lines]
