"""The procedures for a graph of components, chosen by the version of their interface: 1.0, or the pre-ratification one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.sifive_v0 import NO_COMP_TYPE
from rvtrace_gdb.controlregs.sifive_v0 import lifecycle as v0_lifecycle
from rvtrace_gdb.controlregs.sifive_v0 import procedures as v0_procedures
from rvtrace_gdb.controlregs.sifive_v0.capabilities import capabilities as of_version_0
from rvtrace_gdb.controlregs.trace_control import lifecycle
from rvtrace_gdb.controlregs.trace_control import procedures as of_trace_control
from rvtrace_gdb.controlregs.trace_control.capabilities import Capabilities
from rvtrace_gdb.controlregs.trace_control.capabilities import capabilities as of_1_0
from rvtrace_gdb.controlregs.trace_control.procedures import DrainResults, GraphStatus, StopResult
from rvtrace_gdb.controlregs.trace_control.request import GraphInForce, GraphRequest, PibInForce, SinkInForce
from rvtrace_gdb.support.errors import Progress, silent


class Start(Protocol):
    """The signature of `trace_control.procedures.start`."""

    def __call__(
        self,
        graph: Graph,
        request: GraphRequest,
        progress: Progress = ...,
        receive: Callable[[PibInForce], None] = ...,
    ) -> GraphInForce: ...


class Stop(Protocol):
    """The signature of `trace_control.procedures.stop`."""

    def __call__(self, graph: Graph, progress: Progress = ...) -> StopResult: ...


class DrainAll(Protocol):
    """The signature of `trace_control.procedures.drain_all`."""

    def __call__(self, graph: Graph, in_force: GraphInForce | None = ..., progress: Progress = ...) -> DrainResults: ...


class Resume(Protocol):
    """The signature of `trace_control.procedures.resume`."""

    def __call__(
        self, graph: Graph, in_force: GraphInForce, progress: Progress = ..., off: Collection[str] = ...
    ) -> None: ...


@dataclass(frozen=True)
class Procedures:
    """The procedures for a graph, from the modules `procedures` and `lifecycle` of one version."""

    start: Start
    stop: Stop
    raise_failures: Callable[[StopResult], None]
    drain_all: DrainAll
    resume: Resume
    read_status: Callable[[Graph], GraphStatus]
    moved_buffer: Callable[[Component, SinkInForce], str | None]
    changed_encoder: Callable[[Graph, GraphInForce], tuple[str, str] | None]


_RATIFIED = Procedures(
    of_trace_control.start,
    of_trace_control.stop,
    of_trace_control.raise_failures,
    of_trace_control.drain_all,
    of_trace_control.resume,
    of_trace_control.read_status,
    lifecycle.moved_buffer,
    lifecycle.changed_encoder,
)
_PRE_RATIFIED = Procedures(
    v0_procedures.start,
    v0_procedures.stop,
    v0_procedures.raise_failures,
    v0_procedures.drain_all,
    v0_procedures.resume,
    v0_procedures.read_status,
    v0_lifecycle.moved_buffer,
    v0_lifecycle.changed_encoder,
)


def procedures(graph: Graph) -> Procedures:
    """Return the procedures for *graph*, whose components all have the same version."""
    return _RATIFIED if graph.version else _PRE_RATIFIED


def capabilities(component: Component, progress: Progress = silent) -> Capabilities:
    """Return what *component* can do, whatever its version; see `controlregs.trace_control.capabilities`."""
    return (of_version_0 if component.block.comp_type == NO_COMP_TYPE else of_1_0)(component, progress)
