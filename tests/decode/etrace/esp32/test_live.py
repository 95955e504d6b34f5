"""The trace in the memory of a live chip, and what of an encoder is told."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.esp32.readout import read_core_dump, read_snapshot
from rvtrace_gdb.decode.etrace.esp32.snapshot import (
    CHIPS,
    BadSnapshot,
    PacketFormat,
    Snapshot,
    SnapshotCore,
    TraceRing,
    may_be_code,
    options_of,
    parameters_of,
    ring_of,
)
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Parameters, SupportLayout
from rvtrace_gdb.support.errors import RvtraceError
from tests.decode.etrace.esp32 import images as made
from tests.decode.etrace.esp32.images import Described
from tests.helpers.amounts import some_of

PT10 = Described(made.stream("pt10"), head=len(made.stream("pt10")), state=made.STOPPED, mode=made.LINEAR)
ET20 = Described(made.stream("et20"), 4368, 1, made.STOPPED, packets=made.ET20, address=0x4083_0000)


def snapshot(content: dict[int, bytes], changes: list[dict[int, bytes]] | None = None) -> Snapshot:
    """What is read from a memory; *changes* are made to it after each batch, one at a time."""
    reading = read_snapshot(made.ROOT)
    batch = next(reading)
    pending = list(changes or [])
    while True:
        answer = [made.read(content, address, size) for address, size in batch]
        content |= pending.pop(0) if pending else {}
        try:
            batch = reading.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


def test_memory_says_what_a_core_dump_says() -> None:
    cores = [PT10, ET20]
    dumped = read_core_dump(made.elf_core(cores, made.note(cores, [2, 3], reason=1))).snapshot
    assert snapshot(made.memory(cores)) == dumped


def test_a_snapshot_that_changes_is_read_again() -> None:
    """The firmware stops and starts again between two batches: the pieces would not fit."""
    old = Described(bytes(14) + b"\x01" * 50, 64, state=made.STOPPED)
    new = Described(bytes(14) + b"\x02" * 50, 64, state=made.STOPPED)
    content = made.memory([old])
    (core,) = snapshot(content, [{}, {}, made.memory([new], sequence=8)]).cores
    assert core.data == new.buffer


def test_while_the_firmware_changes_it_there_is_nothing_to_read() -> None:
    with pytest.raises(BadSnapshot, match="the firmware is changing it"):
        snapshot(made.memory([PT10], sequence=7))


def test_where_a_running_trace_ends_its_encoder_says() -> None:
    """The firmware writes head_offset only when it stops: head_valid is 0 until then."""
    running = replace(PT10, state=made.CAPTURING, head_valid=0, fifo_empty=0, overflow=1)
    base = CHIPS[made.C6].encoders[0]
    registers = {base: made.encoder_registers(running, current=running.address + 4000)}
    (core,) = snapshot(made.memory([replace(running, head=0)], registers=registers)).cores
    assert (core.head_valid, core.head_offset, core.fifo_empty, core.fifo_overflow) == (True, 4000, False, True)
    assert ring_of(core) == TraceRing(running.buffer[:4000], False, 0)


def test_the_second_core_has_an_encoder_of_its_own() -> None:
    first = replace(PT10, state=made.CAPTURING, head_valid=0)
    second = replace(ET20, state=made.CAPTURING, head_valid=0)
    bases = CHIPS[made.P4].encoders
    registers = {
        bases[0]: made.encoder_registers(first, current=first.address + 100),
        bases[1]: made.encoder_registers(second, current=second.address + 200),
    }
    cores = snapshot(made.memory([first, second], target=made.P4, registers=registers)).cores
    assert [core.head_offset for core in cores] == [100, 200]


@pytest.mark.parametrize("registers", [{}, {0x600C_0000: made.encoder_registers(replace(PT10, address=0x4084_0000))}])
def test_where_a_running_trace_ends_may_not_be_known(registers: dict[int, bytes]) -> None:
    """Registers that cannot be read, or that are set up for another buffer."""
    running = replace(PT10, state=made.CAPTURING, head_valid=0)
    (core,) = snapshot(made.memory([running], registers=registers)).cores
    with pytest.raises(BadSnapshot, match=r"core 0: it was being traced .* where its trace ends is not known"):
        ring_of(core)


def test_a_chip_that_runs_on_is_not_read() -> None:
    running = replace(PT10, state=made.CAPTURING, head_valid=0)
    base = CHIPS[made.C6].encoders[0]
    content = made.memory([running], registers={base: made.encoder_registers(running, current=running.address + 100)})
    later = {base: made.encoder_registers(running, current=running.address + 140)}
    with pytest.raises(BadSnapshot, match="stop the program first"):
        snapshot(content, [{}, {}, later])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"magic": bytes(4)}, "there is no trace snapshot .*has the firmware not started yet"),
        ({"major": 3}, "ABI 3.0, this rvtrace knows ABI 1"),
    ],
)
def test_memory_that_is_no_snapshot(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSnapshot, match=says):
        snapshot(made.memory([PT10], **change))


def test_memory_that_is_not_there() -> None:
    content = made.memory([PT10])
    del content[PT10.address]
    with pytest.raises(BadSnapshot, match="no 8740 bytes of memory at 0x40810000"):
        snapshot(content)


def test_a_buffer_larger_than_any_memory_is_not_asked_for() -> None:
    content = made.memory([PT10])
    table = bytearray(content[made.TABLE])
    table[4:8] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(BadSnapshot, match="2147483648 bytes"):
        snapshot(content | {made.TABLE: bytes(table)})


def core_of(buffer: bytes, head: int, *, mode: int = made.LOOP) -> SnapshotCore:
    """A core that was stopped, with this buffer."""
    (core,) = snapshot(made.memory([Described(buffer, head, state=made.STOPPED, mode=mode)])).cores
    return core


def test_a_ring_in_the_order_of_time() -> None:
    """esp_riscv_trace.c clears the buffer before each trace: what is not 0 behind the head was written a lap before."""
    assert ring_of(core_of(b"newest old", 6)) == TraceRing(b" oldnewest", True, 4)
    assert ring_of(core_of(b"newest\0\0\0\0", 6)) == TraceRing(b"newest", False, 0)
    assert ring_of(core_of(b"newest old", 6, mode=made.LINEAR)) == TraceRing(b"newest", False, 0)
    assert ring_of(core_of(b"newest old", 0)) == TraceRing(b"newest old", True, 10)
    assert ring_of(core_of(b"newest old", 10)) == TraceRing(b"newest old", True, 0)
    assert ring_of(core_of(b"newest old", 10, mode=made.LINEAR)) == TraceRing(b"newest old", False, 0)


def test_a_head_outside_of_the_buffer() -> None:
    with pytest.raises(BadSnapshot, match="it ends 11 bytes into a buffer of 10"):
        ring_of(core_of(b"newest old", 11))


def test_what_an_encoder_is() -> None:
    """The widths of Espressif's formats; ET20 with the addresses it was set to, the others as its firmware says."""
    cores = [replace(PT10, address_mode=made.FULL), replace(ET20, address_mode=made.DELTA)]
    found = snapshot(made.memory(cores, params=made.parameters(ecause=6)))
    first, second = (options_of(found, core) for core in found.cores)
    expected = Parameters(iaddress_width=32, iaddress_lsb=1, privilege_width=1, ecause_width=6, f0s_width=0)
    assert first.parameters == second.parameters == expected
    assert (first.dialect, first.support, first.modes) == (Dialect.PT10, SupportLayout.PT10, Modes(full_address=True))
    assert (second.dialect, second.support, second.modes) == (Dialect.ET20, SupportLayout.ET20, Modes())


def test_parameters_that_are_not_told_are_those_of_the_format() -> None:
    pt10, et20 = (parameters_of(b"", packets) for packets in PacketFormat)
    assert (pt10.iaddress_width, pt10.iaddress_lsb, pt10.privilege_width, pt10.ecause_width) == (32, 1, 1, 5)
    assert (et20.iaddress_width, et20.iaddress_lsb, et20.privilege_width, et20.ecause_width) == (32, 1, 1, 6)
    assert parameters_of(bytes(28), PacketFormat.PT10) == pt10


def test_parameters_of_encoders_to_come() -> None:
    told = parameters_of(made.parameters(bpred_size=7, cache_size=5, nocontext=0, context_width=8), PacketFormat.ET20)
    assert (told.bpred_size, told.cache_size, told.context_width) == (7, 5, 8)
    assert parameters_of(made.parameters(context_width=8), PacketFormat.ET20).context_width == 0


@pytest.mark.parametrize("change", [{"lsb": 9}, {"bpred_size": 255}, {"cache_size": 200}, {"privilege": 0}])
def test_parameters_no_encoder_has(change: dict[str, int]) -> None:
    with pytest.raises(BadSnapshot, match="damaged"):
        parameters_of(made.parameters(**change), PacketFormat.PT10)


def test_a_time_of_unknown_width() -> None:
    with pytest.raises(BadSnapshot, match="sends the time"):
        parameters_of(made.parameters(notime=0), PacketFormat.ET20)


def test_a_packet_format_to_come() -> None:
    found = snapshot(made.memory([PT10]))
    with pytest.raises(BadSnapshot, match="core 0: packet format 300 is not known"):
        options_of(found, replace(found.cores[0], packet_format=300))


def test_only_memory_that_can_hold_code_is_read_for_code() -> None:
    """reg_base.h and soc.h: ROM of the C6 at 0x40000000, of the S31 at 0x2f800000, where the C6 has its interrupts."""
    assert may_be_code(made.C6, 0x4000_0000, 1024)
    assert may_be_code(made.P4, 0x4FC0_0000, 1024)
    assert may_be_code(0x20, 0x2F80_0000, 1024)
    assert not may_be_code(made.C6, 0x2F80_0000, 1024)
    assert not may_be_code(made.C6, 0x600C_0000, 1024)
    assert not may_be_code(made.C6, 0x4FFF_FF00, 1024)
    assert may_be_code(0x7777, 0x4200_0000, 4) and not may_be_code(0x7777, 0, 4)


@settings(derandomize=True, max_examples=some_of(300), deadline=None)
@given(st.data())
def test_any_memory_is_a_snapshot_or_an_error_of_ours(data: st.DataObject) -> None:
    content = made.memory([Described(bytes(range(64)), 20, state=data.draw(st.integers(0, 5)))])
    for address in (made.ROOT, made.TABLE, made.PARAMS):
        damaged = bytearray(content[address])
        for _ in range(data.draw(st.integers(0, 3))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        content[address] = bytes(damaged)
    try:
        found = snapshot(content)
        for core in found.cores:
            options_of(found, core)
            ring_of(core)
    except RvtraceError as error:
        assert "\n" not in str(error)
