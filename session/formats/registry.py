"""The trace formats by name: the options of an encoder's trace, its decoding, its items."""

from importlib import import_module
from typing import Any

from rvtrace_gdb.controlregs.trace_control import encoder_registers
from rvtrace_gdb.decode.history.builder import Streams
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.formats.format import Decoding, EncoderFormat, Format, How, Itemizer, NumberedItems, Wording
from rvtrace_gdb.support.errors import Progress, silent

FORMATS = ("ntrace", "etrace", "tandem", "ctr")
"""The names of all formats: `How.format`, and the module of this package that reads it."""
ENCODER_FORMATS = {int(encoder_registers.Format.E_TRACE): "etrace"}
"""The formats of encoders, by trTeFormat. N-Trace refuses other values."""


def format_of(how: How) -> Format:
    """Return the format of a trace with the options *how*."""
    module: Format = _module(how.format)
    return module


def _module(name: str) -> Any:
    assert name in FORMATS, name
    return import_module(f"rvtrace_gdb.session.formats.{name}")


def how_of(encoder: CapturedEncoder) -> How:
    """Return the decoder's options for an encoder, whoever else feeds the same sink. Raises `Unsupported`."""
    module: EncoderFormat = _module(ENCODER_FORMATS.get(encoder.in_force.format, "ntrace"))
    how: How = module.how_of(encoder)
    return how


def with_one_period(hows: list[How]) -> list[How]:
    """Return the options without synchronization periods if these differ between encoders."""
    if all(how == hows[0] for how in hows):
        return hows
    return [_module(how.format).without_sync_period(how) for how in hows]


def decode(
    data: bytes,
    program: Program,
    how: How,
    *,
    wrapped: bool = False,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> Streams:
    """Return the histories of all harts in *data*, by source. Raises only what *progress* raises."""
    return decoding(data, program, how, wrapped=wrapped, stop_at_error=stop_at_error).result(progress)


def decoding(
    data: bytes, program: Program, how: How, *, wrapped: bool = False, stop_at_error: bool = False
) -> Decoding:
    """Return the decoding of *data*, which can be interrupted and continued."""
    return format_of(how).decoding(data, program, how, wrapped=wrapped, stop_at_error=stop_at_error)


def has_sources(how: How) -> bool:
    """Whether messages carry their source."""
    return format_of(how).has_sources(how)


def itemizer(how: How, xlen: int, *, wrapped: bool = False) -> Itemizer:
    """Return an object that splits such a trace into items."""
    return format_of(how).itemizer(how, xlen, wrapped=wrapped)


def wording(how: How) -> Wording:
    """Return an object that writes such items as text."""
    return format_of(how).wording(how)


def numbered_items(
    data: bytes, how: How, xlen: int, *, wrapped: bool = False, progress: Progress = silent
) -> NumberedItems:
    """Return the items of *data* by number. Raises what *progress* raises."""
    return format_of(how).numbered_items(data, how, xlen, wrapped=wrapped, progress=progress)
