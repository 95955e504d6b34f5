"""How CoreSight components of the simulated target are built: their keys in the file of `rvtrace sim --devices`."""

from collections.abc import Mapping
from dataclasses import replace

from rvtrace_gdb.console.commands.sim.component_table import ComponentTable
from rvtrace_gdb.transport.simulated.devices.coresight.device import CoresightBuild
from rvtrace_gdb.transport.simulated.devices.coresight.tmc import TMC_KINDS, TmcBuild
from rvtrace_gdb.transport.simulated.wiring import CoresightPart, TmcPart

KEYS = ("lock", "claimed", "not_ready", "flush_polls", "authstatus")
"""The keys of every CoreSight component."""
TMC_KEYS = (*KEYS, "built_as", "sram_size", "memory_width", "soc_600", "scatter_gather")
_LOCKS: Mapping[str, bool | None] = {"closed": True, "open": False, "none": None}
_STUCK = "stuck"
_SIZES = range(32, (1 << 28) + 1)


def part_built(section: ComponentTable, part: CoresightPart) -> CoresightPart:
    """Return a part built as in its table. Raises DescriptionError."""
    variant: CoresightBuild = replace(
        part.variant,
        claimed=section.number("claimed", range(16), part.variant.claimed),
        not_ready=section.switch("not_ready", part.variant.not_ready),
        flush_polls=section.number("flush_polls", range(1 << 16), part.variant.flush_polls),
        authstatus=section.number("authstatus", range(256), part.variant.authstatus),
    )
    if "lock" in section:
        word = section.choice("lock", (*_LOCKS, _STUCK))
        variant = replace(variant, locked=_LOCKS.get(word, True), keeps_locked=word == _STUCK)
    if isinstance(part, TmcPart):
        assert isinstance(variant, TmcBuild)
        return replace(part, variant=_tmc(section, variant))
    return replace(part, variant=variant)


def _tmc(section: ComponentTable, variant: TmcBuild) -> TmcBuild:
    if "built_as" in section:
        variant = replace(variant, kind=TMC_KINDS[section.choice("built_as", tuple(TMC_KINDS))])
    return replace(
        variant,
        size=section.power("sram_size", _SIZES, variant.size),
        width=section.power("memory_width", range(4, 33), variant.width),
        soc_600=section.switch("soc_600", variant.soc_600),
        scatter=section.switch("scatter_gather", variant.scatter),
    )
