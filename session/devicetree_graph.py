"""Which trace components of a device tree feed which.

Ref: the Devicetree schema graph.yaml: a device's `in-ports` and `out-ports` have nodes `port`, or `port@N` with `reg`,
and these have nodes `endpoint`, of which the two that are connected name each other as `remote-endpoint`. One of them
may keep silent.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.session.devicetree import Node

_IN, _OUT = "in-ports", "out-ports"


class Edge(NamedTuple):
    """*source* feeds *to*, where it arrives at the port *input*."""

    source: Node
    to: Node
    input: int


class _End(NamedTuple):
    component: Node
    direction: str
    port: int
    endpoint: Node


def receives(component: Node) -> bool:
    """It is made to be fed by others."""
    return component.child(_IN) is not None


def sends(component: Node) -> bool:
    """It is made to feed others."""
    return component.child(_OUT) is not None


def connections(components: Sequence[Node]) -> list[Edge]:
    """The edges between *components*, in the order of these and their ports. Raises `DeviceTreeError`.

    What leads to other devices is left out.
    """
    ends = [end for component in components for end in _ends(component)]
    of_phandle = {end.endpoint.phandle: end for end in ends if end.endpoint.phandle is not None}
    edges: dict[tuple[str, str], Edge] = {}
    for end in ends:
        remote = end.endpoint.cells("remote-endpoint")
        other = of_phandle.get(remote[0]) if remote else None
        if other is None:
            continue
        if other.direction == end.direction:
            raise end.endpoint.error(f"leads from {end.direction} to {other.direction}", "remote-endpoint")
        source, to = (end, other) if end.direction == _OUT else (other, end)
        edges.setdefault((source.component.path, to.component.path), Edge(source.component, to.component, to.port))
    return list(edges.values())


def _ends(component: Node) -> Iterator[_End]:
    for direction in (_OUT, _IN):
        ports = component.child(direction)
        for port in ports.children if ports is not None else ():
            number = (*port.cells("reg"), 0)[0]
            yield from (_End(component, direction, number, endpoint) for endpoint in port.children)
