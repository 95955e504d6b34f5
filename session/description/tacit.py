"""The tables [[tacit]] of a target description: encoders of TACIT with their DMA sinks.

[[tacit]]
name = "tacit0"
hart = 0                     # the hart that it traces; default 0
base = 0x3000000             # default: where Chipyard has the encoder of this hart
sink = 0x3010000             # default: where Chipyard has the sink of this hart
start = 0x87000000           # of the buffer, which nothing else may use
size = 0x1000000             # bytes; the sink itself has no limit
target = 1                   # the number of the sink in the design; default 1, as in Chipyard
entries = 1024               # of the branch predictor; default 1024, as in Chipyard
limited = false              # true: the sink has TR_SK_DMA_MAX_SIZE, as in later designs; default false
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from rvtrace_gdb.controlregs.tacit.registers import DMA_TARGET, ENCODER_BASE, SINK_BASE, STRIDE
from rvtrace_gdb.session.description.model import AnyComponent, TacitDescription, TandemDescription, TracerDescription
from rvtrace_gdb.session.description.tables import Tables, TomlTable

_TABLE = "[[tacit]]"
_KEYS = ("name", "hart", "base", "sink", "start", "size", "target", "entries", "limited")
_HARTS, _TARGETS = range(0x1000), range(0x100)
_LEAST_ENTRIES, _MOST_ENTRIES = 1, 1 << 20
_WORD = 8  # bytes that the sink writes at once
_NamedThing = AnyComponent | TandemDescription | TracerDescription


def read_tacit(tables: Tables, document: TomlTable, others: Sequence[_NamedThing]) -> tuple[TacitDescription, ...]:
    """Return the encoders, in the order of the file. *others*: what else has a name. Raises DescriptionError."""
    listed = enumerate(tables.tables(document, "tacit"), 1)
    found = tuple(_read_encoder_table(tables, table, number) for number, table in listed)
    for key, what in (("component", "trace components"), ("tracer", "a TRACER")):
        if found and key in document:
            raise tables.error(f"a target has either {what} or TACIT: remove either [[{key}]]", _TABLE)
    names = Counter([other.name for other in others] + [encoder.name for encoder in found])
    harts = Counter(encoder.hart for encoder in found)
    for encoder in found:
        if names[encoder.name] > 1:
            raise tables.error(f'"{encoder.name}" is used {names[encoder.name]} times', _TABLE, "name")
        if harts[encoder.hart] > 1:
            raise tables.error(f"{harts[encoder.hart]} of them trace hart {encoder.hart}", _TABLE, "hart")
    _check_buffers(tables, found)
    return found


def _check_buffers(tables: Tables, encoders: Sequence[TacitDescription]) -> None:
    """Refuse buffers that overlap."""
    ordered = sorted(encoders, key=lambda encoder: encoder.start)
    for one, other in pairwise(ordered):
        if one.start + one.size > other.start:
            raise tables.error(f"the buffers of {one.name} and {other.name} overlap", _TABLE, "start")


def _read_encoder_table(tables: Tables, table: TomlTable, number: int) -> TacitDescription:
    name = tables.string(table, f"{_TABLE} {number}", "name")
    where = f'{_TABLE} "{name}"'
    tables.check_keys(table, where, _KEYS)
    hart = tables.within(table, where, "hart", _HARTS) or 0
    place = {key: tables.words(table, where, key) for key in ("base", "sink", "start", "size")}
    for key in ("start", "size"):
        value = place[key]
        if value is None:
            raise tables.error("missing", where, key)
        if value % _WORD:
            raise tables.error(f"{value:#x} is not a multiple of {_WORD}", where, key)
    target = tables.within(table, where, "target", _TARGETS)
    entries = tables.within(table, where, "entries", range(_LEAST_ENTRIES, _MOST_ENTRIES + 1))
    default = ENCODER_BASE + hart * STRIDE, SINK_BASE + hart * STRIDE
    return TacitDescription(
        name=name,
        base=default[0] if place["base"] is None else place["base"],
        sink=default[1] if place["sink"] is None else place["sink"],
        start=place["start"] or 0,
        size=place["size"] or 0,
        hart=hart,
        target=DMA_TARGET if target is None else target,
        entries=TacitDescription.entries if entries is None else entries,
        limited=bool(tables.switch(table, where, "limited")),
    )
