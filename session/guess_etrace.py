"""What else could have been said of an E-Trace stream: one setting changed at a time, for `session.guess`.

Of the fields around packets several must be right at once before anything makes sense: these are tried together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, product

from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import NAMES, Encapsulation
from rvtrace_gdb.decode.etrace.items import Item, Itemizer
from rvtrace_gdb.decode.etrace.layout import Format, Sync
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.etrace.wording import Wording
from rvtrace_gdb.session.etrace import ETrace, made, values_of
from rvtrace_gdb.session.etrace_settings import BadSetting, Value

_LIKELY: Mapping[str, tuple[Value, ...]] = {
    "src_bits": tuple(range(9)),
    "timestamp_bytes": (0, 1, 2, 4, 6, 8),
    "type_bits": (0, 1, 2),
    "instruction_type": (0, 2),
    "iaddress_width": (32, 64, 39, 48),
    "iaddress_lsb": (1, 2),
    "privilege_width": (1, 2, 3),
    "ecause_width": (4, 5, 6),
    "context_width": (0, 8, 16, 32),
    "time_width": (0, 16, 32, 40, 48, 64),
    "support": ("reference", "standard", "pulp", "et20", "pt10"),
    "ecall_retires": (False, True),
    "full_address": (False, True),
    "implicit_exception": (False, True),
    "sijump": (False, True),
    "iret_ext": (False, True),
    "f0s_width": (0, 1),
    "bpred_size": (6, 7, 8, 9, 10, 5, 4),
    "cache_size": (5, 6, 4, 7, 8),
}
"""Values that encoders have, where the default is tried first."""

_TOGETHER: tuple[Mapping[str, Value], ...] = (
    {"implicit_return": True, "return_stack_size": 4},
    {"implicit_return": True, "return_stack_size": 5, "iret_ext": True},
    {"implicit_return": False},
    {"branch_prediction": True, "bpred_size": 7},
    {"branch_prediction": False},
    {"jump_target_cache": True, "cache_size": 5},
    {"jump_target_cache": False},
)
"""Modes, with what an encoder must have for them."""

_SRC_BITS = range(13)  # of trTeSrcBits
_TIMESTAMP_BYTES = (0, 1, 2, 4, 5, 6, 8)
_TYPES: tuple[Mapping[str, Value], ...] = (
    {"type_bits": 0}, {"type_bits": 1}, {"type_bits": 2}, {"type_bits": 2, "instruction_type": 0},
)  # fmt: skip
_LEAST, _FIRST_LOOK, _LOOK = 1 << 6, 1 << 9, 1 << 11  # bytes
_CHANGES = 3  # at most
_SENSIBLE = 16  # of so many bytes one may be nonsense in any trace
_MUCH = 4  # times less nonsense is much better

_TRANSPORTS = tuple(map(Encapsulation, NAMES))


def changed(how: ETrace) -> Iterator[ETrace]:
    """*how* with one thing changed: first what was said left out, then what was not said."""
    return iter(sorted(_candidates(how), key=lambda candidate: said(candidate) >= said(how)))


def _candidates(how: ETrace) -> Iterator[ETrace]:
    for transport in _TRANSPORTS:
        if transport.name != how.encapsulation.name:
            yield replace(how, encapsulation=transport)
    single: list[Mapping[str, Value]]
    single = [{key: value} for key, values in _LIKELY.items() for value in values]
    dialects: list[Mapping[str, Value]] = [{"dialect": dialect.value, **DEFAULTS[dialect]} for dialect in Dialect]
    plain = how.encapsulation == Encapsulation("smi")  # its header tells the types
    for change in (*single, *dialects, *_TOGETHER):
        if plain and "type_bits" in change:
            continue
        try:
            other = made(change, how)
        except BadSetting:
            continue
        if other != how:
            yield other


def said(how: ETrace) -> int:
    """How many settings are not as they are when nothing is said."""
    return len(values_of(how))


def better_layout(data: bytes, how: ETrace, xlen: int, *, wrapped: bool = False) -> ETrace | None:
    """With which the beginning of *data* makes far more sense than with *how*: without a program."""

    def worth(candidate: ETrace, size: int) -> tuple[int, int]:
        return nonsense(data[:size], candidate, xlen, wrapped), len(values_of(candidate, how))

    if makes_sense(data, how, xlen, wrapped=wrapped):
        return None
    first = nonsense(data[:_LOOK], how, xlen, wrapped)
    best = min(chain([how], _framings(how)), key=lambda candidate: worth(candidate, _FIRST_LOOK))
    for _ in range(_CHANGES):
        better = min(chain([best], _candidates(best)), key=lambda candidate: worth(candidate, _LOOK))
        if better == best or worth(better, _LOOK)[0] >= worth(best, _LOOK)[0]:
            break
        best = better
    return best if worth(best, _LOOK)[0] * _MUCH <= first else None


def sensible_layout(data: bytes, xlen: int, *, wrapped: bool = False) -> ETrace | None:
    """With which the beginning of *data* makes sense, of which nothing is known; None where nothing does."""
    plain = made({"iaddress_width": xlen})
    found = better_layout(data, plain, xlen, wrapped=wrapped) or plain
    return found if len(data) >= _LEAST and makes_sense(data, found, xlen, wrapped=wrapped) else None


def makes_sense(data: bytes, how: ETrace, xlen: int, *, wrapped: bool = False) -> bool:
    """Whether hardly any of the beginning of *data* is nonsense; of few bytes nothing can be said."""
    size = min(len(data), _LOOK)
    return size < _LEAST or nonsense(data[:size], how, xlen, wrapped) * _SENSIBLE <= size


def nonsense(data: bytes, how: ETrace, xlen: int, wrapped: bool) -> int:
    """How many bytes are neither filling nor packets that an encoder sends; all, if no packet synchronizes.

    Where nothing but data is traced, none does.
    """
    itemizer, wording = Itemizer(how.options, how.encapsulation, xlen, wrapped=wrapped), Wording(how.options)
    bad, synchronizes, only_data = 0, False, True
    for item in chain(itemizer.feed(data), itemizer.finish()):
        if item.packet is not None:
            of_sync = item.packet.format == Format.SYNC
            synchronizes |= of_sync and item.packet.subformat in (Sync.START, Sync.TRAP)
            only_data &= of_sync and item.packet.subformat == Sync.SUPPORT
        known = item.packet is not None or item.data is not None
        if not item.is_idle and (not known or wording.is_odd(item) or _is_long(item, how)):
            bad += item.length
    return bad if synchronizes or only_data else len(data)


def _framings(how: ETrace) -> Iterator[ETrace]:
    """*how* with other fields around packets, or in another transport."""
    yield from (replace(how, encapsulation=transport) for transport in _TRANSPORTS)
    if how.encapsulation.name not in ("encap", "smi"):
        return
    for bits, size, types in product(_SRC_BITS, _TIMESTAMP_BYTES, _TYPES):
        transport = {"encapsulation": "encap", "src_bits": bits, "timestamp_bytes": size, **types}
        yield made(transport, replace(how, encapsulation=Encapsulation()))


def _is_long(item: Item, how: ETrace) -> bool:
    """Whether sign based compression would have left out the last byte."""
    if how.options.dialect is not Dialect.STANDARD or len(item.raw) < 2:
        return False
    last, before = item.raw[-1], item.raw[-2]
    return last in (0, 0xFF) and last & 0x80 == before & 0x80
