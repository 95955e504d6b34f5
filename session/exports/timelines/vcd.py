"""What ran as a Value Change Dump, which GTKWave, Surfer and simulators show next to other waveforms: IEEE 1364.

A scope for each hart, with the signals of `waveforms.SIGNALS`; PyPI pyvcd writes the form. `function` is of GTKWave's
type `string`.
"""

import io
from heapq import merge
from operator import attrgetter
from typing import Any, BinaryIO

from rvtrace_gdb.session import version
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.exports.timelines.waveform_axis import WaveformAxis, waveform_axis
from rvtrace_gdb.session.exports.timelines.waveforms import SIGNALS, UNKNOWN, HartSignals
from rvtrace_gdb.support.errors import Progress

FORM = "vcd"


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the waveforms of all harts. Raises LibraryMissing, TooManyInstructions."""
    return write_waveforms(trace, file, FORM, progress)


def write_waveforms(trace: ExportedTrace, file: BinaryIO, form: str, progress: Progress) -> Written:
    """Write a dump for the form of that name. Raises LibraryMissing, TooManyInstructions."""
    axis = waveform_axis(form, trace.harts)
    writer = library("vcd.writer", "pyvcd", form)
    harts = [HartSignals(hart, axis, number) for number, hart in enumerate(trace.harts)]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=False)
    try:
        with _dump_writer(writer, text, trace, axis) as dump:
            signals = [_variables(writer, dump, hart) for hart in trace.harts]
            for place, number, changes in merge(*(it.levels(progress) for it in harts), key=attrgetter("place")):
                variables = signals[number]
                for signal, level in changes:
                    dump.change(variables[signal], place, level)
        text.flush()
    finally:
        text.detach()
    return Written(None, axis.left_out)


def _dump_writer(writer: Any, text: io.TextIOWrapper, trace: ExportedTrace, axis: WaveformAxis) -> Any:
    """Return a writer of the library. The date is that of the trace, so that the same trace is the same file."""
    begin = min((next(axis.places(hart)) for hart in trace.harts if hart.part), default=0)
    unit = "a nanosecond is a tick of the trace's time; within it, instructions are in order"
    return writer.VCDWriter(
        text, timescale=axis.timescale, date=trace.session.capture().created, version=version.tool(),
        comment=unit if axis.steps else "times are numbers of instructions", init_timestamp=begin, check_values=False,
    )  # fmt: skip


def _variables(writer: Any, dump: Any, trace: ExportedTrace) -> list[Any]:
    """Register the signals of a hart."""
    scope, xlen = ("rvtrace", f"hart{trace.hart}"), trace.program.base.xlen
    return [
        dump.register_var(scope, it.name, "wire", size=xlen if it.bits < 0 else it.bits, init=UNKNOWN)
        if it.bits
        else dump.register_var(scope, it.name, "string", init="")
        for it in SIGNALS
    ]
