"""Where watchpoints trigger in a history with memory.

What is expected comes from the log Spike wrote of the same run, or from the trace's own elements one by one, searched
one by one; in the traces made by hand it is what they are made for.
"""

import random
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.history import Path as Instructions
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import AdditionalState, Instr, MemoryOp, MemoryRequest, StateId
from rvtrace_gdb.session.past.choice import new_past
from rvtrace_gdb.session.past.tandem.past import TandemPast
from rvtrace_gdb.session.proxy.backend import Hit, Watchpoint
from rvtrace_gdb.session.replay.watchpoints import ReplayWatchpoints
from rvtrace_gdb.session.selected_history import SelectedHistory
from tests.decode.tandem.corpus import decoded
from tests.decode.tandem.groups import INIT, MRET, NOP, RESET, RV32, RV64, Line, csr, pc, priv, store, sw, x
from tests.decode.tandem.test_memory import SV39, with_tables
from tests.session.spike_program import Spiked

LW, FLW, LR, AMOADD = Instr(0x0003_2283, 4), Instr(0x0003_2087, 4), Instr(0x1003_23AF, 4), Instr(0x0053_23AF, 4)
MSTATUS = 0x300


def address(value: int) -> AdditionalState:
    return AdditionalState(StateId.EFFECTIVE_ADDRESS, value)


def only(kind: str, address: int, size: int) -> frozenset[Watchpoint]:
    return frozenset([Watchpoint(kind, address, size)])


def watching_in(found: DecodedTandem) -> ReplayWatchpoints:
    return ReplayWatchpoints(TandemPast(found, ContextImages(Image(found.trace.parameters.xlen))))


def all_hits(found: DecodedTandem, watchpoints: frozenset[Watchpoint], direction: int) -> list[int]:
    """The positions of the instructions that trigger, each stepped over, in the order in which they are met."""
    watching, length = watching_in(found), len(found.history)
    position = 0 if direction > 0 else length
    by: list[int] = []
    while (hit := watching.nearest(position, direction, watchpoints)) is not None:
        assert (hit.position - position) * direction >= 0
        position = hit.position + direction
        by.append(hit.position if direction > 0 else position)
    return by


@cache
def spiked(march: str, folder: Path) -> tuple[Spiked, DecodedTandem]:
    it = Spiked(folder, march)
    return it, decode(it.trace, it.image, it.parameters)


@pytest.fixture(scope="module", params=["rv64imac_zicsr", "rv32imac_zicsr"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Spiked, DecodedTandem]:
    return spiked(request.param, tmp_path_factory.mktemp("spiked"))


def test_both_ways_as_the_model_has_it(ran: tuple[Spiked, DecodedTandem]) -> None:
    it, found = ran
    assert len(found.history) == len(it.steps)
    rng = random.Random(1)
    touched = sorted({access.address for step in it.steps for access in step.accesses})
    kinds = {"watch": 0, "rwatch": 0, "awatch": 0}
    for _ in range(120):
        kind, size = rng.choice(list(kinds)), rng.choice((1, 1, 2, 3, 4, 8, 16, 100))
        at = rng.choice(touched) + rng.randint(-4, 4)
        expected = [i for i, step in enumerate(it.steps) if step.touches(kind, at, size)]
        kinds[kind] += len(expected)
        assert all_hits(found, only(kind, at, size), 1) == expected, (kind, hex(at), size)
        assert all_hits(found, only(kind, at, size), -1) == expected[::-1]
    assert min(kinds.values()) > 200


@pytest.mark.parametrize("name", ["flute_rv64ui-v-add", "piccolo_rv32-hello", "flute_rv64-irq"])
def test_stores_of_real_cores(name: str) -> None:
    """Their effective addresses, in whatever mode and address space; traps, interrupts and gaps are in between."""
    found = decoded(name)
    made: list[tuple[int, int, int]] = []  # position, address, size
    sizes = {StateId.STORE_DATA_8: 1, StateId.STORE_DATA_16: 2, StateId.STORE_DATA_32: 4, StateId.STORE_DATA_64: 8}
    for position in range(len(found.history)):
        elements = found.trace.group(found.group_of(position)).elements
        states = {e.identifier: e.value for e in elements if isinstance(e, AdditionalState)}
        size = next((size for data, size in sizes.items() if data in states), 0)
        if size and found.history.pc(position) >= 0:
            made.append((position, states[StateId.EFFECTIVE_ADDRESS], size))
    addresses = sorted({at for _, at, _ in made})
    assert len(made) > 10
    for at in addresses[:: max(len(addresses) // 25, 1)]:
        expected = [position for position, there, size in made if there < at + 4 and at < there + size]
        forward, back = (all_hits(found, only("watch", at, 4), direction) for direction in (1, -1))
        if name == "flute_rv64ui-v-add":  # the same memory has other addresses in other modes: see below
            assert set(expected) <= set(forward) & set(back)
        else:
            assert forward == expected == back[::-1]


def test_loads_and_atomics() -> None:
    line = Line()
    line.add(RESET)
    line(x(5, 1), address(0x100), instr=LW)
    line(address(0x100), instr=Instr(LW.word & ~0xF80, 4))  # lw x0
    line(csr(MSTATUS, 3 << 13), address(0x100), instr=FLW)
    line(x(7, 1), address(0x100), instr=LR)
    line(x(7, 1), *store(0x100, 4, 5), instr=AMOADD)
    line(x(7, 1), *store(0x100, 4, 5), instr=Instr(0x1853_23AF, 4))  # sc.w, failed
    line(*store(0x102, 1, 5), instr=Instr(0x0053_0023, 4))
    found = line.decoded()
    first = 0
    assert all_hits(found, only("rwatch", 0x103, 1), 1) == [first + n for n in (0, 1, 2, 3, 4)]
    assert all_hits(found, only("watch", 0x102, 2), 1) == [first + n for n in (4, 6)]
    assert all_hits(found, only("awatch", 0x103, 1), -1) == [first + n for n in (4, 3, 2, 1, 0)]
    hit = watching_in(found).nearest(0, 1, only("watch", 0x0FE, 8))
    assert hit == Hit(4, "watch", 0x100)
    hit = watching_in(found).nearest(7, -1, only("watch", 0x0FE, 8))
    assert hit == Hit(7, "watch", 0x102)


def test_the_same_memory_under_another_address() -> None:
    """Page tables map 0x4000 to 0x9000."""
    line = with_tables(RV64, SV39)
    first = line(store(0x4010, 4, 1), instr=sw())
    load = line(x(5, 1), address(0x4010), instr=LW)
    line(priv(3), csr(MSTATUS, 0), instr=MRET, to=0x4000)
    physical = line(store(0x9010, 4, 2), instr=sw())
    seen = line(x(5, 1), address(0x9010), instr=LW)
    found = line.decoded()
    at = {group: found.position_of(group) for group in (first, load, physical, seen)}
    watching, length = watching_in(found), len(found.history)
    hit = watching.nearest(length, -1, only("watch", 0x9012, 1))
    assert hit == Hit(at[physical] + 1, "watch", 0x9012)
    hit = watching.nearest(at[physical], -1, only("watch", 0x9012, 1))
    assert hit == Hit(at[first] + 1, "watch", 0x9012)
    hit = watching.nearest(at[load], 1, only("watch", 0x4012, 1))
    assert hit == Hit(at[physical], "watch", 0x4012)
    hit = watching.nearest(at[physical], 1, only("rwatch", 0x4012, 1))
    assert hit is None  # in M-mode 0x4012 is another byte
    hit = watching.nearest(at[first], 1, only("rwatch", 0x4012, 1))
    assert hit == Hit(at[load], "rwatch", 0x4012)
    hit = watching.nearest(at[load] + 1, 1, only("rwatch", 0x4012, 1))
    assert hit == Hit(at[seen], "rwatch", 0x4012)


def test_what_no_instruction_stored_comes_with_the_step_over_it() -> None:
    """A debugger's write, behind a gap, too; what was there before the first instruction cannot be stepped over."""
    line = Line()
    line.add(RESET)
    line.add(INIT, MemoryRequest(0x100, MemoryOp.STORE, 2, 1))
    line()
    line()
    line.add(INIT, MemoryRequest(0x100, MemoryOp.STORE, 2, 2))
    line()
    line.pc += 0x100
    line(store(0x100, 4, 3), instr=sw())
    line()
    found = line.decoded()
    assert found.history.gap_positions == [3]
    assert all_hits(found, only("watch", 0x100, 4), 1) == [1, 4]
    assert all_hits(found, only("watch", 0x100, 4), -1) == [4, 1]


def test_a_change_in_a_gap_comes_with_the_step_over_it() -> None:
    """A trap somewhere else, with a store of nobody's: no instruction retired."""
    line = Line()
    line.add(RESET)
    line()
    line()
    trap = priv(3), csr(0x342, 2), csr(0x341, 0x7000), pc(0x9000)
    line.add(*trap, NOP, MemoryRequest(0x100, MemoryOp.STORE, 2, 1))
    line(to=0x9004)
    line()
    found = line.decoded()
    assert found.history.gap_positions == [2] and len(found.history) == 5
    watching = watching_in(found)
    watched = only("watch", 0x100, 4)
    assert watching.nearest(0, 1, watched) == Hit(1, "watch", 0x100)
    assert watching.nearest(5, -1, watched) == Hit(3, "watch", 0x100) == watching.nearest(3, -1, watched)
    assert watching.nearest(3, 1, watched) is None is watching.nearest(1, -1, watched)
    assert watching.missed(0, 1, watched) == [] == watching.missed(5, 3, watched)
    (told,) = watching.missed(5, 1, watched)
    assert "in the gap" in told and watching.missed(1, 5, watched) == []


def test_one_instruction_that_triggers_several() -> None:
    """gdb hears of one address: of watchpoints that do not have it after its step, one after the other."""
    line = Line()
    line.add(RESET)
    line()
    line(store(0x100, 8, 1), instr=Instr(0x0053_3023, 4))
    line(store(0x110, 4, 1), instr=sw())
    line()
    watching = watching_in(line.decoded())
    low, high, other = (Watchpoint("watch", address, 4) for address in (0x100, 0x104, 0x110))
    both = Watchpoint("awatch", 0x102, 4)
    some = frozenset([low, high, other])
    first = watching.nearest(0, 1, some)
    assert first is not None and first.position == 1
    watching.reported(first, 1, some)
    watching.stepped(1, 2, 1)
    second = watching.nearest(2, 1, some)
    assert second is not None and second.position == 2 and {first.address, second.address} == {0x100, 0x104}
    watching.reported(second, 1, some)
    assert not watching.stays(2, 1, some)
    assert watching.nearest(2, 1, some) == Hit(2, "watch", 0x110)
    watching.reported(first, 1, some)
    watching.stepped(1, 2, 1)
    assert watching.nearest(2, 1, frozenset([other])) == Hit(2, "watch", 0x110)  # it is there no longer
    assert watching.nearest(2, -1, some) == first._replace(position=2)
    watching.reported(second, 1, some)
    assert watching.stays(2, 1, frozenset())
    assert not watching.stays(2, 1, frozenset())
    found = watching.nearest(0, 1, frozenset([low, both]))
    assert found is not None and found.address in (0x102, 0x103)  # of both
    watching.reported(found, 1, frozenset([low, both]))
    watching.stepped(1, 2, 1)
    assert watching.nearest(2, 1, frozenset([low, both])) is None


def test_all_that_one_instruction_triggers_in_one_stop(ran: tuple[Spiked, DecodedTandem]) -> None:
    """For a gdb that takes several: an address in each that the model's instruction accessed, of what it accessed."""
    it, found = ran
    rng, watching, several = random.Random(2), watching_in(found), 0
    watching.takes_several = True
    for _ in range(8):
        step = rng.choice([step for step in it.steps if step.accesses])
        near = [step.accesses[0].address + rng.randint(-2, 6) for _ in range(6)]
        kinds = ("watch", "rwatch", "awatch")
        some = frozenset(Watchpoint(rng.choice(kinds), at, rng.choice((1, 2, 4))) for at in near)
        by = [{point for point in some if step.touches(*point)} for step in it.steps]
        for direction in (1, -1):
            expected = [i for i, triggered in enumerate(by) if triggered][::direction]
            position = 0 if direction > 0 else len(found.history)
            while (hit := watching.nearest(position, direction, some)) is not None:
                made = hit.position if direction > 0 else hit.position - 1
                assert made == expected.pop(0)
                for point in by[made]:
                    assert any(point.address <= byte < point.address + point.size for byte in hit.addresses)
                for kind, byte in ((hit.kind, hit.address), *hit.others):
                    assert it.steps[made].touches(kind, byte, 1)
                several += len(hit.addresses) > 1
                watching.reported(hit, direction, some)
                position = hit.position + direction
                watching.stepped(hit.position, position, direction)
            assert not expected
    assert several > 20


def test_a_store_that_cannot_be_compared_is_not_passed_with_one_that_can() -> None:
    """Of two that one store triggers, gdb can read the other one alone, and that one does not change."""
    known, unread = Watchpoint("watch", 0x104, 4), Watchpoint("watch", 0x0FC, 8)
    for value, stops in ((0, True), (5, False)):
        line = Line()
        line.add(RESET)
        line(store(0x104, 4, value), instr=sw())
        line(store(0x100, 8, 1), instr=Instr(0x0053_3023, 4))
        line()
        watching, both = watching_in(line.decoded()), frozenset([known, unread])
        watching.takes_several = True
        hit = watching.nearest(1, 1, both)
        assert hit is not None and hit.position == 1 and len(hit.addresses) == 2
        stopped = watching.passed_over(hit, 1, both)
        assert (stopped is not None) == stops
        assert stopped is None or (stopped[0] == 2 and "2 stores to the watched memory, at 0x100" in stopped[1])


def test_what_cannot_be_seen_is_told_once() -> None:
    line = Line()
    line.add(RESET)
    line()
    line(instr=sw())
    line(instr=LW)
    line(instr=sw())
    line()
    watching = watching_in(line.decoded())
    watched, read = only("watch", 0x100, 4), only("rwatch", 0x100, 4)
    assert watching.missed(0, 1, watched) == [] and watching.missed(0, 0, watched) == ()
    assert watching.missed(0, 5, frozenset()) == ()
    (told,) = watching.missed(5, 0, watched)
    assert "the address of the access at 2, and at 1 more, is not known:" in told
    assert watching.missed(0, 5, watched) == []
    (told,) = watching_in(line.decoded()).missed(2, 3, read)
    assert "access at 3 is not known:" in told


def test_stores_nobody_knows_where_are_told() -> None:
    line = with_tables(RV64, SV39)
    at = line(store(0x7000, 4, 2), instr=sw())
    line()
    found = line.decoded()
    position = found.position_of(at)
    watching = watching_in(found)
    assert watching.missed(0, position, only("watch", 0x100, 4)) == []
    (told,) = watching.missed(len(found.history), position, only("watch", 0x100, 4))
    assert "page tables" in told
    assert watching.missed(0, len(found.history), only("watch", 0x100, 4)) == []


def test_without_a_shadow_nothing_triggers() -> None:
    line = Line()
    line(store(0x100, 4, 1), instr=sw())
    found = line.decoded(RV32).history
    builder = HistoryBuilder()
    builder.append(Instructions([tuple(found.pcs())]))
    past = new_past(SelectedHistory(builder.finish(found.accounting), ContextImages(Image(64)), 0, []))
    assert ReplayWatchpoints(past).nearest(0, 1, only("watch", 0x100, 4)) is None
    assert ReplayWatchpoints(past).missed(0, 1, only("watch", 0x100, 4)) == ()
