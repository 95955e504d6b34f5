"""The trace formats by name, which format a trace has, and the options of an encoder's trace."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.controlregs.trace_control import encoder_registers
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.formats.format import (
    AnyFormat,
    EncoderFormat,
    TraceOptions,
)
from rvtrace_gdb.support.errors import Progress, silent

if TYPE_CHECKING:  # each module has what `TraceFormat` says, for its own options and items
    from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
    from rvtrace_gdb.decode.branches.items import BranchItem
    from rvtrace_gdb.decode.etrace.items import Item as ETraceItem
    from rvtrace_gdb.decode.ntrace.items import Item as NTraceItem
    from rvtrace_gdb.decode.ntrace.options import Options as NTrace
    from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
    from rvtrace_gdb.session.capture.model import BranchPort, CapturedPort
    from rvtrace_gdb.session.formats import branches, ctr, etrace, ntrace, tandem
    from rvtrace_gdb.session.formats.format import TraceFormat

    _NTRACE: EncoderFormat[NTrace, NTraceItem] = ntrace
    _ETRACE: EncoderFormat[EtraceTraceOptions, ETraceItem] = etrace
    _TANDEM: TraceFormat[CapturedPort, tandem.GroupItem] = tandem
    _BRANCHES: TraceFormat[BranchPort, BranchItem] = branches
    _CTR: TraceFormat[CtrRegisterValues, ctr.RecordItem] = ctr

FORMATS = ("ntrace", "etrace", "tandem", "ctr", "branches")
"""The names of all formats: `TraceOptions.format`, and the module of this package that reads it."""
ENCODER_FORMATS = {int(encoder_registers.TeFormat.E_TRACE): "etrace"}
"""The formats of encoders, by trTeFormat. N-Trace refuses other values."""


def format_of(trace_options: TraceOptions) -> AnyFormat:
    """Return the format of a trace with the options *trace_options*."""
    module: AnyFormat = _module(trace_options.format)
    return module


def _module(name: str) -> Any:
    assert name in FORMATS, name
    return import_module(f"rvtrace_gdb.session.formats.{name}")


def options_of_encoder(encoder: CapturedEncoder) -> TraceOptions:
    """Return the decoder's options for an encoder, whoever else feeds the same sink. Raises `Unsupported`."""
    module: EncoderFormat[TraceOptions, Any] = _module(ENCODER_FORMATS.get(encoder.in_force.format, "ntrace"))
    trace_options: TraceOptions = module.options_of_encoder(encoder)
    return trace_options


def with_one_period(all_options: list[TraceOptions]) -> list[TraceOptions]:
    """Return the options without synchronization periods if these differ between encoders."""
    if all(trace_options == all_options[0] for trace_options in all_options):
        return all_options
    return [_module(trace_options.format).without_sync_period(trace_options) for trace_options in all_options]


def decode(
    data: bytes,
    program: Program,
    trace_options: TraceOptions,
    *,
    wrapped: bool = False,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> SourceHistories:
    """Return the histories of all harts in *data*, by source. Raises only what *progress* raises."""
    module = format_of(trace_options)
    return module.decoding(data, program, trace_options, wrapped=wrapped, stop_at_error=stop_at_error).result(progress)
