"""A hart of which some is unknown does what any hart does that has something there: for each, what it knows holds.

The other hart is the simulated one, which tests/transport/simulated/hart/test_spike.py holds against Spike.
"""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.semantics.encodings import Decoder
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.transport.simulated.hart.block import BlockPart, HartBlock
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.partial.hart import PartialHart
from rvtrace_gdb.transport.simulated.partial.memory import PartialMemory
from rvtrace_gdb.transport.simulated.partial.stops import HartStop, StopCause
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN, UnknownUsed, is_unknown
from tests.helpers.amounts import some_of
from tests.transport.simulated.hart.encoded_code import (
    BASE,
    DATA,
    EBREAK,
    ECALL,
    HANDLER,
    MRET,
    NOP,
    RAM_SIZE,
    WFI,
    Csr,
    addi,
    amoadd_w,
    csrr,
    csrrw,
    hart_with,
    lw,
    put,
    sw,
)
from tests.transport.simulated.hart.random_code import SKIP, random_code, random_registers

MISA_U = 1 << 20
_CODE = 4 * 41


def pcs_of(items: Sequence[HartItem]) -> list[int]:
    return [pc for it in items for pc in _pcs(it)]


def _pcs(item: HartItem) -> Sequence[int]:
    if isinstance(item, HartBlock):
        return item.pcs
    return item.block.pcs[: item.n] if isinstance(item, BlockPart) else ()


def _is_trap(item: HartItem) -> bool:
    return not isinstance(item, HartBlock | BlockPart)


def partial_of(
    hart: Hart, unknown_x: set[int], unknown_bytes: set[int], csrs: dict[int, int] | None = None
) -> PartialHart:
    """The same hart, of which some registers and bytes are unknown."""
    content = hart.bus.read_bytes(BASE, RAM_SIZE)

    def known(address: int, size: int) -> list[int | None]:
        return [None if at in unknown_bytes else content[at - BASE] for at in range(address, address + size)]

    found = PartialHart(PartialMemory([Extent(BASE, RAM_SIZE)], known), hart.xlen, hart.extensions, hart.pc)
    found.csr.begin({Csr.MSTATUS: 0, Csr.MTVEC: hart.csr_read(Csr.MTVEC), 0x301: MISA_U, 0x306: 0, **(csrs or {})})
    found.csr.is_privilege_known = True
    found.x[:] = [UNKNOWN if n in unknown_x else value for n, value in enumerate(hart.x)]
    return found


def tame(rng: random.Random, words: Sequence[int], xlen: int) -> list[int]:
    """The same code, with accesses that are aligned and near x3, and few traps: else nothing runs for long."""
    decoder = Decoder(xlen, "IMAC")
    return [_tamed(rng, word, decoder) for word in words]


def _tamed(rng: random.Random, word: int, decoder: Decoder) -> int:
    opcode = word & 0x7F
    if opcode in (0x03, 0x23):
        offset = 8 * rng.randrange(16)
        funct3 = rng.choice((0, 1, 2, 4, 5) if opcode == 0x03 else (0, 1, 2))
        rest = (word >> 7 & 31) << 7 | offset << 20
        if opcode == 0x23:
            rest = (word >> 20 & 31) << 20 | (offset >> 5) << 25 | (offset & 31) << 7
        word = rest | 3 << 15 | funct3 << 12 | opcode
    if opcode not in (0x23, 0x63) and word >> 7 & 31 in (3, 4):
        word ^= 0b1100 << 7
    return NOP if decoder.decode(word).name in ("illegal", "jalr") else word


def full(code: Sequence[int], registers: Sequence[int], xlen: int, extensions: str) -> Hart:
    hart = hart_with(*code, xlen=xlen, extensions=extensions)
    put(hart, HANDLER, *SKIP)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.x[:] = registers
    return hart


@settings(max_examples=some_of(400))
@given(
    seed=st.integers(0, 1 << 32),
    xlen=st.sampled_from((32, 64)),
    extensions=st.sampled_from(("IMAC", "IMA")),
    share=st.sampled_from((0, 0.02, 0.1, 0.5)),
    pieces=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    has_kernel=st.booleans(),
)
def test_what_is_known_holds_whatever_the_rest_is(
    seed: int, xlen: int, extensions: str, share: float, pieces: list[int], has_kernel: bool
) -> None:
    rng = random.Random(seed)
    code, registers = tame(rng, random_code(rng, xlen, 40), xlen), random_registers(rng, xlen)
    data = [at for at in range(BASE + _CODE, BASE + RAM_SIZE) if not HANDLER <= at < HANDLER + 16]
    unknown_x = {n for n in range(1, 32) if rng.random() < share and n not in (3, 4)}
    unknown_bytes = {at for at in data if rng.random() < share}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RVTRACE_KERNEL", str(int(has_kernel)))
        hart = partial_of(full(code, registers, xlen, extensions), unknown_x, unknown_bytes)
    others = []
    for fill in range(2):
        other = full(code, registers, xlen, extensions)
        for n in unknown_x:
            other.x[n] = rng.choice((0, rng.randrange(1 << xlen), BASE + 8 * rng.randrange(256)))
        for at in unknown_bytes:
            other.bus.write(at, 1, rng.randrange(256) if fill else 0)
        others.append(other)
    retired = hart.retired = []
    for piece in pieces:
        with_stop = _advanced(hart, piece)
        for other in others:
            _compare(hart, other, pcs_of(retired), code)
        if with_stop:
            break
    if with_stop is None and not share:
        assert hart.instret or hart.traps


def _advanced(hart: PartialHart, count: int) -> StopCause | None:
    try:
        for _ in range(count):
            hart.advance(99)
    except HartStop as stop:
        return stop.reason
    return None


def _compare(hart: PartialHart, other: Hart, pcs: list[int], code: Sequence[int]) -> None:
    ran: list[HartItem] = []
    if other.retired is None:
        other.retired = []
    ran = other.retired
    steps = len([it for it in ran if _is_trap(it)])
    while other.instret < hart.instret or (steps < hart.traps and other.instret == hart.instret):
        before = len(ran)
        other.step()
        steps += sum(_is_trap(it) for it in ran[before:])
    if other.bus.read_bytes(BASE, 4 * len(code)) != b"".join(word.to_bytes(4, "little") for word in code):
        return  # code that changes itself is what was translated, until FENCE.I
    assert pcs_of(ran) == pcs
    assert other.pc == hart.pc
    assert all(is_unknown(own) or own == value for own, value in zip(hart.x, other.x, strict=True))
    theirs = other.bus.read_bytes(BASE, RAM_SIZE)
    ours = hart.bus.content(BASE, RAM_SIZE)
    assert all(own is None or own == value for own, value in zip(ours, theirs, strict=True))


def stopped(hart: PartialHart, count: int = 20) -> HartStop:
    with pytest.raises(HartStop) as caught:
        hart.advance(count)
    return caught.value


def bare(*code: int, unknown_x: Sequence[int] = (), **csrs: int) -> PartialHart:
    return partial_of(hart_with(*code), set(unknown_x), set(), {Csr[name]: value for name, value in csrs.items()})


def test_an_unknown_register_is_saved_and_restored_as_unknown() -> None:
    """As a function's prologue does; then it is overwritten, and known."""
    hart = bare(sw(8, 3), addi(8, 0, 7), lw(9, 3), unknown_x=[8])
    hart.advance(3)
    assert hart.x[8] == 7 and is_unknown(hart.x[9]) and hart.bus.content(DATA, 5)[:4] == [None] * 4


def test_a_branch_by_an_unknown_value_is_not_executed() -> None:
    hart = bare(addi(5, 8, 1), 0x00028463, unknown_x=[8])  # beqz t0, 8
    assert stopped(hart).reason is StopCause.BRANCH and (hart.pc, hart.instret) == (BASE + 4, 1)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (0x00040067, StopCause.JUMP), (sw(0, 8), StopCause.STORE_ADDRESS), (lw(5, 8), StopCause.LOAD_ADDRESS),
        (amoadd_w(5, 6, 8), StopCause.STORE_ADDRESS), (EBREAK, StopCause.EBREAK), (WFI, StopCause.WAIT),
        (0xFFFFFFFF, StopCause.UNSUPPORTED), (0x10200073, StopCause.UNSUPPORTED), (MRET, StopCause.CSR),
        (csrrw(0, 0x180, 8), StopCause.TRANSLATION), (lw(5, 0), StopCause.DEVICE_READ),
        (sw(5, 0), StopCause.ELSEWHERE), (lw(5, 3, 2), StopCause.MISALIGNED),
    ],
)  # fmt: skip
def test_why_an_instruction_is_not_executed(word: int, reason: StopCause) -> None:
    hart = bare(NOP, word, unknown_x=[8])
    before = list(map(repr, hart.x))
    assert stopped(hart).reason is reason
    assert hart.pc == BASE + 4 and list(map(repr, hart.x)) == before


@pytest.mark.parametrize("word", [lw(5, 0), lw(5, 8), sw(5, 0), WFI])
def test_what_would_end_it_is_passed_over_if_it_is_asked_again(word: int) -> None:
    hart = bare(word, NOP, unknown_x=[8])
    reason = stopped(hart).reason
    assert hart.advance(1, over=reason) == 1 and hart.pc == BASE + 4
    assert is_unknown(hart.x[5]) is (word & 0x7F == 0x03)


def test_counters_are_unknown_and_csrs_that_were_written_may_be_something_else() -> None:
    code = csrr(5, Csr.MCYCLE), csrr(6, Csr.MIP), csrrw(0, Csr.MIE, 3), csrr(7, Csr.MIE), csrr(8, Csr.MTVEC)
    hart = bare(*code, MIE=8)
    hart.csr.set(Csr.MTVEC, HANDLER)
    assert hart.csr.read(Csr.MIE) == 8
    hart.advance(5)
    assert [is_unknown(hart.x[n]) for n in (5, 6, 7)] == [True] * 3 and hart.x[8] == HANDLER


def test_a_trap_where_mtvec_is_unknown() -> None:
    hart = bare(ECALL)
    hart.csr.trap.mtvec = UNKNOWN
    assert stopped(hart).reason is StopCause.HANDLER


def test_mret_with_an_unknown_mstatus_leaves_the_mode_unknown() -> None:
    hart = bare(MRET, csrr(5, Csr.MTVAL), MEPC=BASE + 4)
    hart.csr.forget_status()
    hart.advance(2)
    assert not hart.csr.is_privilege_known and is_unknown(hart.csr.read(Csr.MSTATUS))


def test_it_stops_at_breakpoints_and_goes_over_them_if_asked() -> None:
    hart = bare(NOP, NOP, NOP, NOP)
    hart.stop_at({BASE + 8})
    assert stopped(hart).reason is StopCause.BREAKPOINT and hart.pc == BASE + 8
    assert hart.advance(1, over=StopCause.BREAKPOINT) == 1 and hart.pc == BASE + 12


@pytest.mark.parametrize(("loads", "stores", "pc"), [(True, False, 8), (False, True, 4), (True, True, 4)])
def test_it_stops_before_it_accesses_watched_memory(loads: bool, stores: bool, pc: int) -> None:
    hart = bare(NOP, sw(5, 3), lw(5, 3), NOP)
    hart.stop_at(set(), [(Extent(DATA + 2, 1), loads, stores)])
    stop = stopped(hart)
    assert stop.reason is StopCause.WATCHPOINT and hart.pc == BASE + pc


def test_an_interrupt_is_taken_when_it_is_asked_for() -> None:
    hart = bare(NOP, NOP)
    hart.advance(1)
    hart.interrupt(7, HANDLER)
    assert hart.pc == HANDLER and hart.csr.read(Csr.MEPC) == BASE + 4 and hart.csr.read(Csr.MCAUSE) == 1 << 63 | 7


def test_an_unknown_value_decides_nothing() -> None:
    assert is_unknown(3 + UNKNOWN * 2) and is_unknown(~UNKNOWN & 0)
    for decide in (bool, int, lambda it: it < 3, lambda it: it == it, lambda it: [1][it], hash):
        with pytest.raises(UnknownUsed):
            decide(UNKNOWN)
