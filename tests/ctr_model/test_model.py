"""The model of Control Transfer Records where QEMU cannot check it: cycles, V=1 as 1.0 has it, the draft.

Expected values are written out from the documents' tables; the rest of the model is checked against QEMU
(tests/endtoend/ctr/test_qemu_model.py).
"""

from pathlib import Path

import pytest

from tests.ctr_model.model import Entry, Event, Instruction, Model, Trap, Write
from tests.ctr_model.programs import build, symbols

U, S, M, VU, VS = 0, 1, 3, 4, 5
CONTROL, VS_CONTROL, DRAFT, DRAFT_VS = 0x34E, 0x24E, 0x381, 0x281
STE, MTE, EXCINH = 1 << 8, 1 << 9, 1 << 33


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It ends with `done: j done`."""
    return build(tmp_path_factory.mktemp("ctr"), "depths")


def jumps(elf: Path, *cycles: int, mode: int = M) -> list[Event]:
    return [Instruction(symbols(elf)["done"], mode, cycle) for cycle in cycles]


def recorded(model: Model) -> list[Entry]:
    return [entry for entry in model.entries() if entry[0] & 1]


# 1.0, "Cycle Counter Size Options": CCE bits, and the most that can be said
MOST = [(0, 4095), (1, 8191), (2, 32764), (3, 524224), (4, 134201344)]


@pytest.mark.parametrize(("bits", "most"), MOST)
def test_counts_saturate_where_the_table_says(elf: Path, bits: int, most: int) -> None:
    for elapsed, said in ((most, most), (most + 1, most), (1 << 40, most), (4095, 4095)):
        model = Model(elf, "1.0", exponent_bits=bits)
        model.run([Write(CONTROL, 4), *jumps(elf, 10, 10 + elapsed, 10 + elapsed)])
        cc = recorded(model)[0][2] >> 16
        cce, ccm = cc >> 12, cc & 0xFFF
        assert (ccm if cce == 0 else (4096 + ccm) << (cce - 1)) == said


def test_cycles_count_while_it_is_active_and_begin_with_a_write(elf: Path) -> None:
    """ "Cycle Counting": the next record has CCV=0 after a write; cycles in a mode that is not enabled do not count."""
    model = Model(elf, "1.0", exponent_bits=4)
    away = [*jumps(elf, 500, 600, mode=U), Trap(0x80000000, U, 8, False, 700)]
    model.run([Write(CONTROL, 4), *jumps(elf, 10, 30), *away, *jumps(elf, 705, 705)])
    assert [(data >> 15 & 1, data >> 16) for _, _, data in recorded(model)] == [(1, 5), (1, 0), (1, 20), (0, 0)]
    model.run([Write(CONTROL, 4), *jumps(elf, 710, 720, 720)])
    assert [(data >> 15 & 1, data >> 16) for _, _, data in recorded(model)][:2] == [(1, 10), (0, 0)]


# 1.0, "External Trap Enable Requirements": from, to, needed (mctrctl, vsctrctl)
NEEDED = [
    (U, S, STE, 0), (U, M, MTE | STE, 0), (S, M, MTE, 0), (VU, VS, 0, STE), (VU, S, STE, STE), (VU, M, MTE | STE, STE),
    (VS, S, STE, 0), (VS, M, MTE | STE, 0),
]  # fmt: skip
ENABLES = {U: (1, 0), S: (2, 0), VU: (0, 1), VS: (0, 2)}


@pytest.mark.parametrize(("source", "target", "control", "virtual"), NEEDED)
def test_what_external_traps_need(elf: Path, source: int, target: int, control: int, virtual: int) -> None:
    own, guest = ENABLES[source]
    for ours in (0, STE, MTE, STE | MTE):
        for theirs in (0, STE):
            model = Model(elf, "1.0")
            model.run([Write(CONTROL, own | ours), Write(VS_CONTROL, guest | theirs)])
            model.run([Instruction(0x80000000, source), Trap(0x80000004, source, 2, False)])
            model.reach(0x80000100, target)
            enough = ours & control == control and theirs & virtual == virtual
            assert recorded(model) == ([(0x80000005, 0, 1)] if enough else [])


def test_filters_of_the_guest_count_when_v_changes(elf: Path) -> None:
    """1.0, "Virtualization Mode Transitions"."""
    for ours, theirs, there in ((EXCINH, 0, True), (0, EXCINH, False)):
        model = Model(elf, "1.0")
        model.run([Write(CONTROL, 7 | ours), Write(VS_CONTROL, 3 | theirs), Trap(0x80000004, VU, 2, False)])
        model.reach(0x80000100, S)
        assert bool(recorded(model)) == there


def test_the_draft_wraps_and_clears(elf: Path) -> None:
    """Draft 0.1.4, 2.1 and 2.4: WRAP and CLR; RAS emulation takes WRAP back."""
    model = Model(elf, "0.1.4")
    model.run([Write(DRAFT, 1), *jumps(elf, *[0] * 15)])
    model.reach(symbols(elf)["done"], M)
    assert model.status == 15
    model.run(jumps(elf, 0, 0))
    assert model.status == 0x4000 and model.depth == 16 and len(recorded(model)) == 16
    model.run([Write(DRAFT, 1 | 1 << 7 | 0b0011 << 16)])
    model.reach(symbols(elf)["done"], M)
    assert (model.status, model.depth, recorded(model), model.control) == (0, 64, [], 1 | 0b0011 << 16)


@pytest.mark.parametrize("eten", [0, 1 << 38])
@pytest.mark.parametrize("mte", [0, 1 << 8])
def test_the_draft_needs_eten_and_the_target_alone(elf: Path, eten: int, mte: int) -> None:
    """Draft 0.1.4, 5.2.1: no mode between counts, nor does EXCINH."""
    model = Model(elf, "0.1.4")
    model.run([Write(DRAFT, 1 << 2 | eten | mte | EXCINH), Trap(0x80000004, U, 2, False)])
    model.reach(0x80000100, M)
    assert recorded(model) == ([(0x80000005, 0, 1)] if eten and mte else [])
