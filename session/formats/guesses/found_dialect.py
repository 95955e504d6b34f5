"""Which dialect of N-Trace raw bytes are of, where nobody says it and their messages do.

SiFive's encoders can send events of a hart in place of a flow. N-Trace has no such messages: with them, and without a
flow that contradicts it, the bytes are of that dialect. A stray message is not enough, which one flipped bit makes.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from rvtrace_gdb.decode.history.events import StartReason
from rvtrace_gdb.decode.ntrace.event_step import is_hart_event
from rvtrace_gdb.decode.ntrace.framing import FrameBatch, MessageFramer, is_idle
from rvtrace_gdb.decode.ntrace.in_circuit import IN_CIRCUIT
from rvtrace_gdb.decode.ntrace.messages import LAYOUTS, MalformedMessage, Message
from rvtrace_gdb.decode.ntrace.options import SIFIVE, Options

if TYPE_CHECKING:
    from rvtrace_gdb.session.formats.imports.imported_encoders import ImportedFrames

_LOOKED_AT = 1 << 16  # bytes
SETTLED = 64
"""Bytes of a stream after which its dialect is clear: at least three messages."""
_SHARE = 4  # events are at least one message in so many, and as many times more than what is no message


def with_found_dialect(options: Options, data: bytes, *, wrapped: bool = False) -> Options:
    """Return the options with the dialect that the beginning of *data* shows to be there; unchanged if it shows none.
    """
    of_sifive = replace(options, dialect=SIFIVE)
    events, flow, others = 0, 0, 0
    for batch in MessageFramer(wrapped=wrapped).feed(data[:_LOOKED_AT]):
        for frame in batch.frames() if isinstance(batch, FrameBatch) else ():
            if is_idle(frame):
                continue
            try:
                message = of_sifive.message(frame)
            except MalformedMessage:
                others += 1
                continue
            if _is_event(message):
                events += 1
            elif message.tcode in LAYOUTS:
                flow += 1
            elif not is_hart_event(message):
                others += 1
            elif not flow:
                events += 1  # data that was written says nothing of the encoder of a flow
    found = events * _SHARE >= events + flow + others and events >= _SHARE * others and events
    return of_sifive if found else options


def with_dialect_in_frames(options: Options, data: bytes, frames: "ImportedFrames") -> Options:
    """Return the options with the dialect that *data* in CoreSight frames shows to be there, by any of its ATB IDs."""
    from rvtrace_gdb.decode.coresight.demultiplexed import DemultiplexedTrace  # few traces are in frames

    trace = DemultiplexedTrace(frames.form, data[:_LOOKED_AT])
    found = (with_found_dialect(options, trace.stream(each), wrapped=True)
             for each in trace.atb_ids if frames.is_chosen(each))  # fmt: skip
    return next((each for each in found if each != options), options)


def _is_event(message: Message) -> bool:
    """Whether a message is an event that only SiFive's encoders send."""
    if message.tcode in IN_CIRCUIT:
        return is_hart_event(message)
    return SIFIVE.starts.get(message.fields.get("sync", -1)) is StartReason.PC_SAMPLE
