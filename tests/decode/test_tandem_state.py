"""The shadow state: what the trace determines, what it does not, and who wrote it last."""

import random

import pytest

from decode.image import Image
from decode.tandem.decoder import decode
from decode.tandem.dialect import FLUTE, ROCKET
from decode.tandem.encoder import encode
from decode.tandem.group import (
    AdditionalState,
    Element,
    FullRegister,
    IncrementalRegister,
    IncrementalRegisterOr,
    Instr,
    MemoryRequest,
    MemoryResponse,
)
from decode.tandem.layout import MemoryOp, State
from decode.tandem.parameters import Parameters
from decode.tandem.spaces import PHYSICAL, UNKNOWN
from decode.tandem.state import LOST, NOT_WRITTEN, UNTOLD
from decode.tandem.translation import physical_address
from tests.decode.tandem_groups import (
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
)  # fmt: skip

MSTATUS, SSTATUS, FCSR, FFLAGS, FRM, MIE, SIE, MIDELEG, SATP = 0x300, 0x100, 3, 1, 2, 0x304, 0x104, 0x303, 0x180
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
    assert found.after(2).x(6) is None and found.after(2).why_not(0x1006) == UNTOLD  # changed from something unknown
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
    assert [after.csr(MSTATUS), after.csr(0x343)] == [None, None] and after.why_not(MSTATUS) == UNTOLD
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


def test_memory_bytes() -> None:
    line = Line()
    line.add(RESET)
    line(store(0x100, 8, 0x8877665544332211), instr=Instr(0x00533023, 4))  # sd
    line(store(0x103, 2, 0xBEEF), instr=Instr(0x00531023, 4))  # sh, misaligned
    line(store(0x107, 4, 0xCAFEBABE), instr=sw())
    line(store(0x100, 1, 0x99), instr=Instr(0x00530023, 4))  # sb
    found = line.decoded()
    assert found.after(1).memory(0x0FE, 4) == [None, None, 0x11, 0x22]
    assert found.after(4).memory(0x100, 11) == list(bytes.fromhex("992233efbe6677beba") + bytes.fromhex("feca"))
    assert found.after(2).memory_writer(0x102, 2) == (2, 0xBEEF, True, 2)
    assert found.after(4).memory_writer(0x101) == (1, 0x8877665544332211, True, 8)
    assert found.after(4).memory_writer(0x10B) is None
    assert [stored.group for stored in found.stores(0x100, 4)] == [1, 2, 4]
    nearest = found.next_store(found.position_of(3), 0x100, 4)
    before = found.next_store(found.position_of(3), 0x100, 4, forward=False)
    assert nearest is not None and before is not None and (nearest.group, before.group) == (4, 2)
    assert found.next_register_write(0, 0x1001) is None


def amo(funct5: int, rd: int = 7, size: int = 2) -> Instr:
    return Instr(funct5 << 27 | 5 << 20 | 6 << 15 | size << 12 | rd << 7 | 0x2F, 4)


def test_a_conditional_store_that_failed_stores_nothing() -> None:
    """Flute sends the data all the same; and with lr it sends what is in the register."""
    line = Line()
    line.add(RESET)
    line(store(0x100, 4, 1), instr=sw())
    line(x(7, 1), store(0x100, 4, 2), instr=amo(0b00010))  # lr
    line(x(7, 1), store(0x100, 4, 3), instr=amo(0b00011))  # sc, failed
    line(x(7, 0), store(0x100, 4, 4), instr=amo(0b00011))
    line(store(0x100, 4, 5), instr=amo(0b00011, rd=0))  # nobody knows
    found = line.decoded()
    assert [found.after(n).memory(0x100, 1)[0] for n in range(1, 6)] == [1, 1, 1, 4, None]


@pytest.mark.parametrize(
    ("funct5", "old", "operand", "result"),
    [
        (0b00001, 5, 9, 9), (0b00000, 0xFFFF_FFFF, 2, 1), (0b00100, 0xF0, 0xFF, 0x0F), (0b01100, 0xF0, 0x3C, 0x30),
        (0b01000, 0xF0, 0x0F, 0xFF), (0b10000, 0xFFFF_FFFF, 1, 0xFFFF_FFFF), (0b10100, 0xFFFF_FFFF, 1, 1),
        (0b11000, 0xFFFF_FFFF, 1, 1), (0b11100, 0xFFFF_FFFF, 1, 0xFFFF_FFFF),
    ],
)  # fmt: skip
def test_atomic_operations(funct5: int, old: int, operand: int, result: int) -> None:
    """What is sent with them depends on the encoder; what they write does not."""
    line = Line()
    line.add(RESET)
    line(x(7, old), store(0x100, 4, operand), instr=amo(funct5))
    line(store(0x100, 4, operand), instr=amo(funct5, rd=0))
    sent = [Parameters(64, 64, dialect=dialect) for dialect in (FLUTE, ROCKET)]
    for parameters, expected in zip(sent, (result, None), strict=True):
        found = line.decoded(parameters).after(1).memory(0x100, 4)
        assert found == ([None] * 4 if expected is None else list(expected.to_bytes(4, "little")))
    assert line.decoded(sent[0]).after(2).memory(0x100, 1) == [None]  # the old value is not in the trace
    as_specified = line.decoded(RV64)  # "the data that would be written to memory"
    assert as_specified.after(1).memory(0x100, 1) == [operand & 0xFF]
    bus = Line()
    ops = {
        0b00001: 4,
        0b00000: 5,
        0b00100: 6,
        0b01100: 7,
        0b01000: 8,
        0b10000: 9,
        0b10100: 10,
        0b11000: 11,
        0b11100: 12,
    }
    bus(MemoryRequest(0x100, ops[funct5], 2, operand), MemoryResponse(2, 0, old))
    bus(MemoryRequest(0x100, ops[funct5], 2, operand))
    seen = bus.decoded()
    assert seen.after(0).memory(0x100, 4, space=PHYSICAL) == list(result.to_bytes(4, "little"))
    assert seen.after(1).memory(0x100, 1, space=PHYSICAL) == [None]


def test_memory_requests_store_at_physical_addresses() -> None:
    line = Line()
    line.add(RESET)
    line.add(INIT, MemoryRequest(0x100, MemoryOp.STORE, 3, 0x8877665544332211), MemoryResponse(3, 0))
    line.add(INIT, MemoryRequest(0x100, MemoryOp.STORE, 0, 0xAA))
    line.add(INIT, MemoryRequest(0x104, MemoryOp.STORE, 0, 0xBB), MemoryResponse(0, 1))  # failed: who knows
    line(MemoryRequest(0x102, MemoryOp.LOAD, 1), MemoryResponse(1, 0, 0x1234))
    line(MemoryRequest(0x102, MemoryOp.STORE_CONDITIONAL, 0, 0x77), MemoryResponse(0, 1))
    line(MemoryRequest(0x103, MemoryOp.STORE_CONDITIONAL, 0, 0x78), MemoryResponse(0, 0))
    found = line.decoded()
    assert found.after(6).memory(0x100, 8) == [0xAA, 0x22, 0x33, 0x78, None, 0x66, 0x77, 0x88]
    assert found.history.events[1].text == "3 state initializations from outside the hart"


def test_virtual_addresses_are_an_address_space_of_their_own() -> None:
    one, other = 8 << 60 | 0x80001, 8 << 60 | 0x80002
    line = Line()
    line.add(RESET)
    line(csr(SATP, one))
    line(store(0x100, 4, 0x11), instr=sw())  # M-mode: physical
    line(csr(MSTATUS, 0), priv(1), instr=MRET, to=0x4000)
    in_one = line(store(0x100, 4, 0x22), instr=sw())
    line(csr(SATP, other))
    in_other = line(store(0x100, 4, 0x33), instr=sw())
    both = line(store(0x200, 4, 0x44), AdditionalState(State.PHYSICAL_ADDRESS, 0x9200), instr=sw())
    mprv = line(priv(3), csr(MSTATUS, 1 << 17 | 1 << 11), instr=MRET, to=0x5000)
    plain = line(csr(MSTATUS, 1 << 11))
    found = line.decoded()
    assert [found.after(n).space for n in (2, in_one, in_other, mprv, plain)] == [PHYSICAL, one, other, other, PHYSICAL]
    assert found.after(in_one).memory(0x100, 1) == [0x22] and found.after(in_other).memory(0x100, 1) == [0x33]
    assert found.after(mprv).memory(0x100, 1) == [0x33]
    assert found.after(2).memory(0x100, 1) == [0x11]
    assert found.after(in_other).memory(0x100, 1, space=PHYSICAL) == [None]  # where the others went nobody knows
    assert found.after(plain).memory_writer(0x100) == (2, 0x11, False, 4)
    assert found.after(both).memory(0x200, 1) == [0x44] == found.after(both).memory(0x9200, 1, space=PHYSICAL)


def test_a_store_the_trace_does_not_tell_makes_memory_unavailable() -> None:
    """A partial trace without store data, or without addresses."""
    line = Line()
    line.add(RESET)
    line(store(0x100, 8, 1), instr=Instr(0x00533023, 4))
    line(AdditionalState(State.EFFECTIVE_ADDRESS, 0x104), instr=sw())
    line(instr=sw())
    line(store(0x104, 4, 2), instr=sw())
    found = line.decoded()
    assert found.after(1).memory(0x100, 8).count(None) == 0
    assert found.after(2).memory(0x100, 8) == [1, 0, 0, 0, None, None, None, None]
    assert found.after(3).memory(0x100, 8) == [None] * 8
    assert found.after(4).memory(0x100, 8) == [None] * 4 + [2, 0, 0, 0]
    assert found.after(3).memory_writer(0x100) == (1, 1, False, 8)


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
    line = Line()
    line(AdditionalState(State.MTIME, 1 << 40), AdditionalState(State.PC_PHYSICAL_ADDRESS, 0x4000))
    line()
    found = line.decoded()
    assert found.after(1).mtime == 1 << 40 and found.after(1).register(0x1_0002) == 0x4000


class Naive:
    """A hart's registers and memory, kept whole for each group."""

    def __init__(self) -> None:
        self.x: dict[int, int] = {}
        self.memory: dict[int, int] = {}
        self.writers: dict[object, int] = {}
        self.snapshots: list[tuple[dict[int, int], dict[int, int], dict[object, int]]] = []

    def snapshot(self) -> None:
        self.snapshots.append((dict(self.x), dict(self.memory), dict(self.writers)))


@pytest.mark.parametrize("seed", range(12))
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
    assert trap == (2, trap.kind, trap.offset, "interrupt 7 (machine timer interrupt)", 0x1008, 0x40)


def test_a_loose_mcause_is_no_trap() -> None:
    found = tandem([group(pc(4), NOP), loose(csr(0x342, 5)), group(pc(8), NOP)])
    assert found.index.traps == [] and found.after(1).csr(0x342) == 5 and len(found.history) == 2


def test_a_partial_trace_without_the_pc() -> None:
    """What the instructions themselves tell: straight code and direct jumps; behind a branch nothing is known."""
    branch, jump = Instr(0x00208463, 4), Instr(0x0080006F, 4)  # beq 8, j 8
    found = tandem([group(INIT, pc(0x1000)), group(NOP), group(jump), group(C_NOP), group(branch), group(NOP, x(5, 1))])
    assert list(found.history.pcs()) == [0x1000, 0x1004, 0x100C, 0x100E, -1]
    assert [found.after(number).pc for number in range(6)] == [0x1000, 0x1004, 0x100C, 0x100E, None, None]
    assert found.history.gap_at(4).text == "the address of an instruction is not told"
    assert found.after(5).x(5) == 1  # nothing is lost: what was written holds


def test_a_partial_trace_without_instructions() -> None:
    """Registers and pc alone: the state is known, what ran is not."""
    found = tandem([group(INIT, pc(0x1000)), group(pc(0x1004), x(5, 1)), group(pc(0x1008), x(5, 2))])
    assert len(found.history) == 0
    assert [found.after(number).x(5) for number in range(3)] == [None, 1, 2]
    assert found.after(2).pc == 0x1008


def test_a_store_that_is_told_twice() -> None:
    """As memory store data and as what went over the bus, with both addresses."""
    line = Line()
    line.add(RESET)
    line(store(0x50, 1, 0x99), instr=Instr(0x0053_0023, 4))
    both = (AdditionalState(State.PHYSICAL_ADDRESS, 0x9100), MemoryRequest(0x9100, MemoryOp.STORE, 2, 5))
    line(csr(SATP, 8 << 60 | 1), csr(MSTATUS, 0), priv(1), instr=MRET, to=0x4000)
    at = line(store(0x100, 4, 5), *both, instr=sw())
    found = line.decoded()
    assert found.after(at).memory(0x100, 4) == [5, 0, 0, 0] == found.after(at).memory(0x9100, 4, space=PHYSICAL)
    assert found.after(at).memory(0x100, 4, space=PHYSICAL) == [None] * 4
    assert found.after(at).memory(0x50, 1, space=PHYSICAL) == [0x99]  # the store may not have gone there


def in_words(address: int, values: dict[int, int], size: int) -> list[tuple[int, int, int]]:
    return [(address + size * number, size, value) for number, value in values.items()]


SV39 = [*in_words(0x1000, {0: 0x2 << 10 | 1, 2: 0x80000 << 10 | 0xF}, 8), *in_words(0x2000, {0: 0x3 << 10 | 1}, 8),
        *in_words(0x3000, {4: 0x9 << 10 | 0xF, 5: 0xC << 10 | 0xF, 17: 0x58 << 10 | 1 << 63 | 0xF}, 8)]  # fmt: skip
SV32 = [*in_words(0x1000, {0: 0x3 << 10 | 1, 2: 0x400 << 10 | 0xF}, 4),
        *in_words(0x3000, {4: 0x9 << 10 | 0xF, 5: 0xC << 10 | 0xF}, 4)]  # fmt: skip


def with_tables(parameters: Parameters, tables: list[tuple[int, int, int]]) -> Line:
    """Page tables are stored in M-mode; then the program goes on in S-mode."""
    line = Line()
    line.add(RESET)
    for address, size, value in tables:
        line(store(address, size, value), instr=sw() if size == 4 else Instr(0x0053_3023, 4))
    line(csr(SATP, 8 << 60 | 1 if parameters.xlen == 64 else 1 << 31 | 1))
    line(priv(1), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    return line


@pytest.mark.parametrize(("parameters", "tables"), [(RV64, SV39), (RV32, SV32)])
def test_page_tables_that_the_trace_has(parameters: Parameters, tables: list[tuple[int, int, int]]) -> None:
    """A virtual address is the physical one that the tables say at the time."""
    line = with_tables(parameters, tables)
    first = line(store(0x4FFE, 4, 0x44332211), instr=sw())  # over the end of a page: to 0x9ffe and 0xc000
    back = line(priv(3), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    physical = line(store(0x9FFE, 1, 0x99), instr=sw())
    entry = 4 * parameters.xlen // 8
    moved = line(store(0x3000 + entry, parameters.xlen // 8, 0xB << 10 | 0xF), instr=sw())
    again = line(priv(1), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    other = line(store(0x4FFE, 1, 0x77), instr=sw())
    found = line.decoded(parameters)
    assert [found.after(first).physical_address(at) for at in (0x4123, 0x5000, 0x6000)] == [0x9123, 0xC000, None]
    assert found.after(first).memory(0x4FFD, 6) == [None, 0x11, 0x22, 0x33, 0x44, None]
    assert found.after(back).memory(0x9FFE, 2) == [0x11, 0x22] and found.after(back).memory(0xC000, 2) == [0x33, 0x44]
    assert found.after(physical).memory(0x9FFE, 2) == [0x99, 0x22]
    assert found.after(moved).memory_writer(0x9FFE) == (physical, 0x99, True, 1)
    assert found.after(again).memory(0x4FFE, 4) == [None, None, 0x33, 0x44]  # another page is there now
    assert found.after(other).memory(0x4FFE, 1) == [0x77] == found.after(other).memory(0xBFFE, 1, space=PHYSICAL)
    assert found.after(other).memory(0x9FFE, 1, space=PHYSICAL) == [0x99]
    nearest = found.next_store(found.position_of(first), 0x4FFE, 1, forward=True)
    assert nearest is not None and (nearest.group, nearest.address) == (first, 0x9FFE)


def test_large_pages_and_pages_together() -> None:
    found = with_tables(RV64, SV39).decoded()
    state = found.after(len(found.trace) - 1)
    assert state.physical_address(0x8012_3456) == 0x8012_3456  # 1 GiB
    assert state.physical_address(0x1_1123) == 0x5_1123  # Svnapot: the second of 16 pages that are together
    assert state.physical_address(1 << 40) is None  # not canonical
    state = with_tables(RV32, SV32).decoded(RV32).after(9)
    assert state.physical_address(0x0081_2345) == 0x0041_2345  # 4 MiB


def test_a_store_nobody_knows_where_puts_physical_memory_in_doubt() -> None:
    line = with_tables(RV64, SV39)
    line(store(0x8800, 4, 5, physical=True), instr=sw())  # told by its physical address alone
    known = line(store(0x4000, 4, 1), instr=sw())
    assert line.decoded().after(known).memory(0x8800, 1, space=PHYSICAL) == [0x05]
    assert line.decoded().after(known).memory(0x1000, 1, space=PHYSICAL) == [0x01]
    line(store(0x7000, 4, 2), instr=sw())
    found = line.decoded()
    last = found.after(known + 1)
    assert last.memory(0x1000, 1, space=PHYSICAL) == [None] and last.memory(0x7000, 1) == [2]
    assert last.physical_address(0x4000) is None  # for all one knows, the tables themselves may be others


def test_a_hart_without_supervisor_mode() -> None:
    """Its addresses are physical, though a trace that does not begin with a reset does not tell the mode."""
    line = Line()
    line(store(0x100, 4, 7), instr=sw())
    line(priv(3), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    assert line.decoded().after(1).memory(0x100, 1) == [None]
    assert line.decoded(Parameters(64, 64, supervisor=False)).after(1).memory(0x100, 1) == [7]


def test_several_stores_of_one_instruction() -> None:
    """cm.push {ra, s0}, -16: data and addresses belong together in their order, whatever their sizes."""
    line = Line()
    line.add(RESET)
    push = Instr(0xB852, 2)
    pairs = [*store(0x108, 8, 1), *store(0x100, 8, 2), *store(0x110, 4, 3), *store(0x114, 2, 4)]
    at = line(*pairs, instr=push)
    found = line.decoded()
    words = [found.after(at).memory(address, 1) for address in (0x108, 0x100, 0x110, 0x114)]
    assert words == [[1], [2], [3], [4]]
    assert [(one.address, one.size) for _, one in found.stored(at)] == [(0x108, 8), (0x100, 8), (0x110, 4), (0x114, 2)]


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
    told = [(event.position, event.kind.value, *event[2:]) for event in history.events]
    assert told == [
        (0, "sync", 0, "hart reset", None, 0x1000),
        (1, "note", offsets[2], "2 state initializations from outside the hart", None, None),
        (2, "trap", offsets[5], "interrupt 7 (machine timer interrupt)", 0x2000, 0x40),
        (3, "loss", len(whole), f"0xee is no opcode (at 0x{len(whole):x})", 0x40, 0x3000),
    ]
    assert list(history.pcs()) == [0x1000, 0x1004, 0x40, -1, 0x3000, 0x3004, 0x3008, 0x300C, 0x3010]
    assert [history.context_at(position).prv for position in range(5)] == [3, 3, 3, 3, None]


def test_what_loads_show() -> None:
    """For who asks for it: bytes that were read, until something may have changed them."""
    lw, lbu, flw = Instr(0x0003_2283, 4), Instr(0x0003_4283, 4), Instr(0x0003_2087, 4)
    address = AdditionalState(State.EFFECTIVE_ADDRESS, 0x100)
    line = Line()
    line.add(RESET)
    line(x(5, 0xFFFF_FFFF_8877_6655), address, instr=lw)
    stored = line(store(0x101, 1, 0xAB), instr=Instr(0x0053_0023, 4))
    line(x(5, 0xCD), address, instr=lbu)
    untold = line(AdditionalState(State.EFFECTIVE_ADDRESS, 0x100), instr=sw())
    line(f(1, 0xFFFF_FFFF_1234_5678), address, csr(MSTATUS, DIRTY), instr=flw)
    lost = line(instr=sw())
    found = line.decoded()
    seen = [found.after(number).memory(0x0FF, 6, loads=True) for number in range(lost + 1)]
    assert seen[0] == [None] * 6
    assert seen[1] == [None, 0x55, 0x66, 0x77, 0x88, None]
    assert seen[stored] == [None, 0x55, 0xAB, 0x77, 0x88, None]
    assert seen[stored + 1] == [None, 0xCD, 0xAB, 0x77, 0x88, None]
    assert seen[untold] == [None] * 6
    assert seen[untold + 1] == [None, 0x78, 0x56, 0x34, 0x12, None]
    assert seen[lost] == [None] * 6
    assert found.after(stored).memory(0x0FF, 6) == [None, None, 0xAB, None, None, None]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (0x9 << 10 | 0xF, 0x9123), (0x9 << 10 | 0xE, None), (0x9 << 10 | 0x5, None), (0x9 << 10 | 0xB, 0x9123),
        (0x9 << 10 | 0x9, 0x9123), (0x9 << 10 | 1, None), (None, None),
    ],
)  # fmt: skip
def test_entries_of_the_last_level(entry: int | None, expected: int | None) -> None:
    """Not valid, writable but not readable, executable alone, a pointer where none can be, not known."""
    memory = {0x1000: 0x2 << 10 | 1, 0x2000: 0x3 << 10 | 1, 0x3020: entry}
    assert physical_address(lambda at, size: memory.get(at), 8 << 60 | 1, 0x4123, 64) == expected


def test_large_pages_must_be_aligned_and_modes_known() -> None:
    memory = {0x1000: 0x2 << 10 | 1, 0x2008: 0x400 << 10 | 0xF, 0x2010: 0x401 << 10 | 0xF}

    def read(at: int, size: int) -> int | None:
        return memory.get(at)

    assert physical_address(read, 8 << 60 | 1, 0x20_1234, 64) == 0x40_1234
    assert physical_address(read, 8 << 60 | 1, 0x40_1234, 64) is None
    assert physical_address(read, 7 << 60 | 1, 0x20_1234, 64) is None
    memory[0x1000] |= 4  # writable and not readable is reserved, for pointers too
    assert physical_address(read, 8 << 60 | 1, 0x20_1234, 64) is None
    memory[0x1000] ^= 4
    assert physical_address(read, 8 << 60 | 1, 0x20_1234 | 1 << 63, 64) is None


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


def test_satp_before_it_is_written() -> None:
    """After a reset there are no page tables; in a trace that begins anywhere there may be."""
    line = Line()
    line(priv(0), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    line(store(0x100, 4, 7), instr=sw())
    assert line.decoded().after(1).space == UNKNOWN
    line.groups.insert(0, group(RESET))
    assert line.decoded().after(2).space == PHYSICAL
