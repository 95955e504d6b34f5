"""Who wrote a register or memory last, in tandem traces: against Spike's logs of the same programs."""

import random
from itertools import dropwhile
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import FullRegister, StateInitialization
from rvtrace_gdb.session.past.past import INSTRUCTION, OUTSIDE, PC, RESET, PastWrite
from rvtrace_gdb.session.past.tandem.writers import LastWriters
from tests.decode.tandem.corpus import GOLDEN, decoded, golden_steps, parameters_of, program_of, trace_bytes

PARTS = {"piccolo_rv32mi-p-breakpoint", "piccolo_rv32ua-p-lrsc", "flute_rv64ua-p-lrsc"}
"""They and Spike do not run the same to the end: see test_tandem_corpus."""
OF_TRAPS = {0x100, 0x141, 0x142, 0x143, 0x300, 0x341, 0x342, 0x343}
SHARING = {0x001, 0x002, 0x003, 0x104, 0x144, 0x304, 0x344, 0x309}
"""CSRs that have bits in common with others, and one that Spike lists beside them."""
ABSENT = {0x310, 0x7A5}
BOOT = {5, 10, 11}
QUESTIONS = 40


class Wrote(NamedTuple):
    """What a step of Spike's wrote, and at which position of the history."""

    position: int
    values: dict[tuple[str, int], int]


def spikes(name: str, tandem: DecodedTandem) -> list[Wrote]:
    """Every instruction that retired from the program's entry on, of the log alone but for where that is."""
    entry = program_of(name).entry
    position = next(i for i, pc in enumerate(tandem.history.pcs()) if pc == entry)
    found = []
    for step in dropwhile(lambda step: step.pc != entry, golden_steps(name)):
        if step.cause is None:
            kinds = (("x", step.x), ("f", step.f), ("csr", step.csrs))
            values = {(kind, number): value for kind, written in kinds for number, value in written.items()}
            data = ((address + at, byte) for address, bytes_ in step.stores for at, byte in enumerate(bytes_))
            found.append(Wrote(position, values | {("memory", address): byte for address, byte in data}))
            position += 1
    return found[: len(tandem.history) - found[0].position]


def writer_of(wrote: list[Wrote], place: tuple[str, int], size: int, position: int) -> Wrote | None:
    """The model: go back, step by step."""
    kind, first = place
    wanted = {(kind, first + i) for i in range(size)}
    return next((it for it in reversed(wrote) if it.position < position and wanted & it.values.keys()), None)


def asked(writers: LastWriters, kind: str, number: int, size: int) -> PastWrite | None:
    if kind == "memory":
        return writers.memory(number, size)
    return writers.register({"x": 0x1000, "f": 0x1020, "csr": 0}[kind] + number)


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in PARTS and "-v-" not in name])
def test_the_last_writer_is_the_one_in_spikes_log(name: str) -> None:
    tandem = decoded(name)
    wrote = spikes(name, tandem)
    left_out = OF_TRAPS | SHARING | ABSENT
    places = sorted({it for step in wrote for it in step.values if it[0] != "csr" or it[1] not in left_out})
    choose = random.Random(name)
    for _ in range(QUESTIONS):
        kind, number = choose.choice(places)
        size = choose.choice((1, 2, 4, 8)) if kind == "memory" else 1
        position = choose.randrange(wrote[0].position, len(tandem.history) + 1)
        found = asked(LastWriters(tandem, position), kind, number, size)
        expected = writer_of(wrote, (kind, number), size, position)
        if expected is None:
            booted = found is not None and found.position < wrote[0].position
            assert found is None or (booted and kind == "x" and number in BOOT), (kind, number, position)
            continue
        assert found is not None and found.kind == INSTRUCTION, (kind, number, position)
        assert (found.position, found.doubts) == (expected.position, ()), (kind, number, position)
        if kind == "memory":
            said = dict(expected.values)
            assert found.store is not None and found.window is not None
            begin, _, after = found.window
            assert all(after[at - begin] == said["memory", at] for _, at in said if 0 <= at - begin < len(after))
        else:
            assert found.new == expected.values[kind, number]
            before = writer_of(wrote, (kind, number), 1, expected.position)
            assert before is None or found.old == before.values[kind, number]


def test_addresses_are_those_of_the_mode_there() -> None:
    """Each store of a program with page tables, asked for at the next instruction, by the address in Spike's log."""
    tandem = decoded("flute_rv64ui-v-add")
    trapped = {tandem.position_of(trap.group) for trap in tandem.index.traps}
    count = 0
    for step in spikes("flute_rv64ui-v-add", tandem):
        stored_to = [address for (kind, address) in step.values if kind == "memory"]
        if stored_to and step.position + 1 not in trapped:
            found = LastWriters(tandem, step.position + 1).memory(min(stored_to), len(stored_to))
            assert found is not None and found.position == step.position and found.store is not None
            assert found.store.address == min(stored_to)
            count += 1
    assert count > 500


def test_what_writes_a_register_that_shares_bits_is_named() -> None:
    tandem = decoded("flute_rv64si-p-scall")
    told = [LastWriters(tandem, position).register(0x100) for position in range(len(tandem.history) + 1)]
    others = [it for it in told if it is not None and it.reported is not None]
    assert others and {it.reported for it in others} == {0x300}
    own = next(it for it in told if it is not None and it.reported is None)
    assert own.group is not None and 0x100 in tandem.changed(own.group)


def test_pc_is_written_by_the_instruction_before() -> None:
    tandem = decoded("piccolo_rv32-hello")
    found = LastWriters(tandem, 100).register(PC)
    assert found is not None and found.position == 99
    assert (found.old, found.new) == (tandem.history.pc(99), tandem.history.pc(100))


def test_the_reset_sets_the_privilege_mode() -> None:
    found = LastWriters(decoded("piccolo_rv32-hello"), 5).register(0x1_0000)
    assert found is not None and (found.kind, found.new) == (RESET, 3)


def test_what_a_debugger_writes_is_from_outside() -> None:
    name = "piccolo_rv32-hello"
    whole, at = trace_bytes(name), decoded(name).trace.offsets[500]
    written = bytes.fromhex("01 0b 04 0a 10 78 56 34 12 02")  # a state initialization: a0
    tandem = decode(whole[:at] + written + whole[at:], program_of(name), parameters_of(name))
    group = tandem.trace.group(500)
    assert [type(it) for it in group.elements] == [StateInitialization, FullRegister]
    found = LastWriters(tandem, tandem.position_of(500)).register(0x100A)
    assert found is not None and (found.kind, found.group, found.new) == (OUTSIDE, 500, 0x12345678)


def test_after_a_loss_the_last_writer_need_not_be_the_last() -> None:
    name = "piccolo_rv32-hello"
    whole, offsets = trace_bytes(name), decoded(name).trace.offsets
    tandem = decode(whole[: offsets[1000]] + whole[offsets[1010] :], program_of(name), parameters_of(name))
    (gap,) = tandem.history.gap_positions
    before, behind = (LastWriters(tandem, at).register(0x1002) for at in (gap - 1, gap + 1))
    assert before is not None and behind is not None and before.position == behind.position
    assert before.doubts == () and len(behind.doubts) == 1 and "is missing since" in behind.doubts[0]
    pc = LastWriters(tandem, gap + 1).register(PC)
    assert pc is not None and pc.position == gap - 1 and "is missing since" in pc.doubts[0]
    (stored_before,) = [store for _, store in tandem.stored(989)]
    found = LastWriters(tandem, gap + 1).memory(stored_before.address, 1)
    assert found is not None and found.group == 989 and any("is missing since" in doubt for doubt in found.doubts)


def test_a_reset_takes_what_was_written() -> None:
    name = "flute_rv64ui-p-add"
    tandem = decode(2 * trace_bytes(name), program_of(name), parameters_of(name))
    reset = tandem.index.resets[-1]
    assert reset > 0
    found = LastWriters(tandem, tandem.position_of(reset)).register(0x1000 + 14)
    assert found is not None and found.group is not None and found.group < reset
    assert found.doubts == (
        f"The hart was reset since, by group {reset + 1}: its value from then on is not known.",
    )
