"""Traces decoded twice, with the compiled kernel and without: whatever the bytes are, the histories are equal."""

from __future__ import annotations

import os

from rvtrace_gdb.decode.kernel.loading import absence
from rvtrace_gdb.session.formats import registry
from tests.decode.kernel.histories import Shape, shape
from tests.fuzz.exercise import Exercise, Input
from tests.fuzz.kinds.etrace import DataTrace, Encapsulated, ETracePackets
from tests.fuzz.kinds.hart_events import HartEvents
from tests.fuzz.kinds.ntrace import NTrace
from tests.fuzz.kinds.trace_checks import Trace, Traces

_ROUNDS = 3
"""The bytes come so many times, so that the steps are known."""


class WithAndWithoutKernel(Exercise):
    """The traces of the other kinds."""

    def __init__(self) -> None:
        super().__init__()
        self._traces: dict[str, Trace] = {}
        kinds: list[Traces] = [NTrace(), HartEvents(), ETracePackets(), Encapsulated(), DataTrace()]
        for kind in kinds:
            name = type(kind).__name__
            self._traces |= {f"{name} {own}": trace for own, trace in kind.traces.items()}
        self.seeds = [Input(name, trace.data) for name, trace in self._traces.items()]

    def run(self, variant: str, data: bytes) -> None:
        trace = self._traces[variant]._replace(data=data * _ROUNDS)
        if not absence():
            compiled = _shapes(trace)
            os.environ["RVTRACE_KERNEL"] = "0"
            try:
                assert compiled == _shapes(trace), "another history than without the kernel"
            finally:
                del os.environ["RVTRACE_KERNEL"]


def _shapes(trace: Trace) -> dict[int, Shape]:
    histories = registry.decode(trace.data, trace.program, trace.trace_options, wrapped=trace.wrapped).histories
    return {source: shape(history) for source, history in histories.items()}
