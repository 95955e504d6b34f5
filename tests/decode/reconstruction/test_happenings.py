"""What happens between instructions while a history is executed again: halts, translation, calls of environments."""

import pytest

from rvtrace_gdb.decode.history.events import (
    ContextChange,
    EventKind,
    Fact,
    Loss,
    LossCause,
    Start,
    StartReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.program.csrs import MEPC, MSTATUS, SATP, ProgramContext
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine, KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.small_histories import BASE, history, program

NOP, LOAD_A1, STORE_A0 = 0x0000_0013, 0x0006_3583, 0x00A6_3023  # ld a1, 0(a2); sd a0, 0(a2)
ECALL, EBREAK, MRET, SET_SATP = 0x0000_0073, 0x0010_0073, 0x3020_0073, 0x1805_1073  # csrw satp, a0
RAM = Extent(0x8000_0000, 1 << 20)
HALT: tuple[EventKind, Fact] = (EventKind.SYNC, Start(StartReason.EXIT_FROM_DEBUG))
BEGIN = KnownState(
    x=(0, *range(1, 12), RAM[0], *range(13, 32)), privilege=3, memory=[(RAM[0], bytes(16))], csrs={MSTATUS: 3 << 11}
)


def forward(words: list[int], pieces: list[int | tuple[EventKind, Fact]], **more: object) -> Forward:
    machine = HartMachine(64, "IMAC", [RAM], machine_only=more.pop("machine_only", True))  # type: ignore[arg-type]
    found = Forward(history(pieces), program(words), machine, more.pop("begin", BEGIN), **more)  # type: ignore[arg-type]
    found.run()
    return found


def test_a_halt_of_which_nothing_is_known() -> None:
    found = forward([NOP, LOAD_A1], [1, HALT, 1])
    assert (
        found.hart_at(1).x[10] is None
        and found.hart_at(1).memory.load(RAM[0], 8) is None
        and found.hart_at(0).x[10] == 10
    )


def test_a_halt_of_which_is_known_what_the_debugger_wrote() -> None:
    written = [(RAM[0] + 1, b"\7"), (RAM[0] + 8, bytes(9))]
    halts = [HaltWrites(1, {0x100A: 77, 0x1021: 5, 0x340: 6}, written, forgotten=[Extent(RAM.address + 13, 3)])]
    hart = forward([NOP, LOAD_A1], [1, HALT, 1], halts=halts).hart_at(2)
    assert hart.memory.bytes(RAM[0] + 12, 5) == [0, None, None, None, 0]
    assert (hart.x[10], hart.x[11], hart.x[9], hart.f[1], hart.read_csr(0x340)) == (77, 7 << 8, 9, 5, 6)


def test_what_the_debugger_wrote_after_the_beginning() -> None:
    assert forward([LOAD_A1], [1], halts=[HaltWrites(0, {}, [(RAM[0], b"\1")])]).hart_at(1).x[11] == 1


@pytest.mark.parametrize("reason", [StartReason.PERIODIC, StartReason.EXTERNAL_TRIGGER])
def test_places_that_are_only_reported(reason: StartReason) -> None:
    assert forward([NOP, NOP], [1, (EventKind.SYNC, Start(reason)), 1]).hart_at(2).x[10] == 10


def test_what_happens_at_the_end_forgets_nothing() -> None:
    assert forward([NOP], [1, HALT]).hart_at(1).x[10] == 10


@pytest.mark.parametrize("word", [ECALL, EBREAK])
def test_a_call_of_an_environment_that_no_trap_shows(word: int) -> None:
    """Something else did what it asks, and nobody knows what that is."""
    hart = forward([word, NOP], [2]).hart_at(2)
    assert hart.x[9] is None and hart.memory.load(RAM[0], 8) is None


def test_a_semihosting_call() -> None:
    """The host sets a0; memory is written by some calls only."""
    for number, memory in ((4, 0), (6, None)):
        begin = BEGIN._replace(x=(*BEGIN.x[:10], number, *BEGIN.x[11:]))
        hart = forward([0x01F0_1013, EBREAK, 0x4070_5013, NOP], [4], begin=begin).hart_at(4)
        assert (hart.x[10], hart.x[9], hart.memory.load(RAM[0], 8)) == (None, 9, memory)


def test_translation() -> None:
    """From satp on nothing is known of memory, and stores may be anywhere; when it ends, nothing is known at first."""
    words = [STORE_A0, SET_SATP, STORE_A0, LOAD_A1, 0x1800_5073, LOAD_A1, STORE_A0, LOAD_A1]  # csrwi satp, 0
    begin = BEGIN._replace(x=(*BEGIN.x[:10], 8 << 60, *BEGIN.x[11:]), privilege=1, csrs={SATP: 0})
    found = forward(words, [8], machine_only=False, begin=begin)
    assert found.hart_at(1).memory.load(RAM[0], 8) == 8 << 60
    assert [found.hart_at(position).x[11] for position in (4, 6, 8)] == [None, None, 8 << 60]
    assert found.hart_at(5).x[10] == 8 << 60
    assert [found.is_translated(at, at + 1) for at in range(8)] == [False, False, True, True, True, False, False, False]


def test_another_mode_may_translate() -> None:
    """M-mode does not; what satp holds is not known here."""
    to_user, back = ProgramContext(prv=0), ProgramContext(prv=3)
    events: list[int | tuple[EventKind, Fact]] = [
        2, (EventKind.CONTEXT, ContextChange(back, to_user)), 2, (EventKind.TRAP, Trap(TrapKind.EXCEPTION, 8)),
        (EventKind.CONTEXT, ContextChange(to_user, back)), 3,
    ]  # fmt: skip
    words = [STORE_A0, MRET, STORE_A0, LOAD_A1, LOAD_A1, STORE_A0, LOAD_A1]
    found = forward(words, events, machine_only=False, begin=BEGIN._replace(csrs={MSTATUS: 0}))
    assert [found.hart_at(position).x[11] for position in (4, 5, 7)] == [None, None, 10]
    assert forward(words, events, begin=BEGIN._replace(csrs={MSTATUS: 0})).hart_at(4).x[11] == 10


def test_stores_to_unknown_addresses_are_noted_once() -> None:
    begin = BEGIN._replace(x=(0, *[None] * 31))
    found = forward([NOP, STORE_A0, NOP, STORE_A0], [4], begin=begin)
    found.hart_at(1), found.accesses(0), found.hart_at(3)
    assert list(found.unknown_stores) == [1, 3]


def test_what_is_computed_where_something_is_missing_is_not_believed() -> None:
    """Of a loss without a place only the end is known: from the synchronization before it on, anything may have run."""
    lost: tuple[EventKind, Fact] = (EventKind.NOTE, Loss(LossCause.MESSAGES_MISSING, (1, 2)))
    synced: tuple[EventKind, Fact] = (EventKind.SYNC, Start(StartReason.PERIODIC))
    li_a0 = 0x0070_0513
    found = forward([NOP, li_a0, NOP, NOP, li_a0, STORE_A0], [1, synced, 3, lost, 2])
    assert [found.hart_at(position).x[10] for position in range(7)] == [10, None, None, None, None, 7, 7]
    assert [found.hart_at(position).x[9] for position in range(7)] == [9, *[None] * 6]
    assert [found.hart_at(position).x[10] for position in (6, 3, 5, 2, 0)] == [7, None, 7, None, 10]


def test_of_two_traps_at_one_place_the_second_hit_in_a_handler() -> None:
    """Where that is, is not known: mepc is not the place of the first one."""
    traps: list[int | tuple[EventKind, Fact]] = [(EventKind.TRAP, Trap(TrapKind.INTERRUPT, 7))] * 2
    assert forward([NOP, NOP], [1, *traps[:1], 1]).hart_at(1).read_csr(MEPC) == BASE + 4
    assert forward([NOP, NOP], [1, *traps, 1]).hart_at(1).read_csr(MEPC) is None
