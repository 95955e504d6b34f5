"""The shadow state: memory, as stores, atomic operations and page tables in the trace determine it."""

import pytest

from rvtrace_gdb.decode.tandem.memory import physical_address
from rvtrace_gdb.decode.tandem.protocol import (
    FLUTE,
    ROCKET,
    AdditionalState,
    IncrementalRegister,
    IncrementalRegisterOr,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.registers import PHYSICAL, UNKNOWN
from tests.decode.tandem.groups import INIT, MRET, RESET, RV32, RV64, Line, csr, f, group, priv, store, sw, x

MSTATUS, SATP = 0x300, 0x180
DIRTY = 3 << 13


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


def test_whether_a_conditional_store_failed_may_be_told_as_a_difference() -> None:
    line = Line()
    line.add(RESET)
    line(x(7, 1), store(0x100, 4, 1), instr=sw())
    line(IncrementalRegister(0x1007, -1), store(0x100, 4, 2), instr=amo(0b00011))
    line(IncrementalRegisterOr(0x1007, 1), store(0x100, 4, 3), instr=amo(0b00011))  # failed
    found = line.decoded()
    assert [found.after(n).memory(0x100, 1)[0] for n in range(1, 4)] == [1, 2, 2]


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
    sent = [TandemParameters(64, 64, dialect=dialect) for dialect in (FLUTE, ROCKET)]
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
    both = line(store(0x200, 4, 0x44), AdditionalState(StateId.PHYSICAL_ADDRESS, 0x9200), instr=sw())
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
    line(AdditionalState(StateId.EFFECTIVE_ADDRESS, 0x104), instr=sw())
    line(instr=sw())
    line(store(0x104, 4, 2), instr=sw())
    found = line.decoded()
    assert found.after(1).memory(0x100, 8).count(None) == 0
    assert found.after(2).memory(0x100, 8) == [1, 0, 0, 0, None, None, None, None]
    assert found.after(3).memory(0x100, 8) == [None] * 8
    assert found.after(4).memory(0x100, 8) == [None] * 4 + [2, 0, 0, 0]
    assert found.after(3).memory_writer(0x100) == (1, 1, False, 8)


def test_a_store_that_is_told_twice() -> None:
    """As memory store data and as what went over the bus, with both addresses."""
    line = Line()
    line.add(RESET)
    line(store(0x50, 1, 0x99), instr=Instr(0x0053_0023, 4))
    both = (AdditionalState(StateId.PHYSICAL_ADDRESS, 0x9100), MemoryRequest(0x9100, MemoryOp.STORE, 2, 5))
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


def with_tables(parameters: TandemParameters, tables: list[tuple[int, int, int]]) -> Line:
    """Page tables are stored in M-mode; then the program goes on in S-mode."""
    line = Line()
    line.add(RESET)
    for address, size, value in tables:
        line(store(address, size, value), instr=sw() if size == 4 else Instr(0x0053_3023, 4))
    line(csr(SATP, 8 << 60 | 1 if parameters.xlen == 64 else 1 << 31 | 1))
    line(priv(1), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    return line


@pytest.mark.parametrize(("parameters", "tables"), [(RV64, SV39), (RV32, SV32)])
def test_page_tables_that_the_trace_has(parameters: TandemParameters, tables: list[tuple[int, int, int]]) -> None:
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
    assert line.decoded(TandemParameters(64, 64, supervisor=False)).after(1).memory(0x100, 1) == [7]


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


def test_what_loads_show() -> None:
    """For those who ask for it: bytes that were read, until something may have changed them."""
    lw, lbu, flw = Instr(0x0003_2283, 4), Instr(0x0003_4283, 4), Instr(0x0003_2087, 4)
    address = AdditionalState(StateId.EFFECTIVE_ADDRESS, 0x100)
    line = Line()
    line.add(RESET)
    line(x(5, 0xFFFF_FFFF_8877_6655), address, instr=lw)
    stored = line(store(0x101, 1, 0xAB), instr=Instr(0x0053_0023, 4))
    line(x(5, 0xCD), address, instr=lbu)
    untold = line(AdditionalState(StateId.EFFECTIVE_ADDRESS, 0x100), instr=sw())
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


def test_satp_before_it_is_written() -> None:
    """After a reset there are no page tables; in a trace that begins anywhere there may be."""
    line = Line()
    line(priv(0), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    line(store(0x100, 4, 7), instr=sw())
    assert line.decoded().after(1).space == UNKNOWN
    line.groups.insert(0, group(RESET))
    assert line.decoded().after(2).space == PHYSICAL
