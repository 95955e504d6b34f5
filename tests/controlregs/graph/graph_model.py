"""Funnels, PIB sinks and ATB bridges as a driver meets them, and whole graphs of models on one bus.

Written from the document's prose for these tests only, as `model` is: offsets and bits are spelled out, and what the
document forbids fails the test. A funnel keeps its last piece of trace until it is flushed, so that a wrong order on
the way down loses it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from tests.controlregs.trace_control.component_model import (
    ACTIVE,
    ENABLE,
    BusFault,
    Model,
    ModelEncoder,
    ModelSink,
    ModelTarget,
)

LOW = 0x8000_0000
MEMORY = 0x4000
BASES = 0x2000_0000


class Lead:
    """What a source of trace sees of where it is connected: one thing, input n of a funnel, or several of them."""

    def __init__(self, ends: Iterable[tuple[Any, int | None]]) -> None:
        self.ends = list(ends)

    @property
    def shown(self) -> int:
        return max((end.shown for end, _ in self.ends), default=0)

    def store(self, data: bytes) -> None:
        for end, number in self.ends:
            if number is None:
                end.store(data)
            else:
                end.arrive(number, data)


class GraphEncoder(ModelEncoder):
    """An encoder whose trace goes wherever it is connected."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Lead(()), **options)  # type: ignore[arg-type]


class GraphFunnel(Model):
    """*cuts*: the bits of trFunnelDisInput there are. *timestamps*: the bits of trTsControl."""

    reserved = 0xFFFF_FFF4

    def __init__(
        self,
        *,
        impl: int = 0x0000_0801,
        cuts: int = 0xFFFF,
        cut_always: int = 0,
        timestamps: int = 0x0000_037F,
        width: int = 40,
        blocked: bool = False,
        **common: int,
    ) -> None:
        super().__init__(impl, **common)
        self.sink = Lead(())
        self.cuts, self.cut_always, self.timestamps, self.width = cuts, cut_always, timestamps, width
        self.blocked = blocked
        self.kept = b""

    def legal(self, offset: int, value: int) -> int:
        if offset == 0:
            return value & 3
        if offset == 8:
            return value & self.cuts | self.cut_always
        if offset == 0x40:
            return value & self.timestamps & ~4 | (self.width << 24 if self.timestamps else 0)
        return 0

    def write(self, offset: int, value: int) -> None:
        assert offset != 8 or value <= 0xFFFF, "reserved bits of DisInput written"
        super().write(offset, value)

    def is_empty(self) -> bool:
        return not self.kept

    def arrive(self, number: int, data: bytes) -> None:
        if self.control & ENABLE and not self.registers[8] >> number & 1:
            before, self.kept = self.kept, data
            self._pass_on(before)

    def changed(self, before: int) -> None:
        if not before & ENABLE and self.control & ENABLE:
            assert self.lenient or self.sink.shown & ENABLE, "the funnel was enabled before what it feeds"
        if before & ENABLE and self.control & (ACTIVE | ENABLE) == ACTIVE:
            kept, self.kept = self.kept, b""
            self._pass_on(kept)
        if not self.control & ACTIVE:
            self.kept = b""

    def _pass_on(self, data: bytes) -> None:
        if self.blocked:
            self.kept = data
        elif data:
            self.sink.store(data)


class GraphPib(Model):
    """What it sends is in *sent*. *modes*: those it has, besides Off; none: the mode is hard-wired."""

    reserved = 0x0000_8C04

    def __init__(
        self,
        *,
        impl: int = 0x0000_0A01,
        modes: tuple[int, ...] = (4, 5, 8, 9, 10, 11, 12),
        dividers: int = 0xFFFF,
        centers: int = 1,
        calibrates: int = 1,
        fixed_ones: int = 0,
        asyncs: int = 7,
        **common: int,
    ) -> None:
        super().__init__(impl, **common)
        self.modes, self.dividers, self.centers, self.calibrates = modes, dividers, centers, calibrates
        self.fixed_ones, self.asyncs = fixed_ones, asyncs
        self.sent = b""
        self.settings = 0

    def legal(self, offset: int, value: int) -> int:
        if offset:
            return 0
        mask = 0xF3 | self.calibrates << 9 | self.asyncs << 12 | self.dividers << 16
        mode = value >> 4 & 15
        if mode not in self.modes and (mode or not self.modes):
            value = value & ~0xF0 | self.settings & 0xF0
        if value >> 4 & 15 >= 8:
            mask |= self.centers << 8
        return value & mask | self.fixed_ones

    def changed(self, before: int) -> None:
        self.settings = self.control
        if before & ENABLE and self.control & ENABLE:
            assert self.lenient or not (before ^ self.control) & ~ENABLE, "set while it sends"

    def store(self, data: bytes) -> None:
        if self.control & ENABLE and not self.control >> 9 & 1:
            self.sent += data


class GraphBridge(Model):
    """An ATB bridge; trAtbBridgeAsyncFreq can be set in its Impl register."""

    reserved = 0xFFFF_80F4

    def __init__(self, *, impl: int = 0x0000_0E01, fixed_id: int | None = None, asyncs: int = 7, **common: int) -> None:
        super().__init__(impl, **common)
        self.fixed_id, self.asyncs = fixed_id, asyncs
        self.sent = b""

    def legal(self, offset: int, value: int) -> int:
        if offset == 0:
            return value & 0x7F03 if self.fixed_id is None else value & 3 | self.fixed_id << 8
        return 0

    def write(self, offset: int, value: int) -> None:
        if offset == 4:
            assert not value & ~(self.impl | 0x7000), "only trAtbBridgeAsyncFreq of Impl can be written"
            self.impl = self.impl & ~0x7000 | value & self.asyncs << 12
        else:
            super().write(offset, value)

    def store(self, data: bytes) -> None:
        if self.control & ENABLE:
            self.sent += data


@dataclass
class LoggingTarget(ModelTarget):
    """Remembers which component was enabled and disabled, and in which order. *refused*: bases with no answer."""

    switched: list[tuple[int, int]] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)

    def read32(self, address: int) -> int:
        if address & ~0xFFF in self.refused:
            raise BusFault(address)
        return super().read32(address)

    def write32(self, address: int, value: int) -> None:
        if address & ~0xFFF in self.refused:
            raise BusFault(address)
        device = self.devices.get(address & ~0xFFF)
        before = device.control if device else 0
        super().write32(address, value)
        if device and (before ^ device.control) & ENABLE:
            self.switched.append((address, device.control & ENABLE))


@dataclass
class World:
    """Models by name on one bus, connected, and a graph of the components that drive them.

    *models*: by their names, in start order. *bases*: of each name.
    """

    models: dict[str, Any]
    target: LoggingTarget
    graph: Graph
    bases: dict[str, int] = field(default_factory=dict)

    def component(self, name: str) -> Component:
        return next(c for c in (*self.graph.order, *self.graph.unused) if c.name == name)

    @property
    def switched(self) -> list[str]:
        """What was enabled (+) and disabled (-), in order."""
        names = {base: name for name, base in self.bases.items()}
        return [f"{'+' if now else '-'}{names[address]}" for address, now in self.target.switched]


def world(
    models: "Models",
    edges: Sequence[tuple[str, str]],
    *,
    inputs: Mapping[str, Mapping[str, int]] | None = None,
    not_used: Sequence[tuple[str, str]] = (),
    unused: Sequence[str] = (),
    timeout: float = 0.5,
    bus: type[LoggingTarget] = LoggingTarget,
) -> World:
    """*models* in start order; one that is made for a memory gets it. *edges*: the ways that are used, *not_used*: the
    others there are. Funnel inputs are numbered as their edges come, unless *inputs* says it.
    """
    memory = bytearray(MEMORY)
    made = {name: model if isinstance(model, Model) else model(memory) for name, model in models.items()}
    bases = {name: BASES + 0x1000 * n for n, name in enumerate(made)}
    given = inputs or _numbered(made, (*edges, *not_used))
    for name, model in made.items():
        ends = [(made[fed], given.get(fed, {}).get(name)) for source, fed in (*edges, *not_used) if source == name]
        if ends:
            model.sink = Lead(ends)  # type: ignore[attr-defined]
    target = bus({bases[name]: model for name, model in made.items()}, memory, LOW)
    components = {name: Component(target, bases[name], BLOCKS[type(made[name])], name, timeout) for name in made}
    order = [components[name] for name in made if name not in unused]
    graph = Graph.build(order, edges, given, [components[name] for name in unused])
    return World(made, target, graph, bases)


def _numbered(models: Mapping[str, Model], edges: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    numbers: dict[str, dict[str, int]] = {}
    for source, fed in edges:
        if isinstance(models[fed], GraphFunnel):
            numbers.setdefault(fed, {})[source] = len(numbers.get(fed, {}))
    return numbers


Models = dict[str, Model | Callable[[bytearray], Model]]
BLOCKS = {
    GraphEncoder: RATIFIED["encoder"],
    GraphFunnel: RATIFIED["funnel"],
    GraphPib: RATIFIED["pib_sink"],
    GraphBridge: RATIFIED["atb_bridge"],
    ModelSink: RATIFIED["ram_sink"],
}


def ram(**options: Any) -> Callable[[bytearray], Model]:
    """A RAM sink, made when there is a memory."""
    return lambda memory: ModelSink(memory, LOW, **options)
