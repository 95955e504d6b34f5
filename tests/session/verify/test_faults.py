"""Seeded faults: whatever is changed in whichever group of real traces, the verifier names exactly that group.

The other side is Spike's log of the same program, so that nothing but the trace can have the fault.
"""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.tandem.protocol import FPR, FPR_END, GPR, AdditionalState, Group, StateId
from rvtrace_gdb.session.verify.model import DifferenceKind, Divergence
from tests.session.verify.faults import (
    DATA,
    Change,
    changed,
    entry_of,
    first,
    flip,
    flip_state,
    groups_of,
    other_instruction,
    without,
)

CSRS = frozenset({0x300, 0x304, 0x305, 0x341, 0x342, 0x343, 0x141, 0x142, 0x105, 0x180, 0x320, 0x340, 0x140})
CAUSE, MEPC = frozenset({0x342}), frozenset({0x341})
ADDRESS = (StateId.EFFECTIVE_ADDRESS, StateId.PHYSICAL_ADDRESS)
INTEGER, FLOATING = range(GPR + 1, FPR), range(FPR, FPR_END)
MODE, PC = (StateId.PRIVILEGE_MODE,), (StateId.PC,)
INITIALIZED = 40
"""Groups after the program's first, in which the tests give every register its first value."""

FAULTS: list[tuple[str, str, Change, DifferenceKind]] = [
    ("flute_rv64ui-p-add", "register", flip(INTEGER, 63), DifferenceKind.REGISTER),
    ("piccolo_rv32um-p-div", "register", flip(INTEGER, 0), DifferenceKind.REGISTER),
    ("flute_rv64uc-p-rvc", "register", flip(INTEGER, 17), DifferenceKind.REGISTER),
    ("flute_rv64ui-p-lb", "register", flip(INTEGER, 7), DifferenceKind.REGISTER),
    ("flute_rv64ud-p-ldst", "f register", flip(FLOATING, 51), DifferenceKind.REGISTER),
    ("flute_rv64uf-p-fadd", "f register", flip(FLOATING, 0), DifferenceKind.REGISTER),
    ("flute_rv64ui-p-sd", "store data", flip_state(DATA, 1), DifferenceKind.STORE),
    ("piccolo_rv32ui-p-sb", "store data", flip_state(DATA, 0x80), DifferenceKind.STORE),
    ("flute_rv64ua-p-amoadd_w", "store data", flip_state(DATA, 1 << 31), DifferenceKind.STORE),
    ("flute_rv64ui-p-sd", "address", flip_state(ADDRESS, 8), DifferenceKind.ADDRESS),
    ("piccolo_rv32ui-p-lw", "address", flip_state(ADDRESS, 0x1000), DifferenceKind.ADDRESS),
    ("flute_rv64mi-p-csr", "CSR", flip(CSRS, 3), DifferenceKind.CSR),
    ("flute_rv64si-p-csr", "CSR", flip(CSRS, 12), DifferenceKind.CSR),
    ("piccolo_rv32mi-p-csr", "CSR", flip(CSRS, 7), DifferenceKind.CSR),
    ("flute_rv64mi-p-ma_addr", "mode", flip_state(MODE, 2), DifferenceKind.PRIVILEGE),
    ("flute_rv64mi-p-scall", "mode", flip_state(MODE, 1), DifferenceKind.PRIVILEGE),
    ("piccolo_rv32mi-p-scall", "mode", flip_state(MODE, 3), DifferenceKind.PRIVILEGE),
    ("flute_rv64mi-p-ma_addr", "cause", flip(CAUSE, 1), DifferenceKind.TRAP),
    ("flute_rv64mi-p-illegal", "interrupt", flip(CAUSE, 63), DifferenceKind.TRAP),
    ("piccolo_rv32mi-p-sbreak", "cause", flip(CAUSE, 0), DifferenceKind.TRAP),
    ("flute_rv64ui-p-add", "next pc", flip_state(PC, 4), DifferenceKind.PC),
    ("piccolo_rv32ui-p-sb", "next pc", flip_state(PC, 0x40), DifferenceKind.PC),
    ("flute_rv64mi-p-illegal", "next pc", flip_state(PC, 8), DifferenceKind.PC),
    ("flute_rv64uc-p-rvc", "instruction", other_instruction, DifferenceKind.INSTRUCTION),
]


def sampled(name: str, fault: Change, count: int = 3) -> list[tuple[int, Group]]:
    """Groups of a trace that can have a fault, far from each other, each with it."""
    groups = groups_of(name)
    start = entry_of(name) + INITIALIZED
    able = [(at, found) for at in range(start, len(groups) - 4) if (found := changed(groups[at], fault)) is not None]
    assert able, name
    step = max(len(able) // count, 1)
    return able[::step][:count]


def put(groups: tuple[Group, ...], at: int, *found: Group) -> tuple[Group, ...]:
    return (*groups[:at], *found, *groups[at + 1 :])


LISTED = ("medeleg:1", "mip:0x80")
"""Differences of these cores from Spike, which docs/tandem.md lists."""


def kinds(found: Divergence) -> Sequence[DifferenceKind]:
    return [difference.kind for difference in found.differences]


@pytest.mark.parametrize(("name", "what", "fault", "kind"), FAULTS, ids=[f"{f[1]}-{f[0]}" for f in FAULTS])
def test_a_flipped_value_is_found_in_its_group(name: str, what: str, fault: Change, kind: DifferenceKind) -> None:
    groups = groups_of(name)
    for at, faulty in sampled(name, fault):
        found = first(name, put(groups, at, faulty), at, LISTED)
        assert found is not None and found.group == at, (what, at)
        if what == "mode" and faulty.state(StateId.PRIVILEGE_MODE) == 2:  # no mode: nothing the group tells is used
            assert "privilege mode 2: this is impossible" in found.differences[0].note
            continue
        assert kind in kinds(found) or (what == "next pc" and DifferenceKind.ORDER in kinds(found)), (
            at,
            found.differences,
        )
        assert found.offset == groups[at].offset


@pytest.mark.parametrize(
    ("name", "what"),
    [("flute_rv64ui-p-add", "x"), ("flute_rv64ui-p-sd", "store"), ("flute_rv64ui-p-lb", "x"),
     ("flute_rv64ud-p-fadd", "f"), ("piccolo_rv32ui-p-sb", "store")],
)  # fmt: skip
def test_what_only_the_model_did_is_found(name: str, what: str) -> None:
    """A change the trace does not tell is a divergence as much as one that it tells otherwise."""
    groups = groups_of(name)
    numbers = {"x": INTEGER, "f": FLOATING}.get(what, range(0))
    states = (*DATA, *ADDRESS) if what == "store" else ()
    seen = 0
    for at in range(entry_of(name) + INITIALIZED, len(groups) - 4, 7):
        silent = without(groups[at], states, numbers)
        if silent is None or groups[at].instr is None or (states and not _stores(groups[at])):
            continue
        found = first(name, put(groups, at, silent), at)
        if found is None:  # a register got the value it had
            assert _is_the_same(name, at)
            continue
        assert found.group == at
        assert [one.trace for one in found.differences if one.kind in (DifferenceKind.REGISTER, DifferenceKind.STORE)][
            :1
        ] == [None]
        seen += 1
        if seen == 4:
            break
    assert seen


def _stores(group: Group) -> bool:
    return any(isinstance(element, AdditionalState) and element.identifier in DATA for element in group.elements)


def _is_the_same(name: str, at: int) -> bool:
    from tests.decode.tandem.corpus import decoded

    before, after = decoded(name).after(at - 1), decoded(name).after(at)
    return before.xs() == after.xs() and before.fs() == after.fs()


def test_a_dropped_interrupt_is_found() -> None:
    name = "flute_rv64mi-p-illegal"
    groups = groups_of(name)
    (at,) = [
        number for number, group in enumerate(groups) if group.instr is None and group.registers.get(0x342, 0) >> 63
    ]
    found = first(name, put(groups, at), at)
    assert found is not None and found.group == at
