"""What the CoreSight components of a device tree are, for `session.description.devicetree`.

Ref: the bindings arm,coresight-*.yaml of Linux, in the shape of the SpacemiT K3's device tree (k3-trace.dtsi): an ATB
bridge of each encoder leads through funnels and an ETF to an ETR. Whether a Trace Memory Controller (TMC) stores trace
or passes it on is seen at its ports: one that sends, to more than an address translator (CATU) behind it, passes on.
Static funnels and replicators have no registers: what feeds one feeds what is behind it.
"""

from collections.abc import Iterator, Mapping, Sequence

from rvtrace_gdb.session.description.dtb import Node
from rvtrace_gdb.session.description.model import (
    AnyComponent,
    CoresightFunnelDescription,
    CoresightReplicatorDescription,
    TmcLinkDescription,
    TmcSinkDescription,
)
from rvtrace_gdb.session.description.tree_graph import PortEdge

TYPES: Mapping[str, type[AnyComponent]] = {
    "arm,coresight-dynamic-funnel": CoresightFunnelDescription,
    "arm,coresight-dynamic-replicator": CoresightReplicatorDescription,
    "arm,coresight-tmc": TmcSinkDescription,
}
"""The types of components with registers, by what their nodes are compatible with; of a TMC as a sink."""
STATIC = (
    "arm,coresight-static-funnel", "arm,coresight-static-replicator",
    "arm,coresight-funnel", "arm,coresight-replicator",
)  # fmt: skip
"""What has no registers; the last two are older names."""
_SCATTERED = "arm,scatter-gather"
PREFIXES: Mapping[type[AnyComponent], str] = {
    CoresightFunnelDescription: "csfunnel",
    CoresightReplicatorDescription: "replicator",
    TmcLinkDescription: "etf",
}
"""What the names of components begin with; a number follows."""
_SINK_PREFIXES = ("etf", "etb", "etr")


def sink_prefix(node: Node) -> str:
    """Return what the name of a TMC that is a sink begins with: what its node is called, if that says what it is."""
    called = node.path.rpartition("/")[2].partition("@")[0]
    return next((prefix for prefix in _SINK_PREFIXES if called.startswith(prefix)), "etr")


def is_static(node: Node) -> bool:
    """Return whether the node is of a component that has no registers."""
    return any(name in STATIC for name in node.strings("compatible"))


def without_static(edges: Sequence[PortEdge]) -> list[PortEdge]:
    """Return the edges between components with registers: those through one without lead on to what is behind it."""
    return [whole for edge in edges if not is_static(edge.source) for whole in _onward(edge, edges, ())]


def _onward(edge: PortEdge, edges: Sequence[PortEdge], passed: tuple[str, ...]) -> Iterator[PortEdge]:
    if not is_static(edge.to):
        yield edge
    elif edge.to.path in passed:
        raise edge.to.error("it feeds itself, directly or through others", "out-ports")
    else:
        for further in edges:
            if further.source is edge.to:
                joined = PortEdge(edge.source, further.to, further.input, edge.output)
                yield from _onward(joined, edges, (*passed, edge.to.path))


def reached(nodes: Sequence[Node], edges: Sequence[PortEdge]) -> list[Node]:
    """Return *nodes* without the CoreSight components that no trace of the others reaches, or that lead to no sink."""
    others = {node.path for node in nodes if not is_coresight(node)}
    feeding = {edge.source.path for edge in edges}
    sinks = {node.path for node in nodes if _is_tmc(node) and node.path not in feeding}
    fed, leading = set(others), others | sinks
    for _ in nodes:
        fed |= {edge.to.path for edge in edges if edge.source.path in fed}
        leading |= {edge.source.path for edge in edges if edge.to.path in leading}
    return [node for node in nodes if node.path in fed & leading]


def _is_tmc(node: Node) -> bool:
    return any(TYPES.get(name) is TmcSinkDescription for name in node.strings("compatible"))


def is_coresight(node: Node) -> bool:
    """Return whether the node is of a CoreSight component with registers."""
    return any(name in TYPES for name in node.strings("compatible"))


def described(
    node: Node, kind: type[AnyComponent], name: str, to: Mapping[int, str], inputs: Mapping[str, int]
) -> AnyComponent:
    """Return a component. *to*: what it feeds, by its output; *inputs*: of what feeds it. Raises `DeviceTreeError`."""
    if kind is CoresightFunnelDescription:
        return CoresightFunnelDescription(name, node.address, tuple(to.values()), dict(inputs))
    if kind is TmcLinkDescription:
        return TmcLinkDescription(name, node.address, tuple(to.values()))
    if kind is CoresightReplicatorDescription:
        if sorted(to) != list(range(len(to))):
            raise node.error("its output 0 feeds nothing that is known here", "out-ports")
        return CoresightReplicatorDescription(name, node.address, tuple(to[output] for output in sorted(to)))
    return TmcSinkDescription(name, node.address, "SG" if is_scattered(node) else "SRAM")


def is_scattered(node: Node) -> bool:
    """Return whether a TMC is an ETR that can store through a scatter-gather table."""
    return _SCATTERED in node.properties


def note(sink: TmcSinkDescription) -> str:
    """Return what the user has to know of a TMC for whose trace the device tree names no memory."""
    if sink.mode == "SG":
        return (
            f"{sink.name}: written as an ETR that stores through the scatter-gather table of Linux, while Linux traces;"
            f" for a buffer of your own: --buffer {sink.name}=START:SIZE"
        )
    return (
        f"{sink.name}: written as a TMC with memory of its own; if it is an ETR, which writes to system memory:"
        f" --buffer {sink.name}=START:SIZE"
    )
