"""The words for the state of an encoder, and which of them the status line takes for an encoder at rest."""

import itertools
from dataclasses import replace

from rvtrace_gdb.console.gdb_driver.state import TraceState
from rvtrace_gdb.controlregs.ctr.procedures import CtrStatus
from rvtrace_gdb.controlregs.trace_control.procedures import EncoderStatus
from rvtrace_gdb.session.sources import ctr
from rvtrace_gdb.session.sources.qemu.trace import encoders
from rvtrace_gdb.session.sources.trace_control_lines import _encoder_state
from rvtrace_gdb.support.text import Line
from tests.session.captures import SMALL, WITH_RECORDS

FROZEN = 1 << 31
"""Control Transfer Records 1.0, sctrstatus: FROZEN."""


def changes(line: str) -> bool:
    """Whether the status line takes the trace for one that may change."""
    assert isinstance(line, Line)
    [(name, state)] = line.facts["encoders"]
    return TraceState(encoders={name: state}).tracing


def test_an_encoder_that_is_enabled_may_trace() -> None:
    for active, enabled, tracing, lost, armed in itertools.product((False, True), repeat=5):
        status = EncoderStatus("encoder0", active, enabled, tracing, lost)
        state = _encoder_state(status, True, armed=armed)
        assert TraceState(encoders={"encoder0": state}).tracing == (active and enabled), state


def test_an_encoder_that_does_not_answer_is_as_it_was() -> None:
    for tracing in (False, True):
        assert TraceState(encoders={"encoder0": _encoder_state(None, tracing, armed=False)}).tracing == tracing


def test_qemu_traces_until_it_is_stopped() -> None:
    for tracing in (False, True):
        [line] = encoders(SMALL.encoders, tracing=tracing)
        assert changes(line) == tracing


def test_a_hart_records_until_it_freezes() -> None:
    records = WITH_RECORDS.records[0]
    for status, recording in ((0, True), (FROZEN, False)):
        found = ctr.status(records, CtrStatus(replace(records.in_force, status=status), 1))
        states = [line for line in found if isinstance(line, Line) and "encoders" in line.facts]
        assert changes(states[-1]) == recording
    assert not changes(ctr.recording(records.in_force)), "of a capture"
