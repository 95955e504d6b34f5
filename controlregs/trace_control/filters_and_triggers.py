"""Setting up the filters and the triggers of an encoder: what is traced, and what switches tracing on and off.

Filters choose instructions by address and by privilege mode. A filter that passes less or more than was requested would
make the history misleading, so what the encoder cannot do is refused. Enabled filters are OR-ed, the conditions of one
are AND-ed, and values to match are written before the bit that makes them a condition. Triggers switch tracing while
the program runs: tracing is either switched on at the start, or by triggers.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Trace Encoder Filter Registers", "Trace Encoder
Triggers", trTeInstTrigEnable, trTeDataTrigEnable, "Enabling and Disabling".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    COMPARATORS,
    DATA_CONTROL,
    DATA_FILTERS,
    ENCODER_CONTROL,
    FILTER_COUNT,
    FILTERS,
    INST_FILTERS,
    PRIVILEGES,
    TRIG_DBG_CONTROL,
    TRIG_EXT_IN_CONTROL,
    TRIG_EXT_OUT_CONTROL,
    CompInput,
    MatchMode,
    PFunction,
    TrigAction,
)

LOW_WORD = 0xFFFF_FFFF
_ALL = (1 << FILTER_COUNT) - 1


@dataclass(frozen=True)
class Filter:
    """What is to be traced: instructions in one of *ranges* and in one of *privileges*; an empty tuple stands for any.

    *ranges*: (first address, end). *privileges*: values of priv, see `encoder_registers.PRIVILEGES`.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    privileges: tuple[int, ...] = ()


class _Bound(NamedTuple):
    """A comparison with the instruction's address. SFunction has the same numbers as PFunction."""

    function: PFunction
    value: int


def configure_filters(component: Component, trace_filter: Filter | None, *, data: bool = False) -> list[str]:
    """Let the encoder, active and not enabled, trace only what *trace_filter* selects; return a line that describes it.

    *data*: loads and stores are traced as well, but only those of the selected instructions. Raises SettingRefused, and
    ComponentAccess.
    """
    if trace_filter is None:
        return []
    ranges = merge_ranges(trace_filter.ranges)
    there = _selectable(component)
    if len(there) < max(1, len(ranges)):
        raise _refused(component, _too_few(len(there), len(ranges)))
    units = _set_comparators(component, ranges)
    numbers = _set_filters(component, there, units or [()], trace_filter.privileges)
    _select(component, INST_FILTERS, numbers, "does not take the selection of filters")
    if data and component.get(DATA_CONTROL, "trTeDataImplemented"):
        _select(component, DATA_FILTERS, numbers, "has no filters for loads and stores: trace no data, or everything")
    return [f"{component.name} traces only {describe_filter(ranges, trace_filter.privileges)}"]


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same instruction addresses, which are even, in as few ranges as possible, ascending."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((start + start % 2, end + end % 2) for start, end in ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def describe_filter(ranges: Iterable[tuple[int, int]], privileges: Iterable[int]) -> str:
    """Return the filter in words."""
    where = ", ".join(f"{start:#x} to {end - 1:#x}" for start, end in ranges)
    modes = ", ".join(PRIVILEGES[number] for number in privileges)
    return " in ".join(filter(None, (where, modes and f"mode {modes}"))) or "everything"


def _too_few(count: int, ranges: int) -> str:
    if not count:
        return "has no filters (trTeInstFilters stays 0): trace everything"
    return f"has {count} filter{'s'[: count != 1]}, {ranges} separate ranges need one each: trace fewer ranges"


def _selectable(component: Component) -> list[int]:
    """Return the filters that trTeInstFilters can select. None is selected afterwards."""
    value = component.write(INST_FILTERS, INST_FILTERS.pack(trTeInstFilters=_ALL))
    component.write(INST_FILTERS, 0)
    return [number for number in range(FILTER_COUNT) if value >> number & 1]


def _select(component: Component, register: Register, numbers: Iterable[int], problem: str) -> None:
    asked = sum(1 << number for number in numbers)
    if (got := component.write(register, asked)) != asked:
        raise _refused(component, f"{problem} ({register.name} reads {got:#x}, not {asked:#x})")


# Comparators


def _set_comparators(component: Component, ranges: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Configure comparators, and return for each range the units that are true together in it."""
    free = list(range(len(COMPARATORS)))
    units: list[tuple[int, ...]] = []
    for start, end in ranges:
        lower = [_Bound(PFunction.GE, start), *([_Bound(PFunction.GT, start - 2)] if start else [])]
        # An end of 2**32 may be one bit more than the encoder compares.
        upper = [_Bound(PFunction.LE, end - 2), *([_Bound(PFunction.LT, end)] if end & LOW_WORD else [])]
        taken = _in_one(component, free, lower, upper) or _in_two(component, free, lower, upper)
        if taken is None:
            raise _refused(component, _cannot_compare(component, len(units), len(ranges)))
        units.append(taken)
        free = [number for number in free if number > max(taken)]
    return units


def _in_one(component: Component, free: list[int], lower: list[_Bound], upper: list[_Bound]) -> tuple[int] | None:
    """Compare both ends of a range in one unit, with its primary and its secondary comparator; None if it cannot."""
    pairs = [(primary, secondary) for primary in lower for secondary in upper]
    for number in free:
        if any(_compare(component, number, *pair) for pair in pairs):
            return (number,)
    return None


def _in_two(component: Component, free: list[int], lower: list[_Bound], upper: list[_Bound]) -> tuple[int, int] | None:
    """Compare each end of a range in a unit of its own, as secondary comparators are optional; None if that cannot be
    done.
    """
    able = (number for number in free if any(_compare(component, number, bound) for bound in lower))
    first = next(able, None)
    rest = (number for number in free if first is not None and number > first)
    second = next((number for number in rest if any(_compare(component, number, bound) for bound in upper)), None)
    return None if first is None or second is None else (first, second)


def _compare(component: Component, number: int, primary: _Bound, secondary: _Bound | None = None) -> bool:
    """Configure a comparison in the unit and return whether it is in force and notifies nothing."""
    unit = COMPARATORS[number]
    asked = {"trTeCompPInput": int(CompInput.IADDR), "trTeCompPFunction": int(primary.function)}
    asked |= {"trTeCompMatchMode": int(MatchMode.P), "trTeCompPNotify": 0, "trTeCompSNotify": 0}
    kept = _hold(component, (unit.p_match_low, unit.p_match_high), primary.value)
    if secondary is not None:
        asked |= {"trTeCompSInput": int(CompInput.IADDR), "trTeCompSFunction": int(secondary.function)}
        asked |= {"trTeCompMatchMode": int(MatchMode.P_AND_S)}
        kept = _hold(component, (unit.s_match_low, unit.s_match_high), secondary.value) and kept
    value = component.write(unit.control, unit.control.pack(**asked))
    return kept and not (value ^ unit.control.pack(**asked)) & unit.control.mask(*asked)


def _hold(component: Component, registers: tuple[Register, Register], value: int) -> bool:
    """Write a match value and return whether it is in force. Bits that addresses of this hart do not have may be
    missing.
    """
    low, high = registers
    got = component.write(low, value & LOW_WORD) | component.write(high, value >> 32) << 32
    return got == value or any(got == value & (1 << bits) - 1 and _extended(value, bits) for bits in range(33, 64))


def _extended(value: int, bits: int) -> bool:
    """Return whether all bits of the address from *bits* - 1 upwards are 1."""
    return value >> bits - 1 == (1 << 65 - bits) - 1


def _cannot_compare(component: Component, possible: int, requested: int) -> str:
    if possible:
        return f"has comparators for {possible} of {requested} separate ranges of addresses: trace fewer ranges"
    register = COMPARATORS[0].control
    return (
        "has no comparators that select a range of addresses, for a function or a range"
        f" ({register.name} reads {component.read(register):#x})"
    )


# Filters


def _set_filters(
    component: Component, there: list[int], units: list[tuple[int, ...]], privileges: tuple[int, ...]
) -> list[int]:
    """Set up a filter for each range; return the numbers of the filters."""
    left = iter(there)
    numbers: list[int] = []
    problem = ""
    for comparators in units:
        for number in left:
            problem = problem or _privileges_problem(component, number, privileges)
            if _set_filter(component, number, comparators, privileges):
                numbers.append(number)
                break
        else:
            could = f"has filters for {len(numbers)} of {len(units)} ranges: trace fewer ranges"
            cannot = "has no filter with these conditions (its trTeFilterControl registers do not keep them)"
            raise _refused(component, problem or (could if numbers else cannot))
    return numbers


def _set_filter(component: Component, number: int, comparators: tuple[int, ...], privileges: tuple[int, ...]) -> bool:
    """Set up the filter and return whether it is on with these conditions and no others."""
    unit = FILTERS[number]
    kept = not privileges or _choose(component, unit.match_inst, privileges) == sum(1 << priv for priv in privileges)
    asked = {"trTeFilterEnable": 1, "trTeFilterMatchPrivilege": int(bool(privileges))}
    for n, comparator in enumerate(comparators, 1):
        asked |= {f"trTeFilterMatchComp{n}": 1, f"trTeFilterComp{n}": comparator}
    names = [name for name in unit.control.by_name if name in asked or not name.startswith("trTeFilterComp")]
    value = component.write(unit.control, unit.control.pack(**asked))
    if kept and not (value ^ unit.control.pack(**asked)) & unit.control.mask(*names):
        return True
    component.write(unit.control, 0)
    return False


def _privileges_problem(component: Component, number: int, privileges: tuple[int, ...]) -> str:
    """Return a text about the privilege modes that the filter cannot select."""
    register = FILTERS[number].match_inst
    got = _choose(component, register, privileges)
    missing = [PRIVILEGES[priv] for priv in privileges if not got >> priv & 1]
    return f"cannot select privilege mode {', '.join(missing)} ({register.name} reads {got:#x})" if missing else ""


def _choose(component: Component, register: Register, privileges: tuple[int, ...]) -> int:
    """Select privileges and return those that are then in force, one bit each."""
    name = "trTeFilterMatchChoicePrivilege"
    return register.get(component.write(register, register.pack(**{name: sum(1 << it for it in privileges)})), name)


def _refused(component: Component, text: str) -> SettingRefused:
    return SettingRefused(component.name, component.base, text)


EXTERNAL = 8
"""The number of trigger inputs, and of outputs, that an encoder can have."""
STARTS, STOPS = 1, 2
"""Events that an output can signal: bits of trTeTrigExtOutEvent."""


@dataclass(frozen=True)
class Triggers:
    """Addresses at which tracing is switched on, switched off, or marked, before the instruction there is executed.

    *control*: the value for trTeTrigDbgControl, which is vendor-defined; None: 0, as the document requires. *inputs*:
    (number, action when that external trigger fires). *outputs*: (number, STARTS, STOPS or both).
    """

    on: tuple[int, ...] = ()
    off: tuple[int, ...] = ()
    notify: tuple[int, ...] = ()
    control: int | None = None
    inputs: tuple[tuple[int, TrigAction], ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()

    @property
    def waits(self) -> bool:
        """Whether tracing is off until a trigger switches it on."""
        return bool(self.on or any(action == TrigAction.TRACE_ON for _, action in self.inputs))

    @property
    def switches(self) -> bool:
        """Whether any trigger switches the trace."""
        return bool(self.waits or self.off or any(action == TrigAction.TRACE_OFF for _, action in self.inputs))


def configure_triggers(component: Component, triggers: Triggers | None, *, data: bool = False) -> list[str]:
    """Let the encoder, active and not enabled, follow triggers; return lines that describe what they do.

    *data*: loads and stores are traced as well. Raises SettingRefused, and ComponentAccess.
    """
    if triggers is None:
        return []
    if triggers.control is not None:
        _set_vendor_control(component, triggers.control)
    _set_external(component, TRIG_EXT_IN_CONTROL, "trTeTrigExtInAction", "input", triggers.inputs)
    _set_external(component, TRIG_EXT_OUT_CONTROL, "trTeTrigExtOutEvent", "output", triggers.outputs)
    if not triggers.switches:
        return _described(component.name, triggers)
    if not ENCODER_CONTROL.get(component.set(ENCODER_CONTROL, trTeInstTrigEnable=1), "trTeInstTrigEnable"):
        text = "does not take trigger actions (trTeInstTrigEnable stays 0): trace without triggers, or -range a part"
        raise SettingRefused(component.name, component.base, text)
    return _described(component.name, triggers) + (_follow_with_data(component) if data else [])


def _set_vendor_control(component: Component, value: int) -> None:
    got = component.write(TRIG_DBG_CONTROL, value)
    if got != value:
        text = f"does not keep {value:#x} in {TRIG_DBG_CONTROL.name} (it reads {got:#x})"
        raise SettingRefused(component.name, component.base, text)


def _set_external(
    component: Component, register: Register, field: str, what: str, triggers: tuple[tuple[int, int], ...]
) -> None:
    if not triggers:
        return
    fields = {f"{field}{number}": value for number, value in triggers}
    got = component.write(register, register.pack(**fields))
    for number, value in triggers:
        if (held := register.get(got, f"{field}{number}")) != value:
            text = f"cannot use trigger {what} {number} for this ({field}{number} reads {held}, not {value})"
            raise SettingRefused(component.name, component.base, text)


def _follow_with_data(component: Component) -> list[str]:
    value = component.set(DATA_CONTROL, trTeDataTrigEnable=1)
    if DATA_CONTROL.get(value, "trTeDataTrigEnable") or not DATA_CONTROL.get(value, "trTeDataImplemented"):
        return []
    return [f"{component.name}: triggers do not switch data trace (trTeDataTrigEnable stays 0), which is always on"]


def _described(name: str, triggers: Triggers) -> list[str]:
    said = {"begins to trace at": triggers.on, "ends at": triggers.off, "marks": triggers.notify}
    pieces = [f"{what} {' and '.join(f'{place:#x}' for place in places)}" for what, places in said.items() if places]
    pieces += [f"trigger input {n}: {action.name.lower().replace('_', '-')}" for n, action in triggers.inputs]
    return [f"{name} {', '.join(pieces)}"] if pieces else []


def is_switched_off(component: Component) -> bool:
    """Return whether an enabled encoder does not trace because of triggers: one has stopped it, or none has started it
    yet.
    """
    now = ENCODER_CONTROL.unpack(component.read_control())
    return bool(now["trTeActive"] and now["trTeInstTrigEnable"] and not now["trTeInstTracing"])


def data_follows(component: Component) -> bool:
    """Return whether triggers also switch data trace."""
    return bool(component.get(DATA_CONTROL, "trTeDataTrigEnable"))
