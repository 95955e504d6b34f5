"""Places in the program that switch or mark the trace: debug triggers of a hart that stands still.

They are written without dmode: OpenOCD 0.12 takes a trigger with dmode for one of its own or of a session before it,
switches it off for each single step, so also to go on from a breakpoint, and clears it when it is started. Without
dmode it leaves a trigger alone, and puts its hardware breakpoints into others. They are taken from the highest number
down, because debuggers begin with the lowest one.

Ref: as `controlregs.trigger_module`; what OpenOCD does was found out with 0.12.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.controlregs.debug_triggers import TSELECT
from rvtrace_gdb.controlregs.trigger_module import Found, Place, Taken, TriggerModule, TriggersRefused
from rvtrace_gdb.support.errors import RvtraceError


def take(access: CsrAccess, hart: int, places: Sequence[Place]) -> tuple[list[Taken], list[str]]:
    """Set a trigger for each place. Returns them, and lines on what the user should know.

    Raises TriggersRefused and what *access* raises; no trigger is then set any more that could be taken back.
    """
    with _selecting(access, hart) as module:
        found, notes = _without_leftovers(module, module.all())
        usable = [one for one in found if module.is_usable(one, found)]
        if len(usable) < len(places):
            raise TriggersRefused(hart, _too_few(len(found), len(usable), len(places)))
        taken: list[Taken] = []
        try:
            for place in places:
                one = _take(module, usable, place)
                taken.append(one)
                usable = [other for other in usable if other.number != one.number]
        except BaseException:
            for one in taken:
                with suppress(RvtraceError):  # what went wrong first is what the user must know
                    module.put_back(one)
            raise
    return taken, notes


def give_back(access: CsrAccess, hart: int, taken: Sequence[Taken]) -> list[str]:
    """Leave the triggers as they were found. Returns a line for each that is not ours any more. Raises as `take`."""
    with _selecting(access, hart) as module:
        return [line for one in taken if (line := _give_back(module, one))]


def _give_back(module: "TriggerModule", one: Taken) -> str:
    line = module.difference(one)
    if line:
        return line
    try:
        module.put_back(one)
    except TriggersRefused as error:
        return str(error)
    return ""


def altered(access: CsrAccess, hart: int, taken: Sequence[Taken]) -> list[str]:
    """A line for each trigger that is not set as it was any more. Raises as `take`."""
    with _selecting(access, hart) as module:
        return [line for one in taken if (line := module.difference(one))]


@contextmanager
def _selecting(access: CsrAccess, hart: int) -> Iterator["TriggerModule"]:
    """The program, and debuggers, may rely on tselect."""
    before = access.run([(TSELECT, None)])[0]
    if isinstance(before, str):
        raise TriggersRefused(hart, f"has no debug triggers that can be reached (tselect: {before})")
    try:
        yield TriggerModule(access, hart)
    finally:
        access.run([(TSELECT, before)])


def _without_leftovers(module: "TriggerModule", found: list[Found]) -> tuple[list[Found], list[str]]:
    """Triggers that act on the trace would act on ours: nobody has taken them back."""
    left, notes = [], []
    for one in found:
        action = module.acts_on_trace(one)
        if action is None:
            left.append(one)
            continue
        module.clear(one.number)
        notes.append(f"hart {module.hart}: trigger {one.number} was still set ({Place(action, one.tdata2)}); removed")
        left.append(replace(one, tdata1=module.read(one.number)[0], free=True))
    return left, notes


def _take(module: "TriggerModule", usable: Sequence[Found], place: Place) -> Taken:
    refused = ""
    for one in reversed(usable):
        got = module.set(one.number, place)
        taken = Taken(one.number, place, got if isinstance(got, int) else 0, (one.tdata1, one.tdata2))
        if isinstance(got, int):
            return taken
        module.put_back(taken)
        refused = refused or got
    raise TriggersRefused(module.hart, refused)


def _too_few(there: int, free: int, needed: int) -> str:
    if not there:
        return "has no debug triggers"
    remedy = "delete hardware breakpoints and watchpoints"
    if not free:
        return f"has no free trigger, {'its only one is' if there == 1 else f'all {there} are'} in use: {remedy}"
    return f"has {free} free trigger{'s'[: free != 1]}, {needed} places need one each: name fewer, or {remedy}"
