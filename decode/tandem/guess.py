"""Whether a trace is what its parameters say. It does not tell them, but read with wrong ones it soon falls apart."""

from dataclasses import replace
from typing import NamedTuple

from decode.tandem.dialect import DIALECTS, Dialect
from decode.tandem.group import Ending, Group
from decode.tandem.indexing import index_of
from decode.tandem.layout import Opcode
from decode.tandem.parameters import Parameters
from decode.tandem.trace import Trace

_SAMPLE = 1 << 14  # bytes that are looked at
_ODD_ONES = 20  # one group in so many may be odd
_GROUPS = 4  # that are no accident
_LONGEST_CUT = 256  # bytes of a group that is cut off by the end of the sample


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


def is_one(data: bytes) -> bool:
    """Whether *data* begins as tandem traces do, and can be read as one: no other trace is that by chance."""
    if data[:1] != bytes([Opcode.BEGIN_GROUP]):
        return False
    found = (fit(data, parameters) for parameters in (Parameters(64), Parameters(32)))
    return any(one.fits and one.groups >= _GROUPS for one in found) or better(data, Parameters(64)) is not None


def advice(data: bytes, parameters: Parameters, *, wrapped: bool = False) -> str:
    """What to tell the user whose trace cannot be read with these parameters: "this looks like RV64"; "" if it can."""
    found = fit(data, parameters, wrapped=wrapped)
    if found.fits or not data:
        return ""
    other = better(data, parameters, wrapped=wrapped)
    where = "" if found.first is None else f" from byte 0x{found.first:x} on"
    if other is not None:
        return f"the trace cannot be read as {parameters}{where}: this looks like {other}"
    if not found.groups:
        return f"the trace cannot be read as {parameters}{where}, nor with other parameters: is it a tandem trace?"
    return ""
