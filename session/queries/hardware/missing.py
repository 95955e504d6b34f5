"""What is missing on a target to trace it, and what to do: the last lines of `trace info`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout
from rvtrace_gdb.controlregs.trace_control.component_registers import (
    RAM_IMPL,
    RAM_SINK,
    RAM_START_HIGH,
    RAM_START_LOW,
    RAM_WP_HIGH,
    RAM_WP_LOW,
)
from rvtrace_gdb.session.description.model import (
    AnyComponent,
    Description,
    EncoderDescription,
    RamSinkDescription,
    host_of,
)
from rvtrace_gdb.session.description.tracers import HARTS as TRACER_HARTS
from rvtrace_gdb.session.queries.hardware.component_seen import ComponentSeen
from rvtrace_gdb.session.sources.hardware import Topology

_GONE = ("unknown", "unavailable")


@dataclass(frozen=True)
class LookedAt:
    """A component as it was found. *problem*: why its capabilities could not be probed.

    *impl*: what tr??Impl read when it was probed. *state*: of an encoder, the state of its hart; None if OpenOCD has no
    such hart.
    """

    seen: ComponentSeen
    problem: ComponentError | None = None
    impl: int | None = None
    state: str | None = ""


def missing(description: Description, components: Mapping[str, LookedAt], harts: Sequence[str]) -> Iterator[str]:
    """Yield what keeps the target from being traced, or a part of it, and what to do; a line each.

    *components*: the components that could be looked at; *harts*: the names of all, () if they are not known.
    """
    for component in description.components:
        looked = components.get(component.name)
        if looked is None:
            continue
        if _has_registers(component):
            yield from _unusable(component, looked)
        if isinstance(component, RamSinkDescription):
            yield from _storage(component, looked)
        if isinstance(component, EncoderDescription):
            yield from _missing_hart(component, looked, harts)
    if description.encoders and not (description.sinks or description.tmc_sinks):
        others = ", ".join(sink.name for sink in description.all_sinks)
        yield f"no RAM sink is described: trace leaves the chip by {others}, and has to be recorded there by a probe"
    traced = {*description.harts, *(TRACER_HARTS if description.tracers else ())}
    for number, name in enumerate(harts):
        if number not in traced:
            yield f"hart {number} ({name}) has no encoder in the description, so it is not traced: `rvtrace init`"


def _has_registers(component: AnyComponent) -> bool:
    return not host_of(component)


def _unusable(component: AnyComponent, looked: LookedAt) -> Iterator[str]:
    seen, where = looked.seen, f"{component.name} at {component.base:#x}"
    if seen.control is None:
        yield f"{where} cannot be read: switch on its power, or correct `base`; `rvtrace init --probe` looks elsewhere"
    elif isinstance(looked.problem, ComponentTimeout) and not seen.active:
        active = f"{seen.component.block.prefix}Active"
        yield f"{where} stays in reset ({active} remains 0): switch on its clock and power, then repeat `trace info`"
    elif looked.problem is not None or (seen.active and not seen.usable):
        kind = seen.component.block.name
        yield f"{where} cannot be used as a {kind}: correct the description; `rvtrace init --probe` shows what is there"


def _storage(sink: RamSinkDescription, looked: LookedAt) -> Iterator[str]:
    """Yield a line for a buffer where the sink cannot store."""
    impl = looked.seen.impl if looked.seen.usable else looked.impl
    if looked.seen.component.block is not RAM_SINK or impl is None:
        return
    can = [mode for mode in ("SRAM", "SMEM") if RAM_IMPL.get(impl, f"trRamHas{mode}")]
    if can and sink.mode not in can:
        more = ", and start and size of a buffer" if can == ["SMEM"] else ""
        yield f'{sink.name} has no {sink.mode}: write mode = "{can[0]}"{more} in the description'


def _missing_hart(encoder: EncoderDescription, looked: LookedAt, harts: Sequence[str]) -> Iterator[str]:
    if looked.state is None:
        yield f"hart {encoder.hart} of {encoder.name} is not there: OpenOCD has {len(harts)}; correct `hart`"
    elif looked.state in _GONE:
        name = harts[encoder.hart] if encoder.hart < len(harts) else "it"
        yield f"hart {encoder.hart} of {encoder.name} is {looked.state}: switch on {name}, or see OpenOCD's log"


def nothing_arrives(description: Description, components: Mapping[str, LookedAt]) -> Iterator[str]:
    """Yield a line for each RAM sink that is on and empty though its encoders trace."""
    on = [encoder for encoder in description.encoders if _traces(components.get(encoder.name))]
    topology = Topology(description)
    used = {route.sink.name for encoder in on for route in topology.routes(encoder)}
    for sink in description.sinks:
        looked = components.get(sink.name)
        if sink.name not in used or looked is None or not _is_empty(looked.seen):
            continue
        yield (
            f"nothing has arrived in {sink.name} yet: let the program run; if it has, a funnel in between may not be"
            " described: `rvtrace init --probe`"
        )


def _traces(looked: LookedAt | None) -> bool:
    return looked is not None and looked.seen.usable and looked.seen.flag("InstTracing")


def _is_empty(seen: ComponentSeen) -> bool:
    if seen.component.block is not RAM_SINK or not seen.usable or not seen.flag("Enable"):
        return False
    read = seen.component.read
    pointer = read(RAM_WP_LOW) | read(RAM_WP_HIGH) << 32
    return pointer == read(RAM_START_LOW) | read(RAM_START_HIGH) << 32
