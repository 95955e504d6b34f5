"""Bytes that are no trace: hardly any of them are messages, and hardly an instruction ran in them.

Noise reads as a message here and there, so a share of the bytes is asked for; a larger one of few bytes, and of
E-Trace, where most bytes are some packet. A trace of few messages, without a place where decoding can start, or of
unknown code, is a trace.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.tandem import guess as tandem_guess
from rvtrace_gdb.session import formats, harts
from rvtrace_gdb.session.captured import Capture, Captured, CapturedRecords, CapturedTandem
from rvtrace_gdb.session.etrace import ETrace
from rvtrace_gdb.session.formats import AnyHow
from rvtrace_gdb.session.harts import Harts

_PIECE = 1 << 12  # bytes
_LOOKED_AT = 1 << 16  # bytes that are no filling
_FEW = 1 << 6  # bytes
_OF_FEW = 75  # percent of them are messages
_DENSE = 16  # bytes for each instruction, or fewer, are a program's


class _Format(NamedTuple):
    """*least*: what part of a trace are messages, in percent."""

    name: str
    least: int


_FORMATS = {NTrace: _Format("N-Trace", 25), ETrace: _Format("E-Trace", 75)}
_TANDEM = _Format("a tandem trace", 25)


class _Read(NamedTuple):
    """Bytes of messages, and others that are no filling."""

    sensible: int
    others: int


def empty(found: Harts) -> str | None:
    """That there is nothing but filling, in words; None: there is more. *found*: what was decoded."""
    total, _, idle, _ = found.accounting
    return f"is empty: {_count(total, 'byte')} of filling, and no message" if total == idle > 0 else None


def why(capture: Capture, found: Harts) -> str | None:
    """Why imported bytes are no trace, in words; None: they may be one. *found*: what was decoded of them."""
    total, _, idle, _ = found.accounting
    instructions = sum(history.instructions for history in found.histories.values())
    if is_dense(instructions, total - idle):
        return None
    problems = [_problem(captured, capture, instructions) for captured in capture.captured]
    return problems[0] if problems and all(problems) else None


def is_dense(instructions: int, size: int) -> bool:
    """Whether so many bytes have so many instructions that they are a trace, whatever else is in them."""
    return instructions * _DENSE >= size


def _problem(captured: Captured, capture: Capture, instructions: int) -> str | None:
    """The same of one buffer."""
    if isinstance(captured, CapturedRecords) or _is_of_other_parameters(captured):
        return None
    how = harts.how_of(captured, capture.encoders)
    kind = _FORMATS.get(type(how), _TANDEM)
    sensible, others = _read(captured.data, how, capture.xlen, wrapped=captured.wrapped)
    size = sensible + others
    if sensible and sensible * 100 >= size * (_OF_FEW if size < _FEW else kind.least):
        return None
    if isinstance(captured, CapturedTandem):
        advice = tandem_guess.advice(captured.data, captured.in_force.parameters, wrapped=captured.wrapped)
        if advice:
            return advice
    first = "the first " if size > _LOOKED_AT else ""
    of = f"of {first}{_count(size or len(captured.data), 'byte')} {sensible} are messages"
    ran = _count(instructions, "instruction")
    return f"cannot be read as {kind.name}: {of}, {ran} ran: is it a trace, and was it made with these options?"


def _is_of_other_parameters(captured: Captured) -> bool:
    """Whether it is a tandem trace that can be read with others than was said: a warning tells."""
    if not isinstance(captured, CapturedTandem):
        return False
    told = captured.in_force.parameters
    return tandem_guess.looks_like(captured.data, told, wrapped=captured.wrapped) is not None


def _read(data: bytes, how: AnyHow, xlen: int, *, wrapped: bool) -> _Read:
    """What the beginning of a trace is made of. A message that is cut off by its end does not count."""
    itemizer, makes_sense = formats.itemizer(how, xlen, wrapped=wrapped), _judge(how)
    sensible = others = 0
    for item in _items(data, itemizer):
        if item.is_idle:
            continue
        if makes_sense(item):
            sensible += item.end - item.offset
        elif item.end < len(data):
            others += item.end - item.offset
        if sensible + others > _LOOKED_AT:
            break
    return _Read(sensible, others)


def _items(data: bytes, itemizer: formats.Itemizer) -> Iterator[Any]:
    for at in range(0, len(data), _PIECE):
        yield from itemizer.feed(data[at : at + _PIECE])
    yield from itemizer.finish()


def _judge(how: AnyHow) -> Callable[[Any], bool]:
    """What tells whether an item is a message that such an encoder sends."""
    wording = formats.wording(how)
    if isinstance(how, ETrace):
        return lambda item: (item.packet or item.data) is not None and not wording.is_odd(item)
    return lambda item: not wording.is_odd(item)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
