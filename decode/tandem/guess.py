"""Whether a trace is what its parameters say. It does not tell them, but read with wrong ones it soon falls apart."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.dialect import DIALECTS, Dialect
from rvtrace_gdb.decode.tandem.group import Ending, Group
from rvtrace_gdb.decode.tandem.indexing import index_of
from rvtrace_gdb.decode.tandem.layout import Opcode
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.decode.tandem.trace import Trace

_SAMPLE = 1 << 14  # bytes that are looked at
_ODD_ONES = 20  # one group in so many may be odd
_GROUPS = 4  # that are no accident
_LONGEST_CUT = 256  # bytes of a group that is cut off by the end of the sample
_FAR_BETTER = 4  # times fewer contradictions


class Fit(NamedTuple):
    """How well a sample can be read.

    lost    bytes that are no group
    odd     groups that break a rule, or go on where their instruction cannot go, or seem to have no end
    groups  there are
    first   where the first loss is, None without one
    """

    lost: int
    odd: int
    groups: int
    first: int | None

    @property
    def fits(self) -> bool:
        """Nothing speaks against it."""
        return not self.lost and self.odd * _ODD_ONES <= self.groups


def fit(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> Fit:
    """How well the beginning of *data* can be read with these parameters. *wrapped*: it may be inside a group."""
    sample = bytes(data[:_SAMPLE])
    trace = Trace.of(sample, parameters, wrapped=wrapped)
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
    """Whether a field that was read too long may have taken the end group for a part of itself."""
    return group.ending is Ending.IMPLIED and data[group.offset + group.size - 1] == Opcode.END_GROUP


def candidates(parameters: Parameters) -> list[Parameters]:
    """Other parameters a trace may have: the other XLEN and FLEN, Sv32, two addresses for the pc."""
    base = replace(parameters, mlen=0, eaddr=0)
    found = [
        replace(base, xlen=xlen, flen=flen, mlen=mlen, dialect=dialect)
        for dialect in _dialects(parameters.dialect)
        for xlen in (parameters.xlen, 96 - parameters.xlen)
        for flen in (64, 32)
        for mlen in ((0, 34) if xlen == 32 else (0,))
    ]
    return [other for other in dict.fromkeys(found) if other.widths != parameters.widths]


def _dialects(dialect: Dialect) -> list[Dialect]:
    """The dialects whose bytes have another layout."""
    others = (DIALECTS[name] for name in ("flute", "specification", "two-pc"))
    return list(dict.fromkeys([dialect, *others]))


def better(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> Parameters | None:
    """Parameters the beginning of *data* can be read with, where it cannot be with these; None: there are none.

    The nearest ones, of several: as few as possible are others.
    """
    if fit(data, parameters, wrapped=wrapped).fits:
        return None
    fits = ((other, fit(data, other, wrapped=wrapped)) for other in candidates(parameters))
    return next((other for other, found in fits if found.fits and found.groups), None)


def contradictions(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> int:
    """At how many places the beginning of *data* goes on where it cannot, or nobody can say where an instruction is."""
    trace = Trace.of(bytes(data[:_SAMPLE]), parameters, wrapped=wrapped)
    index = index_of(trace)
    nowhere = sum(1 for group in range(1, len(trace)) if index.retired[group] and index.origin(group) == NOWHERE)
    return nowhere + sum(1 for found in index.breaks if not found.loss)


def of_another_meaning(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> Parameters | None:
    """Parameters whose bytes have the same layout and another meaning, with which far less contradicts itself."""
    said = contradictions(data, parameters, wrapped=wrapped)
    if not said:
        return None
    others = [replace(parameters, dialect=dialect) for dialect in _same_bytes(parameters)]
    counts = [(contradictions(data, other, wrapped=wrapped), number) for number, other in enumerate(others)]
    best, number = min(counts, default=(said, 0))
    return others[number] if best * _FAR_BETTER <= said else None


def _same_bytes(parameters: Parameters) -> Iterator[Dialect]:
    """Dialects whose groups look the same, and whose addresses mean something else."""
    said = parameters.dialect
    for name in ("flute" if parameters.xlen == 64 else "piccolo", "toooba", "piccolo-2018"):
        other = DIALECTS[name]
        meaning = other.xret_pc_is_own, other.pc_register
        if meaning != (said.xret_pc_is_own, said.pc_register) and said.pcs == other.pcs:
            yield other


def is_one(data: bytes) -> bool:
    """Whether *data* begins as tandem traces do, and can be read as one: no other trace is that by chance."""
    if data[:1] != bytes([Opcode.BEGIN_GROUP]):
        return False
    found = (fit(data, parameters) for parameters in (Parameters(64), Parameters(32)))
    return any(one.fits and one.groups >= _GROUPS for one in found) or better(data, Parameters(64)) is not None


def advice(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> str:
    """What to tell the user whose trace cannot be read with these parameters: "this looks like RV64"; "" if it can."""
    if not data:
        return ""
    found, other = fit(data, parameters, wrapped=wrapped), better(data, parameters, wrapped=wrapped)
    where = "" if found.first is None else f" from byte 0x{found.first:x} on"
    if other is not None:
        return f"the trace cannot be read as {parameters}{where}: this looks like {other}"
    if not found.fits and not found.groups:
        return f"the trace cannot be read as {parameters}{where}, nor with other parameters: is it a tandem trace?"
    other = of_another_meaning(data, parameters, wrapped=wrapped)
    return "" if other is None else f"the trace contradicts itself as {parameters}: this looks like {other}"


def looks_like(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> Parameters | None:
    """Parameters that *data* was far rather made with; None: these are right, or nobody knows."""
    found = better(data, parameters, wrapped=wrapped)
    return found or of_another_meaning(data, parameters, wrapped=wrapped)
