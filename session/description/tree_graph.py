"""How the trace components of a device tree are connected.

Connections follow the Devicetree schema graph.yaml: a device's `in-ports` and `out-ports` have nodes `port`, or
`port@N` with `reg`, and these have nodes `endpoint`, of which the two that are connected name each other as
`remote-endpoint`. One of the two references may be missing.

Those of XuanTie's binding (the nodes that XuanTie's driver for Linux reads, `xuantie_ntrace`) have `output_port` and
`input_port` instead, in which each node names the other component itself as `endpoint`; their order is that of the
inputs.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.session.description.dtb import Node

_IN, _OUT = "in-ports", "out-ports"
_XUANTIE_IN, _XUANTIE_OUT = "input_port", "output_port"


class PortEdge(NamedTuple):
    """The port *output* of *source* feeds *to* at the port *input*; None: which one is not known."""

    source: Node
    to: Node
    input: int | None
    output: int = 0


class _Endpoint(NamedTuple):
    component: Node
    direction: str
    port: int
    endpoint: Node


def receives(component: Node) -> bool:
    """Return whether the component has input ports."""
    return component.child(_IN) is not None


def sends(component: Node) -> bool:
    """Return whether the component has output ports."""
    return component.child(_OUT) is not None


def connections(components: Sequence[Node]) -> list[PortEdge]:
    """Return the edges between *components*, in the order of these and their ports. Raises `DeviceTreeError`.

    Connections to other devices are left out.
    """
    ends = [end for component in components for end in _ends(component)]
    of_phandle = {end.endpoint.phandle: end for end in ends if end.endpoint.phandle is not None}
    edges = {(edge.source.path, edge.to.path): edge for edge in _xuantie(components)}
    for end in ends:
        remote = end.endpoint.cells("remote-endpoint")
        other = of_phandle.get(remote[0]) if remote else None
        if other is None:
            continue
        if other.direction == end.direction:
            raise end.endpoint.error(f"leads from {end.direction} to {other.direction}", "remote-endpoint")
        source, to = (end, other) if end.direction == _OUT else (other, end)
        edge = PortEdge(source.component, to.component, to.port, source.port)
        edges.setdefault((edge.source.path, edge.to.path), edge)
    return list(edges.values())


def _ends(component: Node) -> Iterator[_Endpoint]:
    for direction in (_OUT, _IN):
        ports = component.child(direction)
        for port in ports.children if ports is not None else ():
            number = (*port.cells("reg"), 0)[0]
            yield from (_Endpoint(component, direction, number, endpoint) for endpoint in port.children)


def _xuantie(components: Sequence[Node]) -> Iterator[PortEdge]:
    """Yield the edges of XuanTie's binding; of those that both ends name, the one with the input comes last."""
    of_phandle = {component.phandle: component for component in components if component.phandle is not None}
    for source in components:
        for _, to in _connected_nodes(source, _XUANTIE_OUT, of_phandle):
            yield PortEdge(source, to, None)
    for to in components:
        for number, source in _connected_nodes(to, _XUANTIE_IN, of_phandle):
            yield PortEdge(source, to, number)


def _connected_nodes(component: Node, direction: str, of_phandle: dict[int, Node]) -> Iterator[tuple[int, Node]]:
    ports = component.child(direction)
    for number, port in enumerate(port for port in (ports.children if ports else ()) if port.okay):
        other = of_phandle.get((*port.cells("endpoint"), 0)[0])
        if other is not None:
            yield number, other
