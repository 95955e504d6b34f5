"""The trigger module of a hart that stands still: which triggers it has, and one of them set, taken back, compared.

Ref: RISC-V Debug Specification 1.0, "Sdtrig": enumeration, and 0 in tdata1 before tdata2 and tdata3 change; RISC-V
Trace Control Interface 1.0, "Debug Trigger Module": read back what action was granted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.csr_access import Access, CsrAccess
from rvtrace_gdb.controlregs.debug_triggers import (
    ADDRESS_TYPES,
    NAMES,
    STATE,
    TDATA1,
    TDATA2,
    TDATA3,
    TSELECT,
    TriggerType,
    chains,
    dmode,
    is_free,
    of_type,
    type_of,
)
from rvtrace_gdb.controlregs.encoder import TrigAction
from rvtrace_gdb.support.errors import RvtraceError

MOST = 64
"""Triggers of a hart that are looked at."""
_ON_TRACE = (TrigAction.TRACE_ON, TrigAction.TRACE_OFF, TrigAction.TRACE_NOTIFY)
_AS_ASKED = ("load", "store", "execute", "match", "chain", "action", "select", "timing")
"""Fields that must be as they were written, those of them that a type has."""


class TriggersRefused(RvtraceError):
    """The hart's triggers cannot do what was asked for, or one of them could not be taken back."""

    def __init__(self, hart: int, text: str) -> None:
        super().__init__(f"hart {hart} {text}")
        self.hart = hart


@dataclass(frozen=True)
class Place:
    """What is to happen to the trace before the instruction at *address* is executed."""

    action: TrigAction
    address: int

    def __str__(self) -> str:
        return f"{name_of(self.action)} at {self.address:#x}"


@dataclass(frozen=True)
class Taken:
    """A trigger that was taken. *tdata1*: as read back; *before*: tdata1 and tdata2 as they were."""

    number: int
    place: Place
    tdata1: int
    before: tuple[int, int]


@dataclass(frozen=True)
class Found:
    """A trigger as it was found. *free*: nobody uses it."""

    number: int
    tdata1: int
    tdata2: int
    free: bool


def name_of(action: TrigAction) -> str:
    return action.name.lower().replace("_", "-")


class TriggerModule:
    """The trigger module of a hart. All raise TriggersRefused when an access is refused."""

    def __init__(self, access: CsrAccess, hart: int) -> None:
        self._access, self.hart, self.xlen = access, hart, access.xlen

    def all(self) -> list[Found]:
        """The triggers there are, by number."""
        found: list[Found] = []
        for number in range(MOST):
            answers = self._access.run([(TSELECT, number), (TSELECT, None), (TDATA1, None), (TDATA2, None)])
            values = [answer for answer in answers if isinstance(answer, int)]
            if len(values) < 4 or values[1] != number or type_of(values[2], self.xlen) == TriggerType.NONE:
                break
            found.append(Found(number, values[2], values[3], is_free(values[2], self.xlen)))
        return found

    def is_usable(self, one: Found, found: Sequence[Found]) -> bool:
        """Whether nobody uses it, alone or chained to the one before it."""
        before = found[one.number - 1].tdata1 if one.number else 0
        return one.free and not chains(before, self.xlen)

    def acts_on_trace(self, one: Found) -> TrigAction | None:
        """What a trigger does to the trace that nobody but us would have set."""
        part = ADDRESS_TYPES.get(type_of(one.tdata1, self.xlen))
        if part is None or one.free or dmode(one.tdata1, self.xlen):
            return None
        action = part.get(one.tdata1, "action")
        return TrigAction(action) if action in _ON_TRACE else None

    def read(self, number: int) -> tuple[int, int]:
        """tdata1 and tdata2."""
        _, tdata1, tdata2 = self._run([(TSELECT, number), (TDATA1, None), (TDATA2, None)])
        return tdata1, tdata2

    def clear(self, number: int) -> None:
        self._run([(TSELECT, number), (TDATA1, 0)])

    def set(self, number: int, place: Place) -> int | str:
        """tdata1 as read back, or why it was not granted: the trigger is then left cleared."""
        now = type_of(self.read(number)[0], self.xlen)
        self.clear(number)
        self._access.run([(TSELECT, number), (TDATA3, 0)])  # there need not be one
        problem = ""
        for kind in sorted(ADDRESS_TYPES, key=lambda kind: (kind != now, -kind)):
            part = ADDRESS_TYPES[kind]
            modes = {mode: 1 for mode in ("m", "s", "u", "vs", "vu") if mode in part.by_name}
            asked = of_type(kind, part.pack(execute=1, action=place.action, **modes), self.xlen)
            self._run([(TSELECT, number), (TDATA2, place.address), (TDATA1, asked)])
            tdata1, tdata2 = self.read(number)
            refusal = self._refusal(kind, asked, tdata1, tdata2, place)
            if not refusal:
                return tdata1
            self.clear(number)
            problem = problem or (refusal if type_of(tdata1, self.xlen) == kind else "")
        return problem or "has no free trigger for addresses (mcontrol, mcontrol6)"

    def _refusal(self, kind: int, asked: int, tdata1: int, tdata2: int, place: Place) -> str:
        """Why the trigger does not do what was *asked*; empty: it does."""
        part = ADDRESS_TYPES[kind]
        if part.get(tdata1, "action") != place.action:
            return f"has no trigger with the action {name_of(place.action)} (tdata1 reads {tdata1:#x})"
        fields = part.mask(*(name for name in _AS_ASKED if name in part.by_name))
        if type_of(tdata1, self.xlen) != kind or (asked ^ tdata1) & fields or not part.get(tdata1, "m"):
            return f"has no trigger that acts at an address in all modes (tdata1 reads {tdata1:#x}, not {asked:#x})"
        if tdata2 != place.address:
            return f"has no trigger that compares with {place.address:#x} (tdata2 reads {tdata2:#x})"
        return ""

    def put_back(self, one: Taken) -> None:
        """As it was before; what does not fire there need not be restored bit by bit."""
        tdata1, tdata2 = one.before
        self.clear(one.number)
        if not is_free(self.read(one.number)[0], self.xlen):
            raise TriggersRefused(self.hart, f"keeps trigger {one.number}, which was set to {one.place}")
        self._run([(TSELECT, one.number), (TDATA2, tdata2), (TDATA1, tdata1)])

    def difference(self, one: Taken) -> str:
        """What is not as `set` has left it, but for what tells that it has fired."""
        tdata1, tdata2 = self.read(one.number)
        state = STATE.get(type_of(one.tdata1, self.xlen), 0)
        if (tdata1 | state) == (one.tdata1 | state) and tdata2 == one.place.address:
            return ""
        text = "was cleared" if is_free(tdata1, self.xlen) else "was set to something else"
        return f"hart {self.hart}: trigger {one.number} ({one.place}) {text}, by a reset or by the program"

    def _run(self, accesses: Sequence[Access]) -> list[int]:
        """The answers, all of which must be there."""
        values: list[int] = []
        for (register, value), answer in zip(accesses, self._access.run(accesses), strict=False):
            if isinstance(answer, str):
                name = NAMES[register] if isinstance(register, int) else register
                verb = "read" if value is None else "written"
                raise TriggersRefused(self.hart, f"has a trigger whose {name} cannot be {verb}: {answer}")
            values.append(answer)
        return values
