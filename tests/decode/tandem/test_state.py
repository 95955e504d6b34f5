"""The shadow state: what the trace determines, what it does not, and who wrote it last."""

import random

import pytest

from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.decode.program.csrs import MTIME
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import (
    AdditionalState,
    Element,
    FullRegister,
    IncrementalRegister,
    IncrementalRegisterOr,
    Instr,
    StateId,
)
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.decode.tandem.state import LOST, NOT_REPORTED, NOT_WRITTEN
from tests.decode.tandem.groups import (
    C_NOP,
    INIT,
    MRET,
    NOP,
    RESET,
    RV32,
    RV64,
    SRET,
    Line,
    csr,
    f,
    group,
    loose,
    pc,
    priv,
    store,
    sw,
    tandem,
    x,
)
from tests.helpers.amounts import each_seed

MSTATUS, SSTATUS, FCSR, FFLAGS, FRM, MIE, SIE, MIDELEG = 0x300, 0x100, 3, 1, 2, 0x304, 0x104, 0x303
DIRTY = 3 << 13


def test_nothing_is_known_before_it_is_written() -> None:
    line = Line()
    line.add(RESET)
    written = line(x(5, 77))
    line()
    found = line.decoded()
    before, after = found.after(written - 1), found.after(written)
    assert before.xs() == [0] + [None] * 31 and before.fs() == [None] * 32 and before.csrs() == {}
    assert after.x(5) == 77 and after.xs().count(None) == 30
    assert found.after(-1).xs() == [0] + [None] * 31 and found.after(-1).pc is None
    assert before.why_not(0x1005) == NOT_WRITTEN and after.why_not(0x1005) == ""
    assert after.register_writer(0x1005) == (written, 77, True, 0)
    assert before.register_writer(0x1005) is None and before.memory(0x100, 2) == [None, None]


def test_x0_is_never_written() -> None:
    """Rocket sends the destination of a CSR instruction even if it is x0."""
    line = Line()
    line(x(0, 5))
    assert line.decoded().after(0).x(0) == 0


def test_a_reset_forgets_registers_and_keeps_memory() -> None:
    line = Line()
    line.add(RESET)
    line(x(5, 1), priv(3))
    line(store(0x100, 4, 0xAABBCCDD), instr=sw())
    line.add(RESET)
    found = line.decoded()
    assert [found.after(2).x(5), found.after(3).x(5)] == [1, None]
    assert found.after(3).memory(0x100, 4) == [0xDD, 0xCC, 0xBB, 0xAA]
    assert found.after(3).privilege == 3 and found.after(3).pc is None


def test_pc_and_privilege() -> None:
    line = Line(0x1000)
    line.add(RESET)
    line()
    line(priv(0), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    line()
    found = line.decoded()
    assert [found.after(group).pc for group in (0, 1, 2, 3)] == [0x1000, 0x1004, 0x4000, 0x4004]
    assert [found.after(group).privilege for group in (0, 1, 2, 3)] == [3, 3, 0, 0]
    assert [found.history.context_at(position).prv for position in range(3)] == [3, 3, 0]


def test_incremental_registers() -> None:
    line = Line()
    line(x(5, 0x100), csr(FCSR, 0x20), f(1, 0xFF))
    line(IncrementalRegister(0x1005, -1), IncrementalRegisterOr(FCSR, 0x11), IncrementalRegister(0x1021, 1))
    line(IncrementalRegister(0x1005, 127), IncrementalRegister(0x1006, 1), IncrementalRegisterOr(0x1007, 1))
    line(IncrementalRegister(0x1005, -128), IncrementalRegister(0x1005, -128))
    found = line.decoded()
    assert [found.after(group).x(5) for group in range(4)] == [0x100, 0xFF, 0x17E, 0x7E]
    assert [found.after(group).csr(FCSR) for group in range(3)] == [0x20, 0x31, 0x31]
    assert found.after(1).f(1) == 0x100
    assert found.after(2).x(6) is None and found.after(2).why_not(0x1006) == NOT_REPORTED  # what it was is not known
    assert found.after(2).x(7) is None


def test_incremental_registers_wrap_at_their_width() -> None:
    for parameters, width in ((RV64, 64), (RV32, 32)):
        line = Line()
        line(x(5, 0))
        line(IncrementalRegister(0x1005, -1))
        assert line.decoded(parameters).after(1).x(5) == (1 << width) - 1


def test_fflags_and_frm_are_parts_of_fcsr() -> None:
    line = Line()
    line(csr(FFLAGS, 0x03), csr(MSTATUS, DIRTY))
    line(csr(FRM, 0x4))
    line(IncrementalRegisterOr(FFLAGS, 0x10))
    line(csr(FCSR, 0xE1))
    line(csr(FFLAGS, 0))
    found = line.decoded()
    assert [found.after(n).csr(FCSR) for n in range(5)] == [None, 0x83, 0x93, 0xE1, 0xE0]
    assert [found.after(n).csr(FFLAGS) for n in range(5)] == [0x03, 0x03, 0x13, 0x01, 0x00]
    assert [found.after(n).csr(FRM) for n in range(5)] == [None, 4, 4, 7, 7]
    assert found.after(2).register_writer(FCSR) == (2, 0x13, True, 0)
    assert set(found.after(2).csrs()) >= {FCSR, FFLAGS, FRM}


def test_sstatus_is_a_part_of_mstatus() -> None:
    """A delegated trap tells sstatus alone: bits of mstatus that it has not keep what was known of them."""
    line = Line()
    line(csr(MSTATUS, 0xA_0000_1888))
    line(csr(SSTATUS, 0x2_0000_0122))
    line(csr(SSTATUS, 0x8000_0002_0000_6000))
    found = line.decoded()
    assert found.after(0).csr(SSTATUS) == 0x2_0000_0000
    assert found.after(1).csr(MSTATUS) == 0xA_0000_19AA and found.after(1).csr(SSTATUS) == 0x2_0000_0122
    assert found.after(2).csr(MSTATUS) == 0x8000_000A_0000_7888
    alone = Line()
    alone(csr(SSTATUS, 0x122))
    assert alone.decoded().after(0).csr(MSTATUS) is None


def test_sie_is_the_delegated_part_of_mie() -> None:
    line = Line()
    line(csr(MIE, 0xAAA))
    line(csr(MIDELEG, 0x222))
    line(csr(SIE, 0x200))
    line(csr(MIDELEG, 0x002))
    line(csr(MIE, 0x00A))
    found = line.decoded()
    assert [found.after(n).csr(SIE) for n in range(5)] == [None, 0x222, 0x200, 0, 0x002]
    assert [found.after(n).csr(MIE) for n in range(5)] == [0xAAA, 0xAAA, 0xA88, 0xA88, 0x00A]
    unknown = Line()
    unknown(csr(MIE, 0xAAA))
    unknown(csr(SIE, 0x200))  # which bits of mie that changed, mideleg would tell
    assert unknown.decoded().after(1).csr(MIE) is None and unknown.decoded().after(1).csr(SIE) == 0x200


def test_what_sie_wrote_stays_when_its_bits_become_others() -> None:
    """Privileged Architecture, "Supervisor Interrupt Registers": a bit of sie is mie's where mideleg has it, else 0."""
    line, bits = Line(), 0
    line(csr(MIE, 0))
    for delegated, written in ((0x222, 0x220), (0, 0), (0x002, 0x002), (0x200, 0), (0, 0), (0x222, 0x202)):
        line(csr(MIDELEG, delegated))
        line(csr(SIE, written))
        bits = bits & ~delegated | written
        assert line.decoded().after(len(line.groups) - 1).csr(MIE) == bits
        assert line.decoded().after(len(line.groups) - 1).csr(SIE) == written
    assert line.decoded().before(2).csr(MIE) == 0
    for _ in range(100):
        for delegated in (0x020, 0x200):
            line(csr(MIDELEG, delegated))
            line(csr(SIE, delegated))
    assert line.decoded().after(len(line.groups) - 1).csr(MIE) in (None, 0x222)
    assert line.decoded().after(len(line.groups) - 1).csr(SIE) == 0x200


def test_counters_are_known_where_they_were_written_and_no_longer() -> None:
    line = Line()
    for counter in (0xB00, 0xB02, 0xC01, 0xB83, 0xB1F):
        at = line(csr(counter, 5))
        line()
        found = line.decoded()
        assert [found.after(at).csr(counter), found.after(at + 1).csr(counter)] == [5, None]
        assert found.after(at + 1).register_writer(counter) == (at, 5, True, 0)


def test_floating_point_dirties_mstatus() -> None:
    """Where the trace does not tell mstatus, its FS is known to be Dirty only if it was already."""
    line = Line()
    line(csr(MSTATUS, 1 << 13))
    line(f(3, 1))
    line(csr(MSTATUS, DIRTY))
    line(IncrementalRegisterOr(FCSR, 1))
    line(f(3, 1), csr(MSTATUS, 2 << 13))
    found = line.decoded()
    assert [found.after(n).csr(MSTATUS) for n in range(5)] == [1 << 13, None, DIRTY, DIRTY, 2 << 13]


def test_a_trap_changes_what_it_does_not_tell() -> None:
    """A partial trace: xepc, xcause, and no xstatus or xtval."""
    line = Line(0x1000)
    line(csr(MSTATUS, 8), csr(0x343, 5), csr(0x305, 0x40))
    line.add(pc(0x40), NOP, csr(0x341, 0x1004), csr(0x342, 2))
    line.pc = 0x40
    line()
    found = line.decoded()
    after = found.after(1)
    assert [after.csr(0x341), after.csr(0x342), after.csr(0x305)] == [0x1004, 2, 0x40]
    assert [after.csr(MSTATUS), after.csr(0x343)] == [None, None] and after.why_not(MSTATUS) == NOT_REPORTED
    assert after.privilege == 3
    assert len(found.history) == 2 and list(found.history.pcs()) == [0x1000, 0x40]


@pytest.mark.parametrize(
    ("instr", "status", "mode"), [(MRET, 1 << 11, 1), (MRET, 0, 0), (SRET, 1 << 8, 1), (SRET, 0, 0)]
)
def test_a_return_goes_to_the_mode_mstatus_says(instr: Instr, status: int, mode: int) -> None:
    line = Line()
    line(csr(MSTATUS, status), priv(3))
    line(instr=instr, to=0x4000)
    line(csr(MSTATUS, 0))
    line(instr=instr, to=0x5000)
    found = line.decoded()
    assert found.after(1).privilege == mode and found.after(1).csr(MSTATUS) is None
    unknown = Line()
    unknown(instr=instr, to=0x4000)
    assert unknown.decoded().after(0).privilege is None


def test_after_a_loss_nothing_is_known_until_it_is_written_again() -> None:
    line = Line()
    line.add(RESET)
    line(x(5, 5), csr(0x340, 6))
    line(store(0x100, 4, 7), instr=sw())
    intact = line.decoded()
    more = Line(0x9000)
    for _ in range(5):
        more()
    last = more(x(5, 8))
    found = decode(encode(line.groups, RV64) + b"\x00" + encode(more.groups, RV64), Image(64), RV64)
    assert intact.after(2).x(5) == 5
    lost = found.after(3)
    assert [lost.x(5), lost.csr(0x340), lost.privilege] == [None] * 3 and lost.memory(0x100, 4) == [None] * 4
    assert lost.why_not(0x1005) == LOST and lost.register_writer(0x1005) == (1, 5, False, 0)
    assert lost.memory_writer(0x100, space=PHYSICAL) == (2, 7, False, 4)
    assert found.after(3 + last).x(5) == 8


def test_mtime_and_the_physical_address_of_the_pc() -> None:
    """Both are others with the next instruction: known is only what was told last."""
    line = Line()
    line()
    at = line(AdditionalState(StateId.MTIME, 1 << 40), AdditionalState(StateId.PC_PHYSICAL_ADDRESS, 0x4000))
    line()
    moments = [line.decoded().after(group) for group in (at - 1, at, at + 1)]
    assert [moment.mtime for moment in moments] == [None, 1 << 40, 1 << 40]
    assert [moment.register(MTIME) for moment in moments] == [None, 1 << 40, None]
    assert [moment.register(0x1_0002) for moment in moments] == [None, 0x4000, None]


class Naive:
    """A hart's registers and memory, kept whole for each group."""

    def __init__(self) -> None:
        self.x: dict[int, int] = {}
        self.memory: dict[int, int] = {}
        self.writers: dict[object, int] = {}
        self.snapshots: list[tuple[dict[int, int], dict[int, int], dict[object, int]]] = []

    def snapshot(self) -> None:
        self.snapshots.append((dict(self.x), dict(self.memory), dict(self.writers)))


@each_seed(range(12))
def test_any_moment_is_as_a_model_that_keeps_everything(seed: int) -> None:
    rng = random.Random(seed)
    line, naive = Line(), Naive()
    line.add(RESET)
    naive.snapshot()
    for number in range(1, 400):
        elements: list[Element] = []
        instr = rng.choice([NOP, C_NOP])
        if rng.random() < 0.6:
            regno, value = rng.randint(1, 31), rng.getrandbits(64)
            if regno in naive.x and rng.random() < 0.3:
                offset = rng.randint(-128, 127)
                elements.append(IncrementalRegister(0x1000 + regno, offset))
                naive.x[regno] = naive.x[regno] + offset & (1 << 64) - 1
            else:
                elements.append(FullRegister(0x1000 + regno, value))
                naive.x[regno] = value
            naive.writers["x", regno] = number
        elif rng.random() < 0.7:
            size, address = rng.choice([1, 2, 4, 8]), 0x1000 + rng.randint(0, 40)
            value = rng.getrandbits(8 * size)
            elements += store(address, size, value)
            instr = Instr(0x0053_0023 | size.bit_length() - 1 << 12, 4)
            for at, byte in enumerate(value.to_bytes(size, "little")):
                naive.memory[address + at] = byte
                naive.writers["m", address + at] = number
        line(*elements, instr=instr)
        naive.snapshot()
    found = line.decoded()
    for _ in range(150):
        number = rng.randrange(400)
        registers, memory, writers = naive.snapshots[number]
        state = found.after(number)
        assert {n: value for n, value in enumerate(state.xs()) if value is not None} == {0: 0} | registers
        address, size = 0x0FF8 + rng.randint(0, 60), rng.randint(1, 20)
        assert state.memory(address, size) == [memory.get(address + at) for at in range(size)]
        regno = rng.randint(1, 31)
        writer, stored = state.register_writer(0x1000 + regno), state.memory_writer(address)
        assert (writer and writer.group) == writers.get(("x", regno))
        assert (stored and stored.group) == writers.get(("m", address))


def test_groups_and_positions() -> None:
    line = Line(0x1000)
    line.add(RESET)
    line(x(5, 1))
    line.add(INIT, csr(0x344, 8))
    line(x(5, 2))
    line.add(pc(0x40), csr(0x341, 0x1008), csr(0x342, 7 | 1 << 63), csr(0x300, 0), csr(0x343, 0), priv(3))
    line.pc = 0x40
    line(x(5, 3))
    found = line.decoded()
    assert [found.group_of(position) for position in range(4)] == [1, 3, 5, 6]
    assert [found.position_of(number) for number in range(7)] == [0, 0, 1, 1, 2, 2, 3]
    assert [found.before(position).x(5) for position in range(4)] == [None, 1, 2, 3]
    assert [found.before(position).pc for position in range(4)] == [0x1000, 0x1004, 0x40, 0x44]
    trap = next(event for event in found.history.events if event.kind.value == "trap")
    assert trap.fact == Trap(TrapKind.INTERRUPT, 7, 0)
    assert (trap.position, trap.text, trap.last_pc, trap.next_pc) == (
        2, "interrupt 7 (machine timer interrupt)", 0x1008, 0x40,
    )  # fmt: skip


def test_a_loose_mcause_is_no_trap() -> None:
    found = tandem([group(pc(4), NOP), loose(csr(0x342, 5)), group(pc(8), NOP)])
    assert found.index.traps == [] and found.after(1).csr(0x342) == 5 and len(found.history) == 2


def test_a_partial_trace_without_the_pc() -> None:
    """What the instructions themselves tell: straight code and direct jumps; behind a branch nothing is known."""
    branch, jump = Instr(0x00208463, 4), Instr(0x0080006F, 4)  # beq 8, j 8
    found = tandem([group(INIT, pc(0x1000)), group(NOP), group(jump), group(C_NOP), group(branch), group(NOP, x(5, 1))])
    assert list(found.history.pcs()) == [0x1000, 0x1004, 0x100C, 0x100E, -1]
    assert [found.after(number).pc for number in range(6)] == [0x1000, 0x1004, 0x100C, 0x100E, None, None]
    assert found.history.gap_at(4).text == "the trace does not give the address of an instruction"
    assert found.after(5).x(5) == 1  # nothing is lost: what was written holds


def test_a_partial_trace_without_instructions() -> None:
    """Registers and pc alone: the state is known, what ran is not."""
    found = tandem([group(INIT, pc(0x1000)), group(pc(0x1004), x(5, 1)), group(pc(0x1008), x(5, 2))])
    assert len(found.history) == 0
    assert [found.after(number).x(5) for number in range(3)] == [None, 1, 2]
    assert found.after(2).pc == 0x1008


def test_what_a_group_changed() -> None:
    line = Line()
    line(x(5, 7), csr(FCSR, 1))
    at = line(IncrementalRegister(0x1005, 1), IncrementalRegisterOr(FCSR, 2), priv(1), IncrementalRegister(0x1006, 1))
    found = line.decoded()
    assert found.changed(at) == {0x1005: 8, FCSR: 3, 0x1_0000: 1, 0x1006: None}
    assert found.changed(0) == {0x1005: 7, FCSR: 1} and found.stored(0) == []


def test_the_events_of_a_history() -> None:
    """A reset, a debugger's writes, an interrupt, a return; a loss, after which the mode is not known."""
    line = Line(0x1000)
    line.add(RESET)
    line(x(5, 1))
    line.add(INIT, csr(0x344, 8))
    line.add(INIT, x(6, 1))
    line(priv(0), csr(MSTATUS, 0), instr=MRET, to=0x2000)
    line.add(pc(0x40), csr(0x341, 0x2000), csr(0x342, 7 | 1 << 63), csr(0x300, 0), csr(0x343, 0), priv(3))
    line.pc = 0x40
    line()
    whole = encode(line.groups, RV64)
    more = Line(0x3000)
    for _ in range(5):
        more()
    found = decode(whole + b"\xee" + encode(more.groups, RV64), Image(64), RV64)
    offsets, history = found.trace.offsets, found.history
    told = [(it.position, it.kind.value, it.offset, it.text, it.last_pc, it.next_pc, it.end) for it in history.events]
    assert told == [
        (0, "sync", 0, "hart reset", None, 0x1000, None),
        (1, "note", offsets[2], "2 state initializations from outside the hart", None, None, None),
        (2, "trap", offsets[5], "interrupt 7 (machine timer interrupt)", 0x2000, 0x40, None),
        (3, "loss", len(whole), f"0xee is not an opcode (at 0x{len(whole):x})", 0x40, 0x3000, len(whole) + 1),
    ]
    assert list(history.pcs()) == [0x1000, 0x1004, 0x40, -1, 0x3000, 0x3004, 0x3008, 0x300C, 0x3010]
    assert [history.context_at(position).prv for position in range(5)] == [3, 3, 3, 3, None]


def test_a_return_from_a_compressed_function_may_go_anywhere() -> None:
    """cm.popret is c.fsdsp on a hart without Zcmp: nothing is missing where it does not go on behind itself."""
    line = Line(0x1000)
    line()
    line(instr=Instr(0xBE42, 2), to=0x5000)
    line()
    found = line.decoded()
    assert found.index.breaks == []
    line(instr=C_NOP, to=0x6000)
    assert len(line.decoded().index.breaks) == 1
