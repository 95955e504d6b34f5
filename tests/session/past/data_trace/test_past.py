"""What is known in a data trace: the accesses that Spike says qsort made, in traces with all of them, and with gaps."""

import random
from functools import cache

import pytest

from rvtrace_gdb.decode.etrace.options import Modes
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.instructions import ATOMIC, LOAD, STORE, MemoryAccess
from rvtrace_gdb.decode.reconstruction.facts import HartMachine
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.data_trace.past import DataTracePast
from rvtrace_gdb.session.past.past import AccessedBytes, NoWrite, Past, WantedAccess
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.session.proxy.backend import Hit, Watchpoint
from rvtrace_gdb.session.replay.watchpoints import ReplayWatchpoints
from rvtrace_gdb.support.errors import Cancelled
from tests.decode.etrace.data.test_history import accessed, decoded, trace
from tests.decode.etrace.encoder_vectors import image
from tests.session.rpc.questions.test_who_wrote import accesses
from tests.views.test_access_lines import history, program

FULL = Modes(data_full_address=True, data_full_data=True)


@cache
def past(*, missing: int = 0, reconstructed: bool = False) -> Past:
    """Of qsort. *missing*: how many data packets come before each that is lost. *reconstructed*: with registers."""
    stream = trace(FULL, keep=lambda number: not missing or number % missing != missing - 1)
    found, images = decoded(stream, FULL), ContextImages(image("qsort"))
    machine = HartMachine(64, ("I", "M", "A", "C"), ())
    return ReconstructedPast(found, images, HartFacts(machine)) if reconstructed else DataTracePast(found, images)


either_past = pytest.mark.parametrize("reconstructed", [False, True])


def overlapping(address: int, size: int, *, stores: bool, loads: bool) -> list[MemoryAccess]:
    """Spike's accesses to any of some bytes."""
    kinds = [STORE] * stores + [LOAD] * loads
    return [it for it in accessed() if it.kind in kinds and address - it.size < (it.address or 0) < address + size]


@either_past
def test_the_nearest_access_is_spikes(reconstructed: bool) -> None:
    rng, it = random.Random(1), past(reconstructed=reconstructed)
    triggered = 0
    for _ in range(60):
        target = rng.choice(accessed())
        address, size = (target.address or 0) + rng.randint(-3, 3), rng.choice((1, 2, 4, 8, 64))
        stores, loads = rng.choice(((True, False), (False, True), (True, True)))
        position = rng.randrange(len(it.history) + 1)
        wanted = overlapping(address, size, stores=stores, loads=loads)
        positions = [access.position or 0 for access in wanted]
        ahead = min((at for at in positions if at >= position), default=None)
        behind = max((at for at in positions if at < position), default=None)
        for forward, expected in ((True, ahead), (False, behind)):
            found = it.nearest_access(position, WantedAccess(address, size, forward, stores, loads))
            assert (found and found.position) == expected
            made = next((access for access in wanted if access.position == expected), None)
            triggered += made is not None
            assert found is None or (made and found.address == max(made.address or 0, address))
    assert triggered > 50
    assert not it.unknown_accesses(0, len(it.history), loads=True)


@either_past
def test_instructions_whose_packets_are_lost_access_unknown_bytes(reconstructed: bool) -> None:
    """All of them are told, of each kind; others whose place is not certain are, too. Registers may tell some."""
    it = past(missing=2000, reconstructed=reconstructed)
    lost = [access for number, access in enumerate(accessed()) if number % 2000 == 1999]
    unknown = {loads: it.unknown_accesses(0, len(it.history), loads=loads) for loads in (False, True)}
    stores = {access.position for access in accessed() if access.kind == STORE}
    assert set(unknown[False]) == set(unknown[True]) & stores
    assert {access.position for access in lost} <= set(unknown[True]) or reconstructed
    assert 0 < len(unknown[True]) < len(accessed()) / 2
    first = unknown[True][0]
    assert it.unknown_accesses(first, first + 1, loads=True) == [first] != it.unknown_accesses(0, first, loads=True)


def test_a_trace_without_addresses_has_none() -> None:
    modes = Modes(data_no_address=True)
    it = DataTracePast(decoded(trace(modes), modes), ContextImages(image("qsort")))
    assert list(it.unknown_accesses(0, 5000, loads=True)) == [
        access.position for access in accessed() if (access.position or 0) < 5000
    ]
    with pytest.raises(NoTrace, match="no store with an address"):
        it.memory_writer(5000, 0x8000_1B00, 4)


@either_past
def test_memory_is_known_where_it_is_accessed(reconstructed: bool) -> None:
    """Before the instruction that loads it, and after that and the one that stores it; nothing in between."""
    it, rng = past(reconstructed=reconstructed), random.Random(2)
    places = range(0x8000_0000, 0x8000_4000)  # the program's sections, as readelf says
    within = [access for access in accessed() if access.address in places]
    assert {access.kind for access in within} == {LOAD, STORE}
    for access in rng.sample(within, 200):
        position, address, size, value = access.position or 0, access.address or 0, access.size, access.value or 0
        after = it.memory(position + 1, address - 1, size + 2)
        assert after[1 : 1 + size] == list(value.to_bytes(size, "little"))
        if access.kind == LOAD:
            assert it.memory(position, address, size) == after[1 : 1 + size]
    stack = next(access for access in accessed() if access.kind == STORE and (access.address or 0) > 0x8002_0000)
    assert it.memory((stack.position or 0) + 1, stack.address or 0, 1) == [None]


def test_nothing_else_is_known() -> None:
    it = DataTracePast(accesses(), ContextImages(program()))
    assert dict(it.registers(1)) == {"pc": 0x8000_0004} and dict(it.registers(3)) == {}
    assert it.traced_registers() is None and not it.values_stay_known(0, ["sp"]) and it.integers(0) == {0: 0}
    assert it.memory(0, 0x8000_0100, 2) == [None, None] == it.memory(3, 0x100, 2)


def test_what_a_store_without_a_value_leaves_is_unknown() -> None:
    made = history(
        MemoryAccess(STORE, 4, "", 0x8000_0100, None, position=0),
        MemoryAccess(ATOMIC, 4, "add", 0x8000_0104, 1, position=1),
        MemoryAccess(LOAD, 4, "", 0x8000_0108, 7, position=2, failed=True),
    )
    it = DataTracePast(made, ContextImages(program()))
    assert [it.memory(at, 0x8000_0100, 12) for at in range(4)] == [[None] * 12] * 4
    found = it.nearest_access(3, WantedAccess(0x8000_0100, 16, forward=False, stores=True, loads=False))
    assert found == AccessedBytes(1, 0x8000_0104)


def test_stores_that_the_trace_lacks_are_counted() -> None:
    it = past(missing=300)
    lost = [access for number, access in enumerate(accessed()) if number % 300 == 299 and access.kind == STORE]
    stored = next(access for access in accessed() if access.kind == STORE)
    position, address = stored.position or 0, stored.address or 0
    beyond = len(it.history)
    found = it.memory_writer(position + 1, address, 1)
    assert not isinstance(found, NoWrite) and found.position == position and found.doubts == ()
    nobody = it.memory_writer(beyond, 0x10, 1)
    assert isinstance(nobody, NoWrite)
    assert nobody.notes == (f"{len(lost)} stores that ran before are not in the trace.",) and len(lost) > 1


def test_an_examination_goes_on_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    it = DataTracePast(decoded(trace(FULL), FULL), ContextImages(image("qsort")))

    def cancel(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        it.prepare(cancel)
    it.prepare()
    assert it.unknown_accesses(0, len(it.history), loads=True) == []


def test_a_debugger_that_has_no_values_to_compare_is_stopped_behind_the_store() -> None:
    """It goes on if what it read last and what it reads now are both not known: see `Past.memory`."""
    it = past()
    stack = next(access for access in accessed() if access.kind == STORE and (access.address or 0) > 0x8002_0000)
    position, point = stack.position or 0, Watchpoint("watch", stack.address or 0, stack.size)
    read = point._replace(kind="awatch")
    watching, length = ReplayWatchpoints(it), len(it.history)
    hit = watching.nearest(position, 1, frozenset([point]))
    assert hit == Hit(position, "watch", point.address)
    stopped = watching.passed_over(hit, 1, frozenset([point]))
    assert stopped is not None and stopped[0] == position + 1
    assert f"{position + 1} stores to the watched memory, at {point.address:#x}" in stopped[1]
    assert watching.passed_over(hit, 1, frozenset([point, read])) is None
    back = Hit(position + 1, "watch", point.address)
    assert watching.passed_over(back, -1, frozenset([point])) == (position, stopped[1])
    known = next(
        access
        for access in accessed()
        if access.kind == STORE
        and (access.address or 0) < 0x8000_4000
        and None in it.memory(access.position or 0, access.address or 0, access.size)
    )
    position, point = known.position or 0, Watchpoint("watch", known.address or 0, known.size)
    watching.nearest(length, -1, frozenset([point]))
    back = Hit(position + 1, "watch", point.address)
    assert watching.passed_over(Hit(position, "watch", point.address), 1, frozenset([point])) is None
    assert watching.passed_over(back, -1, frozenset([point])) is not None
    watching.reported(Hit(position, "watch", point.address), 1, frozenset([point]))  # now it has the value
    assert watching.passed_over(back, -1, frozenset([point])) is None
