"""The procedures for a graph of components, chosen by the version of their interface: 1.0, or the pre-ratification one.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.sifive_v0 import NO_COMP_TYPE
from rvtrace_gdb.controlregs.sifive_v0 import procedures as pre_ratified
from rvtrace_gdb.controlregs.sifive_v0.capabilities import capabilities as of_version_0
from rvtrace_gdb.controlregs.trace_control import procedures as ratified
from rvtrace_gdb.controlregs.trace_control.capabilities import Capabilities
from rvtrace_gdb.controlregs.trace_control.capabilities import capabilities as of_1_0
from rvtrace_gdb.controlregs.trace_control.procedures import DrainResults, GraphStatus, StopResult
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibSettings, SinkSettings
from rvtrace_gdb.support.errors import Progress, silent


class Procedures(Protocol):
    """The procedures for a graph: the module `procedures` of one version. That of 1.0 explains them."""

    def start(
        self,
        graph: Graph,
        request: GraphRequest,
        progress: Progress = ...,
        receive: Callable[[PibSettings], None] = ...,
    ) -> GraphSettings: ...

    def stop(self, graph: Graph, progress: Progress = ...) -> StopResult: ...

    def raise_failures(self, stopped: StopResult) -> None: ...

    def drain_all(
        self, graph: Graph, in_force: GraphSettings | None = ..., progress: Progress = ...
    ) -> DrainResults: ...

    def resume(
        self, graph: Graph, in_force: GraphSettings, progress: Progress = ..., off: Collection[str] = ...
    ) -> None: ...

    def give_back(self, graph: Graph, progress: Progress = ...) -> list[str]: ...

    def read_status(self, graph: Graph) -> GraphStatus: ...

    def moved_buffer(self, sink: Component, before: SinkSettings) -> str | None: ...

    def changed_encoder(self, graph: Graph, before: GraphSettings) -> tuple[str, str] | None: ...


def procedures(graph: Graph) -> Procedures:
    """Return the procedures for *graph*, whose components all have the same version."""
    return ratified if graph.version else pre_ratified


def capabilities(component: Component, progress: Progress = silent) -> Capabilities:
    """Return what *component* can do, whatever its version; see `controlregs.trace_control.capabilities`."""
    return (of_version_0 if component.block.comp_type == NO_COMP_TYPE else of_1_0)(component, progress)
