"""The procedures for a graph of components, chosen by the version of their interface."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from rvtrace_gdb.controlregs import flow, unchanged, watching
from rvtrace_gdb.controlregs.capabilities import Capabilities
from rvtrace_gdb.controlregs.capabilities import capabilities as of_1_0
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.flow import Drains, Stopped
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import GraphInForce, GraphRequest, PibInForce
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.sifive_v0 import NO_COMP_TYPE
from rvtrace_gdb.controlregs.sifive_v0 import flow as v0_flow
from rvtrace_gdb.controlregs.sifive_v0 import unchanged as v0_unchanged
from rvtrace_gdb.controlregs.sifive_v0 import watching as v0_watching
from rvtrace_gdb.controlregs.sifive_v0.capabilities import capabilities as of_version_0
from rvtrace_gdb.controlregs.watching import GraphStatus
from rvtrace_gdb.support.progress import Progress, silent


class Start(Protocol):
    """See `flow.start`."""

    def __call__(
        self,
        graph: Graph,
        request: GraphRequest,
        progress: Progress = ...,
        receive: Callable[[PibInForce], None] = ...,
    ) -> GraphInForce: ...


class Stop(Protocol):
    """See `flow.stop`."""

    def __call__(self, graph: Graph, progress: Progress = ...) -> Stopped: ...


class DrainAll(Protocol):
    """See `flow.drain_all`."""

    def __call__(self, graph: Graph, in_force: GraphInForce | None = ..., progress: Progress = ...) -> Drains: ...


class Resume(Protocol):
    """See `flow.resume`."""

    def __call__(
        self, graph: Graph, in_force: GraphInForce, progress: Progress = ..., off: Collection[str] = ...
    ) -> None: ...


@dataclass(frozen=True)
class Procedures:
    """What is done with a graph, from `flow`, `watching` and `unchanged` of one version."""

    start: Start
    stop: Stop
    check: Callable[[Stopped], None]
    drain_all: DrainAll
    resume: Resume
    look: Callable[[Graph], GraphStatus]
    moved: Callable[[Component, SinkInForce], str | None]
    changed: Callable[[Graph, GraphInForce], tuple[str, str] | None]


_RATIFIED = Procedures(
    flow.start,
    flow.stop,
    flow.check,
    flow.drain_all,
    flow.resume,
    watching.look,
    unchanged.moved,
    unchanged.changed,
)
_PRE_RATIFIED = Procedures(
    v0_flow.start,
    v0_flow.stop,
    v0_flow.check,
    v0_flow.drain_all,
    v0_flow.resume,
    v0_watching.look,
    v0_unchanged.moved,
    v0_unchanged.changed,
)


def procedures(graph: Graph) -> Procedures:
    """Those that drive *graph*, all of whose components have one version."""
    return _RATIFIED if graph.version else _PRE_RATIFIED


def capabilities(component: Component, progress: Progress = silent) -> Capabilities:
    """What *component* can do, as `controlregs.capabilities` finds it out, whatever its version."""
    return (of_version_0 if component.block.comp_type == NO_COMP_TYPE else of_1_0)(component, progress)
