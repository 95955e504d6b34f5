"""What can be believed of a trace: the address of a group in doubt, and the parameters that the trace is read with.

In doubt is a group next to damage: the first one after a loss or after missing groups, one that breaks a rule, the one
after it, and one without an end among others that have one. An address has three witnesses: the group after it, which
continues there or cannot; the program, which has that instruction there or another one; and, if the program differs
from the trace anyhow, only the trace.

A trace does not contain its parameters, but read with wrong ones it soon falls apart (`fit`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.tandem.effects import NOWHERE, Anywhere, Steps
from rvtrace_gdb.decode.tandem.group_grammar import GroupProblem
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.indexer import index_of
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, Ending, Group, Instr, Opcode, TandemDialect, TandemParameters
from rvtrace_gdb.decode.tandem.trace import Flaw, TraceGroups

TRACE = "the trace"
"""The origin of code that a program does not have."""
LOOKAHEAD = 2
"""How many groups after one are examined."""

_HARMLESS = (GroupProblem.DUPLICATE_RESET, GroupProblem.DUPLICATE_INITIALIZATION, GroupProblem.ORPHAN_END)


class PreviousGroup(NamedTuple):
    """What the groups after a group need to know of it: whether it agrees with the program, if known; breaks a rule."""

    agrees: bool | None = None
    is_flawed: bool = False


class Beliefs:
    """The groups of an index from *first* on. *before*: of the group before."""

    def __init__(self, index: Index, first: int, flaws: Iterable[Flaw], before: PreviousGroup) -> None:
        self._index, self._trace, self._first, self._before = index, index.trace, first, before
        self._steps = Steps(index.trace.parameters.xlen)
        flawed = {flaw.group for flaw in flaws if flaw.problem not in _HARMLESS}
        flawed |= {first - 1} if before.is_flawed else set()
        self._flawed = flawed
        self._loose = {flaw.group for flaw in flaws if flaw.problem is GroupProblem.LOOSE_EXECUTION}
        self._contradicted = {mark.group for mark in index.breaks if not mark.loss}
        self._broken = {mark.group for mark in index.breaks}
        self._lost = self._broken - self._contradicted
        self.doubtful = {*self._broken, *flawed, *(group + 1 for group in flawed), *self._without_end()}
        """The groups in doubt; a group with such a number need not exist yet."""
        self.waiting = self.doubtful | {trap.group for trap in index.traps}
        """The groups that cannot be decided before those after them are known."""

    def _without_end(self) -> Iterator[int]:
        """Yield the groups whose end is implied, directly after one that has its end."""
        trace, first = self._trace, self._first
        implied = {shape.number for shape in trace.automaton.shapes if not shape.loose and not shape.end}
        shapes = trace.shapes
        if not implied.isdisjoint(shapes[first:]):
            yield from (
                group
                for group in range(max(first, 1), len(shapes))
                if shapes[group] in implied and shapes[group - 1] not in implied
            )

    def believes(self, group: int, image: Image) -> bool:
        """Return whether the instruction of a group in doubt ran at the address in the group."""
        if group in self._loose:
            return False
        agrees = self._agrees(group, image)
        if agrees:
            return True
        if group in self._contradicted and group and self._agrees(group, image, self._index.pcs[group - 1]):
            return False  # it is the one that was due: where it says it was is what is damaged
        if agrees is None:  # no code of the program is there
            if group in self._contradicted:
                return self._continues(group, image)
            return group not in self._broken or group + 1 not in self._contradicted
        before = self._agrees(group - 1, image) if group > self._first else self._before.agrees
        return not (before or any(self._ahead(group, LOOKAHEAD, image)))

    def _continues(self, group: int, image: Image) -> bool:
        """Return whether what follows confirms where a group continued, and does not contradict the program's code."""
        following = group + 1
        if following >= len(self._index.pcs) or following in self._lost:
            return True
        instr = self._instr(following)
        leads_anywhere = instr is not None and isinstance(self._steps[instr.word], Anywhere)
        return following not in self._contradicted and not leads_anywhere and not any(self._ahead(group, 1, image))

    def _ahead(self, group: int, most: int, image: Image) -> Iterator[bool | None]:
        """Yield whether the groups after one agree with the program, up to a loss."""
        for following in range(group + 1, group + 1 + most):
            if following in self._lost:
                return
            yield self._agrees(following, image)

    def handler(self, group: int) -> bool:
        """Return whether a trap is believed to have continued at the address in its group: what follows does not
        contradict it.
        """
        return group + 1 not in self._contradicted

    def origin(self, group: int, image: Image) -> bool:
        """Return whether a trap is believed to have been at the address in its group."""
        return group not in self._contradicted or self._agrees(group, image) is True

    def agrees(self, group: int, image: Image) -> bool | None:
        """Return whether the program has the instruction of a group at its address; None: no instruction, or no code
        there.
        """
        return self._agrees(group, image)

    def _agrees(self, group: int, image: Image, at: int = NOWHERE) -> bool | None:
        """Return the same as `agrees`, for the address *at*."""
        if not 0 <= group < len(self._index.pcs):
            return None
        instr = self._instr(group)
        origin = self._index.origin(group) if at == NOWHERE else at
        if instr is None or origin == NOWHERE or not image.knows(origin) or image.origin(origin) == TRACE:
            return None
        try:
            return image.read(origin, instr.length) == instr.word.to_bytes(instr.length, "little")
        except CodeMissing:
            return None

    def _instr(self, group: int) -> Instr | None:
        return next((element for element in self._trace.elements(group) if isinstance(element, Instr)), None)

    def last(self, stop: int, image: Image) -> PreviousGroup:
        """Return what the next groups need to know of the group before *stop*."""
        if stop <= self._first:
            return self._before
        return PreviousGroup(self._agrees(stop - 1, image), stop - 1 in self._flawed)


_SAMPLE = 1 << 14  # bytes that are looked at
_ODD_ONES = 20  # one group in so many may be odd
_GROUPS = 4  # that are not an accident
_LONGEST_CUT = 256  # bytes of a group that is cut off by the end of the sample
_FAR_BETTER = 4  # times fewer contradictions


class Fit(NamedTuple):
    """How well a sample can be read.

    lost    bytes that are not part of a group
    odd     groups that break a rule, or continue where their instruction cannot, or seem to have no end
    groups  how many there are
    first   where the first loss is, None without one
    """

    lost: int
    odd: int
    groups: int
    first: int | None

    @property
    def fits(self) -> bool:
        """Whether nothing contradicts the parameters."""
        return not self.lost and self.odd * _ODD_ONES <= self.groups


def fit(data: bytes, parameters: TandemParameters, *, wrapped: bool = False) -> Fit:
    """Return how well the beginning of *data* can be read with these parameters. *wrapped*: it may
    be inside a group.
    """
    sample = bytes(data[:_SAMPLE])
    trace = TraceGroups.from_bytes(sample, parameters, wrapped=wrapped)
    if wrapped and trace.losses and not trace.losses[0].offset and trace.losses[0].length <= _LONGEST_CUT:
        begin = trace.losses[0].length
        found = fit(sample[begin:], parameters)
        return found._replace(first=None if found.first is None else found.first + begin)
    index = index_of(trace)
    losses = [loss for loss in trace.losses if loss.offset + loss.length < len(sample)]  # the last is cut off
    whole = trace.losses[len(losses) :]
    cut = sum(loss.length for loss in whole if loss.length > _LONGEST_CUT)
    lost = sum(loss.length for loss in losses) + cut
    odd = sum(1 for _ in trace.flaws()) + sum(1 for found in index.breaks if not found.loss)
    odd += sum(1 for group in trace.groups() if _swallowed_its_end(group, sample))
    first = min((loss.offset for loss in trace.losses), default=None) if lost else None
    return Fit(lost, odd, len(trace), first)


def _swallowed_its_end(group: Group, data: bytes) -> bool:
    """Return whether a field that was read too long may contain the end group."""
    return group.ending is Ending.IMPLIED and data[group.offset + group.size - 1] == Opcode.END_GROUP


def candidate_parameters(parameters: TandemParameters) -> list[TandemParameters]:
    """Return other parameters a trace may have: the other XLEN and FLEN, Sv32, two addresses for the pc."""
    base = replace(parameters, mlen=0, eaddr=0)
    found = [
        replace(base, xlen=xlen, flen=flen, mlen=mlen, dialect=dialect)
        for dialect in _dialects(parameters.dialect)
        for xlen in (parameters.xlen, 96 - parameters.xlen)
        for flen in (64, 32)
        for mlen in ((0, 34) if xlen == 32 else (0,))
    ]
    return [other for other in dict.fromkeys(found) if other.widths != parameters.widths]


def _dialects(dialect: TandemDialect) -> list[TandemDialect]:
    """Return the dialects whose bytes have another layout."""
    others = (DIALECTS[name] for name in ("flute", "specification", "two-pc"))
    return list(dict.fromkeys([dialect, *others]))


def better_parameters(data: bytes, parameters: TandemParameters, *, wrapped: bool = False) -> TandemParameters | None:
    """Return parameters that the beginning of *data* can be read with, if it cannot be with these; None: there are
    none.

    Of several, these are the ones with the fewest differences.
    """
    if fit(data, parameters, wrapped=wrapped).fits:
        return None
    fits = ((other, fit(data, other, wrapped=wrapped)) for other in candidate_parameters(parameters))
    return next((other for other, found in fits if found.fits and found.groups), None)


def contradictions(data: bytes, parameters: TandemParameters, *, wrapped: bool = False) -> int:
    """Return at how many places the beginning of *data* continues where it cannot, or has an instruction at an unknown
    address.
    """
    trace = TraceGroups.from_bytes(bytes(data[:_SAMPLE]), parameters, wrapped=wrapped)
    index = index_of(trace)
    nowhere = sum(1 for group in range(1, len(trace)) if index.retired[group] and index.origin(group) == NOWHERE)
    return nowhere + sum(1 for found in index.breaks if not found.loss)


def parameters_of_other_meaning(
    data: bytes, parameters: TandemParameters, *, wrapped: bool = False
) -> TandemParameters | None:
    """Return parameters with the same layout of bytes and another meaning, with which *data* contradicts itself far
    less.
    """
    count = contradictions(data, parameters, wrapped=wrapped)
    if not count:
        return None
    others = [replace(parameters, dialect=dialect) for dialect in _same_bytes(parameters)]
    counts = [(contradictions(data, other, wrapped=wrapped), number) for number, other in enumerate(others)]
    best, number = min(counts, default=(count, 0))
    return others[number] if best * _FAR_BETTER <= count else None


def _same_bytes(parameters: TandemParameters) -> Iterator[TandemDialect]:
    """Yield the dialects whose groups look the same, but whose addresses have another meaning."""
    dialect = parameters.dialect
    for name in ("flute" if parameters.xlen == 64 else "piccolo", "toooba", "piccolo-2018"):
        other = DIALECTS[name]
        meaning = other.xret_pc_is_own, other.pc_register
        if meaning != (dialect.xret_pc_is_own, dialect.pc_register) and dialect.pcs == other.pcs:
            yield other


def is_tandem_trace(data: bytes) -> bool:
    """Return whether *data* begins as tandem traces do, and can be read as one: no other trace is that by chance."""
    if data[:1] != bytes([Opcode.BEGIN_GROUP]):
        return False
    found = (fit(data, parameters) for parameters in (TandemParameters(64), TandemParameters(32)))
    return (
        any(one.fits and one.groups >= _GROUPS for one in found)
        or better_parameters(data, TandemParameters(64)) is not None
    )


def parameter_hint(data: bytes, parameters: TandemParameters, *, wrapped: bool = False) -> str:
    """Return the hint for a trace that cannot be read with these parameters: "this looks like RV64"; "" if it can."""
    if not data:
        return ""
    found, other = fit(data, parameters, wrapped=wrapped), better_parameters(data, parameters, wrapped=wrapped)
    where = "" if found.first is None else f" from byte 0x{found.first:x} on"
    if other is not None:
        return f"the trace cannot be read as {parameters}{where}: this looks like {other}"
    if not found.fits and not found.groups:
        return f"the trace cannot be read as {parameters}{where}, nor with other parameters: is it a tandem trace?"
    other = parameters_of_other_meaning(data, parameters, wrapped=wrapped)
    return "" if other is None else f"the trace contradicts itself as {parameters}: this looks like {other}"


def likelier_parameters(data: bytes, parameters: TandemParameters, *, wrapped: bool = False) -> TandemParameters | None:
    """Return parameters with which *data* was far more probably made; None: these are right, or it is not known."""
    found = better_parameters(data, parameters, wrapped=wrapped)
    return found or parameters_of_other_meaning(data, parameters, wrapped=wrapped)
