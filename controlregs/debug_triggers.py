"""A hart's debug triggers, used to switch or mark the trace at addresses in the program. The hart must be halted.

The tables have the CSRs and the types of trigger that can act at an address. Fields are declared as on RV64; those of
RV32 have the same positions, except `type` and `dmode`, which are at the top. `TriggerModule` enumerates the triggers
of a hart and sets, restores and compares single ones: 0 is written to tdata1 before tdata2 and tdata3 change, and the
action that was granted is read back. `allocate` and `release` set and restore all triggers that a trace needs.

Triggers are written without dmode. OpenOCD 0.12 takes a trigger with dmode for one of its own or of an earlier session:
it disables it for each single step, including the one that continues from a breakpoint, and clears it when OpenOCD is
started. It does not touch a trigger without dmode, and puts its hardware breakpoints into others (observed with 0.12).
Triggers are allocated from the highest number down, because debuggers begin with the lowest one.

Ref: RISC-V Debug Specification 1.0, chapter "Sdtrig" (tselect, tdata1, tdata2, tdata3, mcontrol, mcontrol6, icount,
itrigger, etrigger; enumeration); type 2 as in 0.13.2, chapter "Trigger Module"; RISC-V Trace Control Interface 1.0,
"Debug Trigger Module".
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.fields import Field, IndirectRegister, reserved
from rvtrace_gdb.controlregs.target import CsrAccess, CsrRequest
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TrigAction
from rvtrace_gdb.support.errors import RvtraceError

TSELECT, TDATA1, TDATA2, TDATA3 = 0x7A0, 0x7A1, 0x7A2, 0x7A3
NAMES: Mapping[int, str] = {TSELECT: "tselect", TDATA1: "tdata1", TDATA2: "tdata2", TDATA3: "tdata3"}


class TriggerType(IntEnum):
    NONE = 0
    LEGACY = 1
    MCONTROL = 2
    ICOUNT = 3
    ITRIGGER = 4
    ETRIGGER = 5
    MCONTROL6 = 6
    TMEXTTRIGGER = 7
    DISABLED = 15


def trigger_type(tdata1: int, xlen: int) -> int:
    """Return the trigger's type: the highest four bits of tdata1."""
    return tdata1 >> xlen - 4 & 0xF


def has_dmode(tdata1: int, xlen: int) -> bool:
    """Return whether only Debug Mode can write the trigger."""
    return bool(tdata1 >> xlen - 5 & 1)


def make_tdata1(kind: int, low: int, xlen: int) -> int:
    """Return a tdata1 with this `type`, dmode 0, and *low* as its low bits."""
    return kind << xlen - 4 | low


def _flag(name: str, doc: str) -> Field:
    return Field(name, 1, doc=doc)


_ACCESS = (_flag("load", "on loads"), _flag("store", "on stores"), _flag("execute", "on execution at the address"))
_ACTION = Field("action", 4, doc="2 trace on, 3 trace off, 4 trace notify")

MCONTROL = IndirectRegister(
    "mcontrol",
    "type 2: at an address or a value",
    (
        *_ACCESS,
        _flag("u", "in U mode"),
        _flag("s", "in S mode"),
        reserved(1),
        _flag("m", "in M mode"),
        Field("match", 4, doc="0: equal to tdata2"),
        _flag("chain", "only together with the next trigger"),
        _ACTION,
        Field("sizelo", 2, doc="size of the access; 0: any"),
        _flag("timing", "1: after the instruction"),
        _flag("select", "1: compares a value, not an address"),
        _flag("hit", "it has fired"),
        Field("sizehi", 2, doc="size of the access"),
        reserved(41),
    ),
)
MCONTROL6 = IndirectRegister(
    "mcontrol6",
    "type 6: at an address or a value",
    (
        *_ACCESS,
        _flag("u", "in U mode"),
        _flag("s", "in S mode"),
        _flag("uncertainen", "may fire though it is not certain that it matches"),
        _flag("m", "in M mode"),
        Field("match", 4, doc="0: equal to tdata2"),
        _flag("chain", "only together with the next trigger"),
        _ACTION,
        Field("size", 3, doc="size of the access; 0: any"),
        reserved(2),
        _flag("select", "1: compares a value, not an address"),
        _flag("hit0", "it has fired"),
        _flag("vu", "in VU mode"),
        _flag("vs", "in VS mode"),
        _flag("hit1", "it has fired"),
        _flag("uncertain", "it may have fired without a match"),
        reserved(37),
    ),
)
ADDRESS_TYPES: Mapping[int, IndirectRegister] = {TriggerType.MCONTROL: MCONTROL, TriggerType.MCONTROL6: MCONTROL6}
"""The types that can act at the address of an instruction; a hart may have either or both."""
STATE: Mapping[int, int] = {
    TriggerType.MCONTROL: MCONTROL.mask("hit"),
    TriggerType.MCONTROL6: MCONTROL6.mask("hit0", "hit1", "uncertain"),
}
"""The bits of tdata1 that record whether the trigger has fired, by type."""

_WHEN_COUNTED = 1 << 6 | 1 << 7 | 1 << 9 | 1 << 25 | 1 << 26  # icount: u, s, m, vu, vs
_WHEN_TRAPPED = 1 << 6 | 1 << 7 | 1 << 9 | 1 << 11 | 1 << 12  # itrigger, etrigger: u, s, m, vu, vs
_AT_WORK: Mapping[int, int] = {
    TriggerType.MCONTROL: MCONTROL.mask("load", "store", "execute"),
    TriggerType.MCONTROL6: MCONTROL6.mask("load", "store", "execute"),
    TriggerType.ICOUNT: _WHEN_COUNTED,
    TriggerType.ITRIGGER: _WHEN_TRAPPED,
    TriggerType.ETRIGGER: _WHEN_TRAPPED,
    TriggerType.DISABLED: 0,
}
"""The bits without which a trigger of the type never fires. A trigger of any other type may fire whatever it holds."""


def is_free(tdata1: int, xlen: int) -> bool:
    """Return whether the trigger is not in use."""
    kind = trigger_type(tdata1, xlen)
    return kind in _AT_WORK and not tdata1 & _AT_WORK[kind]


def is_chained(tdata1: int, xlen: int) -> bool:
    """Return whether the trigger is chained to the next one."""
    part = ADDRESS_TYPES.get(trigger_type(tdata1, xlen))
    return part is not None and not is_free(tdata1, xlen) and bool(part.get(tdata1, "chain"))


MAX_TRIGGERS = 64
"""The most triggers of a hart that are examined."""
_ON_TRACE = (TrigAction.TRACE_ON, TrigAction.TRACE_OFF, TrigAction.TRACE_NOTIFY)
_AS_ASKED = ("load", "store", "execute", "match", "chain", "action", "select", "timing")
"""The fields that must read as they were written, as far as a type has them."""


class TriggersRefused(RvtraceError):
    """The hart's triggers cannot do what was requested, or one of them could not be restored."""

    def __init__(self, hart: int, text: str) -> None:
        super().__init__(f"hart {hart} {text}")
        self.hart = hart


@dataclass(frozen=True)
class TriggerPoint:
    """An action on the trace, and the address of the instruction before which it happens."""

    action: TrigAction
    address: int

    def __str__(self) -> str:
        return f"{action_name(self.action)} at {self.address:#x}"


@dataclass(frozen=True)
class AllocatedTrigger:
    """A trigger that a trace uses. *tdata1*: its value as read back; *before*: tdata1 and tdata2 as they were found."""

    number: int
    place: TriggerPoint
    tdata1: int
    before: tuple[int, int]


@dataclass(frozen=True)
class Trigger:
    """A trigger as it was found. *free*: it is not in use."""

    number: int
    tdata1: int
    tdata2: int
    free: bool


def action_name(action: TrigAction) -> str:
    return action.name.lower().replace("_", "-")


class TriggerModule:
    """The trigger module of a hart. All methods raise TriggersRefused when an access is refused."""

    def __init__(self, access: CsrAccess, hart: int) -> None:
        self._access, self.hart, self.xlen = access, hart, access.xlen

    def all(self) -> list[Trigger]:
        """Return the triggers of the hart, by number."""
        found: list[Trigger] = []
        for number in range(MAX_TRIGGERS):
            answers = self._access.run([(TSELECT, number), (TSELECT, None), (TDATA1, None), (TDATA2, None)])
            values = [answer for answer in answers if isinstance(answer, int)]
            if len(values) < 4 or values[1] != number or trigger_type(values[2], self.xlen) == TriggerType.NONE:
                break
            found.append(Trigger(number, values[2], values[3], is_free(values[2], self.xlen)))
        return found

    def is_usable(self, one: Trigger, triggers: Sequence[Trigger]) -> bool:
        """Return whether the trigger is free and not chained to the one before it."""
        before = triggers[one.number - 1].tdata1 if one.number else 0
        return one.free and not is_chained(before, self.xlen)

    def acts_on_trace(self, one: Trigger) -> TrigAction | None:
        """Return the action on the trace of a trigger that only rvtrace can have set; None for other triggers."""
        part = ADDRESS_TYPES.get(trigger_type(one.tdata1, self.xlen))
        if part is None or one.free or has_dmode(one.tdata1, self.xlen):
            return None
        action = part.get(one.tdata1, "action")
        return TrigAction(action) if action in _ON_TRACE else None

    def read(self, number: int) -> tuple[int, int]:
        """Return tdata1 and tdata2."""
        _, tdata1, tdata2 = self._run_accesses([(TSELECT, number), (TDATA1, None), (TDATA2, None)])
        return tdata1, tdata2

    def clear(self, number: int) -> None:
        self._run_accesses([(TSELECT, number), (TDATA1, 0)])

    def set(self, number: int, place: TriggerPoint) -> int | str:
        """Set the trigger. Return tdata1 as read back, or why the setting was not granted; the trigger is then left
        cleared.
        """
        now = trigger_type(self.read(number)[0], self.xlen)
        self.clear(number)
        self._access.run([(TSELECT, number), (TDATA3, 0)])  # there need not be one
        problem = ""
        for kind in sorted(ADDRESS_TYPES, key=lambda kind: (kind != now, -kind)):
            part = ADDRESS_TYPES[kind]
            modes = {mode: 1 for mode in ("m", "s", "u", "vs", "vu") if mode in part.by_name}
            asked = make_tdata1(kind, part.pack(execute=1, action=place.action, **modes), self.xlen)
            self._run_accesses([(TSELECT, number), (TDATA2, place.address), (TDATA1, asked)])
            tdata1, tdata2 = self.read(number)
            refusal = self._refusal(kind, asked, tdata1, tdata2, place)
            if not refusal:
                return tdata1
            self.clear(number)
            problem = problem or (refusal if trigger_type(tdata1, self.xlen) == kind else "")
        return problem or "has no free trigger for addresses (mcontrol, mcontrol6)"

    def _refusal(self, kind: int, written: int, tdata1: int, tdata2: int, place: TriggerPoint) -> str:
        """Return why the trigger does not do what was *written*, or an empty string."""
        part = ADDRESS_TYPES[kind]
        if part.get(tdata1, "action") != place.action:
            return f"has no trigger with the action {action_name(place.action)} (tdata1 reads {tdata1:#x})"
        fields = part.mask(*(name for name in _AS_ASKED if name in part.by_name))
        if trigger_type(tdata1, self.xlen) != kind or (written ^ tdata1) & fields or not part.get(tdata1, "m"):
            return f"has no trigger that acts at an address in all modes (tdata1 reads {tdata1:#x}, not {written:#x})"
        if tdata2 != place.address:
            return f"has no trigger that compares with {place.address:#x} (tdata2 reads {tdata2:#x})"
        return ""

    def put_back(self, one: AllocatedTrigger) -> None:
        """Restore the trigger. A trigger that does not fire need not be restored bit by bit."""
        tdata1, tdata2 = one.before
        self.clear(one.number)
        if not is_free(self.read(one.number)[0], self.xlen):
            raise TriggersRefused(self.hart, f"keeps trigger {one.number}, which was set to {one.place}")
        self._run_accesses([(TSELECT, one.number), (TDATA2, tdata2), (TDATA1, tdata1)])

    def difference(self, one: AllocatedTrigger) -> str:
        """Return how the trigger differs from what `set` wrote, apart from the bits that record that it has fired."""
        tdata1, tdata2 = self.read(one.number)
        state = STATE.get(trigger_type(one.tdata1, self.xlen), 0)
        if (tdata1 | state) == (one.tdata1 | state) and tdata2 == one.place.address:
            return ""
        text = "was cleared" if is_free(tdata1, self.xlen) else "was set to something else"
        return f"hart {self.hart}: trigger {one.number} ({one.place}) {text}, by a reset or by the program"

    def _run_accesses(self, accesses: Sequence[CsrRequest]) -> list[int]:
        """Do the accesses and return the values. Raises TriggersRefused if one of them is refused."""
        values: list[int] = []
        for (register, value), answer in zip(accesses, self._access.run(accesses), strict=False):
            if isinstance(answer, str):
                name = NAMES[register] if isinstance(register, int) else register
                verb = "read" if value is None else "written"
                raise TriggersRefused(self.hart, f"has a trigger whose {name} cannot be {verb}: {answer}")
            values.append(answer)
        return values


def allocate(access: CsrAccess, hart: int, places: Sequence[TriggerPoint]) -> tuple[list[AllocatedTrigger], list[str]]:
    """Set a trigger for each point. Return the triggers, and notes for the user, one line each.

    Raises TriggersRefused and the errors of *access*; all triggers are restored before, as far as that is possible.
    """
    with _selecting(access, hart) as module:
        found, notes = _without_leftovers(module, module.all())
        usable = [one for one in found if module.is_usable(one, found)]
        if len(usable) < len(places):
            raise TriggersRefused(hart, _too_few(len(found), len(usable), len(places)))
        return _allocate_all(module, usable, places), notes


class AsManyAsFree(NamedTuple):
    """What `allocate_free` has set: triggers for the first places. *free*: how many there were to choose from."""

    taken: list[AllocatedTrigger]
    free: int
    notes: list[str]


def allocate_free(
    access: CsrAccess, hart: int, places: Sequence[TriggerPoint], kept: Collection[int] = ()
) -> AsManyAsFree:
    """Set a trigger for each point, as long as there are free ones. *kept*: the numbers of those that the trace has
    already. Raises as `allocate`.
    """
    with _selecting(access, hart) as module:
        found, notes = _without_leftovers(module, module.all(), kept)
        usable = [one for one in found if module.is_usable(one, found)]
        return AsManyAsFree(_allocate_all(module, usable, places[: len(usable)]), len(usable), notes)


def release(access: CsrAccess, hart: int, taken: Sequence[AllocatedTrigger]) -> list[str]:
    """Restore the triggers as they were found. Return a line for each that other software has changed. Raises as
    `allocate`.
    """
    with _selecting(access, hart) as module:
        return [line for one in taken if (line := _give_back(module, one))]


def _give_back(module: "TriggerModule", one: AllocatedTrigger) -> str:
    line = module.difference(one)
    if line:
        return line
    try:
        module.put_back(one)
    except TriggersRefused as error:
        return str(error)
    return ""


def altered_notes(access: CsrAccess, hart: int, taken: Sequence[AllocatedTrigger]) -> list[str]:
    """Return a line for each trigger that is no longer set as it was. Raises as `allocate`."""
    with _selecting(access, hart) as module:
        return [line for one in taken if (line := module.difference(one))]


@contextmanager
def _selecting(access: CsrAccess, hart: int) -> Iterator["TriggerModule"]:
    """Restore tselect at the end: the program, and debuggers, may rely on it."""
    before = access.run([(TSELECT, None)])[0]
    if isinstance(before, str):
        raise TriggersRefused(hart, f"has no debug triggers that can be reached (tselect: {before})")
    try:
        yield TriggerModule(access, hart)
    finally:
        access.run([(TSELECT, before)])


def _without_leftovers(
    module: "TriggerModule", triggers: list[Trigger], kept: Collection[int] = ()
) -> tuple[list[Trigger], list[str]]:
    """Clear triggers that an earlier run has left, all but *kept*: they would act on this trace. Return the triggers,
    and a note for each that was cleared.
    """
    left, notes = [], []
    for one in triggers:
        action = None if one.number in kept else module.acts_on_trace(one)
        if action is None:
            left.append(one)
            continue
        module.clear(one.number)
        point = TriggerPoint(action, one.tdata2)
        notes.append(f"hart {module.hart}: trigger {one.number} was still set ({point}); removed")
        left.append(replace(one, tdata1=module.read(one.number)[0], free=True))
    return left, notes


def _allocate_all(
    module: "TriggerModule", usable: Sequence[Trigger], places: Sequence[TriggerPoint]
) -> list[AllocatedTrigger]:
    """Set a trigger of *usable* for each point; if one is refused, none."""
    taken: list[AllocatedTrigger] = []
    try:
        for place in places:
            one = _allocate(module, usable, place)
            taken.append(one)
            usable = [other for other in usable if other.number != one.number]
    except BaseException:
        for one in taken:
            with suppress(RvtraceError):  # what went wrong first is what the user must know
                module.put_back(one)
        raise
    return taken


def _allocate(module: "TriggerModule", usable: Sequence[Trigger], place: TriggerPoint) -> AllocatedTrigger:
    refused = ""
    for one in reversed(usable):
        got = module.set(one.number, place)
        taken = AllocatedTrigger(one.number, place, got if isinstance(got, int) else 0, (one.tdata1, one.tdata2))
        if isinstance(got, int):
            return taken
        module.put_back(taken)
        refused = refused or got
    raise TriggersRefused(module.hart, refused)


def _too_few(count: int, free: int, needed: int) -> str:
    if not count:
        return "has no debug triggers"
    remedy = "delete hardware breakpoints and watchpoints"
    if not free:
        return f"has no free trigger, {'its only one is' if count == 1 else f'all {count} are'} in use: {remedy}"
    return f"has {free} free trigger{'s'[: free != 1]}, {needed} places need one each: name fewer, or {remedy}"
