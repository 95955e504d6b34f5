"""Converts the trace components of a device tree into a target description.

Ref: the binding riscv,trace-component.yaml that is proposed for Linux (series "Linux RISC-V trace framework and
drivers", v4 of April 2026), with the additions of a later series for SiFive's pre-ratification components. The node of
a component has `compatible`, `reg`, the graph of `in-ports` and `out-ports`, and an encoder's has `cpus`.

In the binding the type of a component is in tr??Impl, which only the running target has. The graph shows most of it
(Trace Control Interface 1.0, "Allowed Connections Between Components"): a component that only sends is an encoder; one
that also receives is a funnel, or a bridge if it sends to no trace component; one that only receives is a sink, a RAM
sink unless its node's name contains "pib" or "atb". No device tree contains the address of a RAM sink's buffer.

XuanTie's binding says the types, and more: an encoder's `cpu` is the number of its hart, and `memory-region` of a sink,
which is always in system memory, is the node of the memory that is its buffer. `session.description.tree_graph` has the
connections of both.

That of the SpacemiT K3 says the types of RISC-V components, too, and has CoreSight components behind their bridges, see
`session.description.tree_coresight`. There an encoder and its bridge name the hart, by `cpus`, whose power they need;
so does a funnel of several harts, whose first is taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.description import file, tables, tree_coresight
from rvtrace_gdb.session.description.connections import FUNNEL_INPUTS
from rvtrace_gdb.session.description.dtb import DeviceTreeError, Node, joined
from rvtrace_gdb.session.description.model import (
    RATIFIED,
    AnyComponent,
    AtbBridgeDescription,
    AtbLinkDescription,
    BufferDescription,
    CoresightFunnelDescription,
    Description,
    EncoderDescription,
    FunnelDescription,
    LinkDescription,
    OpenOcdDescription,
    PibSinkDescription,
    RamSinkDescription,
    TmcLinkDescription,
    TmcSinkDescription,
)
from rvtrace_gdb.session.description.tree_graph import PortEdge, connections, receives, sends

_XUANTIE = "xuantie_ntrace,"
_K3 = "spacemit,k3"
"""A chip whose encoders report no context where S mode is left; its manual says so, the device tree does not."""
COMPATIBLE: Mapping[str, tuple[type[AnyComponent] | None, int]] = {
    "riscv,trace-component": (None, RATIFIED),
    "riscv,trace-encoder": (EncoderDescription, RATIFIED),
    "riscv,trace-funnel": (FunnelDescription, RATIFIED),
    "riscv,trace-atbbridge": (AtbBridgeDescription, RATIFIED),
    "sifive,trace-encoder0": (EncoderDescription, 0),
    "sifive,trace-funnel0": (FunnelDescription, 0),
    "xuantie_ntrace,encoder-controller": (EncoderDescription, RATIFIED),
    "xuantie_ntrace,funnel-controller": (FunnelDescription, RATIFIED),
    "xuantie_ntrace,sink-controller": (RamSinkDescription, RATIFIED),
    **{name: (kind, RATIFIED) for name, kind in tree_coresight.TYPES.items()},
}
"""The component's type, if the string contains one, and the version of its registers."""
_ANY = (None, RATIFIED)
_OWN_POWER = ("riscv,trace-encoder", "riscv,trace-funnel", "riscv,trace-atbbridge")
"""What has the power of the hart that its node names."""

Buffers = Mapping[str, tuple[int, int]]
"""Start and size (bytes) of buffers in system memory, by the names of RAM sinks in the description; "" for the only
one.
"""


@dataclass(frozen=True)
class DeviceTreeContents:
    """The contents of a device tree. *notes*: what the user must check. *text*: the file of the description.

    *nodes*: the path of each component's node, by its name.
    """

    description: Description
    notes: tuple[str, ...]
    text: str
    nodes: Mapping[str, str]


def trace_components(root: Node, buffers: Buffers) -> DeviceTreeContents:
    """Return the trace components below *root*. Raises `DeviceTreeError`, and `DescriptionError` for invalid ones."""
    nodes = [node for node in root.walk() if node.okay and _described_type(node) is not None]
    if any(node.path.endswith("/__overlay__") for node in root.walk()):
        text = "it is an overlay: apply it to the board's device tree, and import that"
        raise DeviceTreeError(f"{text}: fdtoverlay -i BOARD.dtb -o WHOLE.dtb OVERLAY.dtbo", root.file)
    if not has_trace_components(root):
        names = ", ".join(name for name in COMPATIBLE if name not in tree_coresight.TYPES)
        raise DeviceTreeError(f"it has no trace components: no node is compatible with one of {names}", root.file)
    return _Import(root, sorted(nodes, key=lambda node: node.address), buffers).contents()


def has_trace_components(root: Node) -> bool:
    """Return whether there are trace components below *root*; those on Arm's trace bus alone do not count."""
    found = (node for node in root.walk() if node.okay and _described_type(node) is not None)
    return not all(map(tree_coresight.is_coresight, found))


def _is_xuantie(node: Node) -> bool:
    return any(name in COMPATIBLE and name.startswith(_XUANTIE) for name in node.strings("compatible"))


def _described_type(node: Node) -> tuple[type[AnyComponent] | None, int] | None:
    return next((COMPATIBLE[name] for name in node.strings("compatible") if name in COMPATIBLE), None)


class _Import:
    """The trace components of one tree, *nodes*, by the paths of their nodes."""

    def __init__(self, root: Node, nodes: Sequence[Node], buffers: Buffers) -> None:
        self._root, self._nodes, self._buffers = root, nodes, buffers
        self._notes: list[str] = []
        static = [node for node in root.walk() if node.okay and tree_coresight.is_static(node)]
        self._edges = tree_coresight.without_static(connections([*nodes, *static])) or self._only_connection()
        self._nodes = nodes = tree_coresight.reached(nodes, self._edges)
        self._edges = [edge for edge in self._edges if edge.source in nodes and edge.to in nodes]
        self._cpus = _cpus(root)
        self._kinds = {node.path: self._kind(node) for node in nodes}
        self._harts = {
            node.path: self._hart_index(node) for node in nodes if self._kinds[node.path] is EncoderDescription
        }
        self._check_harts()
        self._names = self._component_names()
        self._own_sinks = self._sinks_inside()
        self._memory = tuple(_memory_ranges(root))

    def contents(self) -> DeviceTreeContents:
        components = [self._imported_component(node) for node in self._nodes]
        components = self._with_buffers([*components, *self._own_sinks.values()])
        self._notes += self._about_harts()
        self._notes += _about_memory(self._memory)
        paths = {name: path for path, name in self._names.items()}
        text = tables.text(self._description(components), self._header(), paths)
        return DeviceTreeContents(file.parse(text, self._root.file), tuple(self._notes), text, paths)

    def _header(self) -> str:
        return "\n".join([f"Written by rvtrace import-dt from {self._root.file}.", *self._notes])

    def _description(self, components: Sequence[AnyComponent]) -> Description:
        hart_power = any(self._power(node) is not None for node in self._nodes)
        names = (*self._root.strings("model"), *self._root.strings("compatible"), self._root.file)
        return Description(
            next(name for name in names if name and name.isprintable()),
            self._root.file,
            _xlen(self._cpus),
            OpenOcdDescription(),
            tuple(
                sorted((c for c in components if isinstance(c, EncoderDescription)), key=lambda encoder: encoder.hart)
            ),
            tuple(c for c in components if isinstance(c, RamSinkDescription)),
            tuple(c for c in components if isinstance(c, FunnelDescription)),
            tuple(c for c in components if isinstance(c, PibSinkDescription)),
            tuple(c for c in components if isinstance(c, AtbBridgeDescription)),
            memory=self._memory,
            links=tuple(c for c in components if isinstance(c, LinkDescription)),
            tmc_sinks=tuple(c for c in components if isinstance(c, TmcSinkDescription)),
            hart_power=hart_power,
            context_notify=("sret",) if _K3 in self._root.strings("compatible") else (),
        )

    def _only_connection(self) -> list[PortEdge]:
        """Return the connection of an encoder and a sink of which each is the only one, and has no ports."""
        kinds = [(_described_type(node) or _ANY)[0] for node in self._nodes]
        if len(kinds) != 2 or {*kinds} != {EncoderDescription, RamSinkDescription}:
            return []
        self._notes.append("it does not say what encoder and sink are connected to: to each other, as the only ones")
        encoder, sink = self._nodes if kinds[0] is EncoderDescription else self._nodes[::-1]
        return [PortEdge(encoder, sink, 0)]

    def _kind(self, node: Node) -> type[AnyComponent]:
        kind, _ = _described_type(node) or _ANY
        feeds = any(edge.source is node for edge in self._edges)
        if feeds and kind in (AtbBridgeDescription, TmcSinkDescription):
            return AtbLinkDescription if kind is AtbBridgeDescription else TmcLinkDescription
        if kind is not None:
            return kind
        if sends(node):
            if not receives(node):
                return EncoderDescription
            if feeds and all(tree_coresight.is_coresight(edge.to) for edge in self._edges if edge.source is node):
                return AtbLinkDescription
            return FunnelDescription if feeds else AtbBridgeDescription
        if receives(node):
            name = node.name.partition("@")[0].lower()
            return (
                PibSinkDescription if "pib" in name else AtbBridgeDescription if "atb" in name else RamSinkDescription
            )
        raise node.error("it has neither in-ports nor out-ports")

    def _hart_index(self, node: Node) -> int:
        """Return the index of an encoder's hart among all harts, by their IDs."""
        if _is_xuantie(node):
            return self._numbered_hart(node)
        phandle = (node.cells("cpus") or node.cells("cpu") or (None,))[0]
        places = [place for place, cpu in enumerate(self._cpus) if phandle in (None, cpu.phandle)]
        if len(places) == 1:
            return places[0]
        raise node.error("names no hart of /cpus" if phandle else "missing: which hart does it trace?", "cpus")

    def _numbered_hart(self, node: Node) -> int:
        """Return the hart that a node traces, by XuanTie's binding: `cpu` is the number that Linux gives a hart."""
        number = next(iter(node.cells("cpu")), None)
        if number is None:
            raise node.error("missing: which hart does it trace?", "cpu")
        if number >= len(self._cpus):
            raise node.error(f"is {number}, and /cpus has {len(self._cpus)}", "cpu")
        return number

    def _check_harts(self) -> None:
        """Raises `DeviceTreeError`: two encoders trace one hart."""
        first: dict[int, str] = {}
        for node in self._nodes:
            hart = self._harts.get(node.path)
            if hart is not None and first.setdefault(hart, node.path) != node.path:
                raise node.error(f"is hart {hart}, which {first[hart]} traces", "cpu" if _is_xuantie(node) else "cpus")

    def _component_names(self) -> dict[str, str]:
        names = {path: f"encoder{hart}" for path, hart in self._harts.items()}
        for kind, prefix in (
            (FunnelDescription, "funnel"),
            (RamSinkDescription, "ram"),
            (PibSinkDescription, "pib"),
            (AtbBridgeDescription, "atb"),
            (AtbLinkDescription, "bridge"),
            *tree_coresight.PREFIXES.items(),
        ):
            paths = [node.path for node in self._nodes if self._kinds[node.path] is kind]
            names |= {path: f"{prefix}{number}" for number, path in enumerate(paths)}
        sinks = (node for node in self._nodes if self._kinds[node.path] is TmcSinkDescription)
        for node in sinks:
            prefix = tree_coresight.sink_prefix(node)
            names[node.path] = next(it for n in count() if (it := f"{prefix}{n}") not in names.values())
        return names

    def _imported_component(self, node: Node) -> AnyComponent:
        kind, name, base = self._kinds[node.path], self._names[node.path], node.address
        _, version = _described_type(node) or _ANY
        if kind is EncoderDescription:
            return EncoderDescription(name, base, self._harts[node.path], self._feeds(node), {}, version)
        if kind is FunnelDescription:
            return FunnelDescription(name, base, self._feeds(node), self._inputs(node), version, self._power(node))
        if kind is AtbLinkDescription:
            return AtbLinkDescription(name, base, self._feeds(node), self._atb_id(node), self._power(node))
        if kind in tree_coresight.PREFIXES or kind is TmcSinkDescription:
            edges = [edge for edge in self._edges if edge.source is node]
            to = {edge.output: self._names[edge.to.path] for edge in edges}
            inputs = self._inputs(node) if kind is CoresightFunnelDescription else {}
            return tree_coresight.described(node, kind, name, to, inputs)
        if kind is RamSinkDescription:
            return RamSinkDescription(name, base, *self._buffer(node))
        if kind is AtbBridgeDescription:
            return AtbBridgeDescription(name, base, hart=self._power(node))
        return PibSinkDescription(name, base)

    def _power(self, node: Node) -> int | None:
        """Return the hart whose power a component needs, None if its node names none."""
        if not any(name in _OWN_POWER for name in node.strings("compatible")) or "cpus" not in node.properties:
            return None
        return self._hart_index(node)

    def _atb_id(self, node: Node) -> int:
        """Return the ID that the trace of a bridge gets on Arm's trace bus: 1, 2, ... in the order of the bridges."""
        return 1 + [path for path, kind in self._kinds.items() if kind is AtbLinkDescription].index(node.path)

    def _buffer(self, node: Node) -> tuple[str, int | None, int | None]:
        """Return the mode of a RAM sink, and start and size of its buffer, if the device tree has them."""
        region = next(iter(node.cells("memory-region")), None) if _is_xuantie(node) else None
        if region is None:
            return "SRAM", None, None
        memory = next((other for other in self._root.walk() if other.phandle == region), None)
        if memory is None or memory.parent is None:
            raise node.error("names no memory", "memory-region")
        cells = memory.parent.address_cells
        return "SMEM", memory.address, joined(memory.cells("reg")[cells : cells + memory.parent.size_cells])

    def _feeds(self, node: Node) -> tuple[str, ...]:
        if node.path in self._own_sinks:
            return (self._own_sinks[node.path].name,)
        names = tuple(self._names[edge.to.path] for edge in self._edges if edge.source is node)
        if not names:
            raise node.error(
                "it feeds none of the trace components", "output_port" if _is_xuantie(node) else "out-ports"
            )
        return names

    def _inputs(self, node: Node) -> dict[str, int]:
        edges = [edge for edge in self._edges if edge.to is node]
        numbered = [(edge.input, edge.source.path) for edge in edges if edge.input in FUNNEL_INPUTS]
        inputs = {self._names[path]: number for number, path in sorted(numbered) if number is not None}
        if len(set(inputs.values())) == len(edges):
            return inputs
        self._notes.append(f"{self._names[node.path]}: its inputs have no numbers; are they in the right order?")
        return {}

    def _sinks_inside(self) -> dict[str, RamSinkDescription]:
        """Return the internal sinks: a pre-ratification component that feeds nothing has a sink of its own."""
        feeding = {edge.source.path for edge in self._edges}
        hosts = [node for node in self._nodes if (_described_type(node) or _ANY)[1] == 0 and node.path not in feeding]
        first = sum(kind is RamSinkDescription for kind in self._kinds.values())
        return {
            node.path: RamSinkDescription(f"ram{number}", node.address, "SRAM", None, None, self._names[node.path])
            for number, node in enumerate(hosts, first)
        }

    def _with_buffers(self, components: Sequence[AnyComponent]) -> list[AnyComponent]:
        found = [component for component in components if isinstance(component, BufferDescription)]
        sinks = [sink.name for sink in found]
        buffers = dict(self._buffers)
        if "" in buffers:
            if len(sinks) != 1:
                raise DeviceTreeError(f"it has {len(sinks)} RAM sinks: which one has the buffer?", self._root.file)
            buffers[sinks[0]] = buffers.pop("")
        for name in buffers:
            if name not in sinks:
                raise DeviceTreeError(f'there is no RAM sink "{name}" in it; {_listed_names(sinks)}', self._root.file)
        without = [sink for sink in found if sink.name not in buffers and sink.start is None]
        self._notes += _about_sinks([sink.name for sink in without if isinstance(sink, RamSinkDescription)])
        self._notes += [tree_coresight.note(sink) for sink in without if isinstance(sink, TmcSinkDescription)]
        return [_with_buffer(component, buffers) for component in components]

    def _about_harts(self) -> Iterator[str]:
        """Yield notes if OpenOCD may number harts differently."""
        for place in sorted(self._harts.values()):
            number = joined(self._cpus[place].cells("reg"))
            if number != place:
                yield f"encoder{place}: its hart has the ID {number:#x}; is it number {place} in OpenOCD's order?"


def _with_buffer(component: AnyComponent, buffers: Buffers) -> AnyComponent:
    if not isinstance(component, BufferDescription) or component.name not in buffers:
        return component
    start, size = buffers[component.name]
    return replace(component, mode="SMEM", start=start, size=size)


def _memory_ranges(root: Node) -> Iterator[MemoryRange]:
    """Yield the ranges of the nodes of memory. That no device writes it is nothing that a device tree says.

    Ref: Devicetree Specification v0.4, 3.4 (/memory), 3.5 (/reserved-memory: what is left out of it).
    """
    for node in root.children:
        name = node.name if node.name.isprintable() else ""
        if node.okay and (node.name.partition("@")[0] == "memory" or node.strings("device_type") == ("memory",)):
            cells, widths = node.cells("reg"), (root.address_cells, root.size_cells)
            for at in range(0, len(cells) - sum(widths) + 1, sum(widths) or 1):
                address, size = joined(cells[at : at + widths[0]]), joined(cells[at + widths[0] : at + sum(widths)])
                if size and address + size <= 1 << 64:
                    yield MemoryRange(address, size, MemoryKind.RAM, dma=True, name=name)


def _about_memory(ranges: Sequence[MemoryRange]) -> Iterator[str]:
    if ranges:
        yield (
            "memory: a device tree does not say which devices write it (DMA), so all may: remove dma = true, or add"
            " tables, where none does; values of the past follow from memory that only the harts write"
        )


def _about_sinks(names: Sequence[str]) -> Iterator[str]:
    if names:
        yield (
            f"{', '.join(names)}: a device tree gives neither the type of a sink nor the address of its buffer;"
            " written as a RAM sink with memory of its own (if its buffer is in system memory: --buffer START:SIZE)"
        )


def _listed_names(names: Sequence[str]) -> str:
    return f"there is {', '.join(names)}" if names else "there is none"


def _cpus(root: Node) -> list[Node]:
    """Return the nodes of the harts in the order of their IDs."""
    cpus = root.child("cpus")
    found = [node for node in (cpus.children if cpus else ()) if node.name.startswith("cpu@")]
    return sorted(found, key=lambda node: joined(node.cells("reg")))


def _xlen(cpus: Sequence[Node]) -> int | None:
    """Return XLEN, with which `riscv,isa-base` or `riscv,isa` of all harts begin; None if they differ."""
    said = {text[:4] for cpu in cpus for key in ("riscv,isa-base", "riscv,isa") for text in cpu.strings(key)}
    return {"rv32": 32, "rv64": 64}.get(said.pop()) if len(said) == 1 else None
