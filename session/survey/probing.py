"""Looking for trace components at addresses that the user allows, and only there.

Reading an address where nothing is can hang a chip, and reading a register of another device can have an effect: so two
words of each 4 KiB are read, and nothing else. What may be a component in reset is woken only if the user allows that,
too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.controlregs.trace_control import discovery
from rvtrace_gdb.controlregs.trace_control.component_registers import VERSION
from rvtrace_gdb.controlregs.trace_control.discovery import ProbeAnswer, ProbedComponent
from rvtrace_gdb.session.survey.questions import BoardError, Unfit
from rvtrace_gdb.support.errors import RvtraceError

BLOCK = 0x1000  # Trace Control Interface 1.0: one 4 KiB-aligned block of 4 KiB per component
MOST = 4096
"""Blocks that are probed at most: 16 MiB of addresses."""
_FORM = re.compile(r"(0[xX][0-9a-fA-F]{1,16})(?:\s*-\s*(0[xX][0-9a-fA-F]{1,16}))?")


class ProbeLost(BoardError):
    """The target does not answer any more after an access to *base*."""

    def __init__(self, base: int, cause: RvtraceError) -> None:
        self.base, self.cause = base, cause
        super().__init__(
            f"the target was lost while {base:#x} was read ({cause}): if that hung the chip, reset it and leave this"
            " address out"
        )


def blocks(text: str) -> tuple[int, ...]:
    """Return the addresses of the blocks that "ADDRESS[-ADDRESS], ..." allows; the second one is not included. Raises
    Unfit.
    """
    found: dict[int, None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _FORM.fullmatch(part)
        if match is None:
            raise Unfit(f"{part!r} is not ADDRESS or ADDRESS-ADDRESS, as in 0x20000000-0x20004000")
        start, end = int(match[1], 16), int(match[2], 16) if match[2] else int(match[1], 16) + 1
        _check_range(part, start, end)
        found |= dict.fromkeys(range(start, end, BLOCK))
    if len(found) > MOST:
        raise Unfit(f"these are {len(found)} blocks of 4 KiB, {MOST} at most are probed: name a smaller range")
    return tuple(found)


def _check_range(part: str, start: int, end: int) -> None:
    if start % BLOCK:
        raise Unfit(f"{start:#x} is not a multiple of {BLOCK:#x}, as all bases of trace components are")
    if end <= start:
        raise Unfit(f"{part!r}: the second address must be higher; it is the first that is not read")
    if end - start > MOST * BLOCK:
        raise Unfit(f"{part!r} is more than {MOST * BLOCK >> 20} MiB: name a smaller range")


def probe(
    target: Target, bases: Iterable[int], progress: Callable[[int], None] = lambda base: None
) -> list[ProbedComponent]:
    """Look at each address. Raises ProbeLost."""
    return [_guarded(partial(discovery.look, target, base), base, progress) for base in bases]


def wake(target: Target, seen: Sequence[ProbedComponent]) -> list[ProbedComponent]:
    """Wake what may be components in reset, and return all of *seen*, with what these have shown. Raises ProbeLost."""
    return [_woken(target, each) if each.answer is ProbeAnswer.MAYBE_IN_RESET else each for each in seen]


def _woken(target: Target, seen: ProbedComponent) -> ProbedComponent:
    return _guarded(partial(discovery.wake, target, seen), seen.base)


def _guarded(
    act: Callable[[], ProbedComponent], base: int, progress: Callable[[int], None] = lambda base: None
) -> ProbedComponent:
    progress(base)
    try:
        return act()
    except RvtraceError as error:
        raise ProbeLost(base, error) from error


def lines(seen: Iterable[ProbedComponent]) -> Iterator[str]:
    """Yield what was found, in the order of the addresses. Neighbours without a component share a line."""
    ordered = sorted(seen, key=lambda each: each.base)
    for (_, text), group in groupby(ordered, key=lambda each: (each.answer, _probed_text(each))):
        members = list(group)
        shared = members[0].answer in (ProbeAnswer.NOTHING, ProbeAnswer.REFUSED, ProbeAnswer.MAYBE_IN_RESET)
        for run in _member_runs(members) if shared else [[member] for member in members]:
            where = f"{run[0].base:#x}" + (f" to {run[-1].base:#x}" if len(run) > 1 else "")
            yield f"{where}: {text}"


def probed_addresses(seen: Iterable[ProbedComponent]) -> str:
    """Return the addresses that were looked at, as in `lines`."""
    return ", ".join(line.partition(": ")[0] for line in lines(seen))


def _member_runs(members: Sequence[ProbedComponent]) -> Iterator[list[ProbedComponent]]:
    run: list[ProbedComponent] = []
    for member in members:
        if run and member.base != run[-1].base + BLOCK:
            yield run
            run = []
        run.append(member)
    yield run


def _probed_text(seen: ProbedComponent) -> str:
    """Describe what is at an address, and what to do."""
    if seen.answer is ProbeAnswer.COMPONENT:
        return _component_text(seen)
    major, minor = seen.version
    impl = f"tr??Impl reads {seen.impl or 0:#010x}"
    return {
        ProbeAnswer.MAYBE_IN_RESET: "nothing, or a component in reset: --wake finds out",
        ProbeAnswer.STAYS_IN_RESET: "Active does not become 1: no component, or one without clock or power;"
        " switch it on",
        ProbeAnswer.UNKNOWN_TYPE: f"no trace component that rvtrace knows: {impl}, type {seen.type_code:#x}; left out",
        ProbeAnswer.RESERVED_VERSION: f"no trace component, or one of version {major}.{minor}, which rvtrace does not"
        f" know (it knows {VERSION[0]}.{VERSION[1]}; {impl}); left out",
        ProbeAnswer.PRE_RATIFIED: f"no trace component of version 1 ({impl}); if it is SiFive's pre-ratification"
        " interface, describe it by hand with version = 0 (docs/sifive-v0.md)",
        ProbeAnswer.NOTHING: "no trace component",
        ProbeAnswer.REFUSED: "bus error: nothing is there, or it has no power",
    }[seen.answer]


NAMES = {
    "encoder": "trace encoder",
    "funnel": "trace funnel",
    "ram_sink": "RAM sink",
    "pib_sink": "PIB sink",
    "atb_bridge": "ATB bridge",
}


def _component_text(seen: ProbedComponent) -> str:
    storage = {(): "", ("SRAM",): ", memory of its own", ("SMEM",): ", writes to system memory"}
    storage_text = storage.get(seen.storage, ", memory of its own or system memory") if seen.kind == "ram_sink" else ""
    newer = f", newer than {VERSION[0]}.{VERSION[1]} and used like it" if seen.newer else ""
    return f"{NAMES[seen.kind]}, interface {seen.version[0]}.{seen.version[1]}{newer}{storage_text}"
