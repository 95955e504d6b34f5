"""The E-Trace side of the simulated encoder: its registers (Trace Control Interface 1.0; E-Trace 2.0, "Encoder
Control"), when packets are sent (E-Trace 2.0, "Format 3 packets") and what they come in (encapsulation 1.0).

Registers, bits and bytes are numbers here, taken from the documents.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.options import Parameters, SupportLayout
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from tests.transport.simulated.devices.test_component import (
    ACTIVE,
    CONTROL,
    ENABLE,
    IMPL,
    INST_FEATURES,
    STOP_ON_WRAP,
    TE,
    Registers,
    stop,
)
from tests.transport.simulated.encoder.etrace_traces import (
    DATA_CONTROL,
    E_TRACE,
    N_TRACE,
    RARE_SYNC,
    SUPPORT,
    SYNC_START,
    SYNC_TRAP,
    TIME,
    machine_with,
    start,
    trace,
)
from tests.transport.simulated.encoder.test_triggers import EXECUTE, TRACE_NOTIFY, set_trigger, symbol
from tests.transport.simulated.encoder.traces import compiled

BUILT = ETraceBuild()
NO_DATA = ETraceBuild(data_trace=False)
SINK_CONTROL, WP = 0x00, 0x20


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rv64"), "rv64imac")


def built_with(**parameters: int | bool) -> ETraceBuild:
    """Without data trace, support packets of the reference model, and these parameters."""
    encoder = replace(BUILT.encoder, parameters=Parameters(**parameters), support=SupportLayout.REFERENCE)  # type: ignore[arg-type]
    return ETraceBuild(encoder, data_trace=False)


def registers_of(elf: Path, built: ETraceBuild | None = None, **more: object) -> Registers:
    te = Registers(machine_with(elf, built, **more).bus, TE)  # type: ignore[arg-type]
    te.activate()
    return te


# Registers


@pytest.mark.parametrize("mode", [6, 7])
def test_fields_of_an_etrace_encoder(mode: int, elf: Path) -> None:
    """trTeInstMode: "Hardcode to 7" (2.0), "Hardcode to 6" (2.0.5); trTeContext: 0."""
    te = registers_of(elf, ETraceBuild(inst_mode=mode))
    for written in (0xFFFF_FFFD, ACTIVE, ACTIVE | 3 << 4):
        te[CONTROL] = written
        assert te[CONTROL] >> 24 & 7 == 0, "trTeFormat"
        assert te[CONTROL] >> 4 & 7 == mode
        assert te[CONTROL] & 1 << 9 == 0, "trTeContext"
    te[INST_FEATURES] = 0xFFFF_FFFF
    assert te[INST_FEATURES] == 12 << 28 | 0xFFF << 16 | 0x3F, "all of E-Trace, nothing of N-Trace, mode 0"


def test_the_version_says_whether_support_packets_are_standard_ones(elf: Path) -> None:
    """2.0 is 0.0 ("trTeProtocolMajor"); the Standard Support Packet extension makes it 2.1."""
    assert registers_of(elf)[IMPL] >> 16 & 0xFF == 0x10
    assert registers_of(elf, built_with())[IMPL] >> 16 & 0xFF == 0


def test_data_control(elf: Path) -> None:
    te = registers_of(elf)
    assert te[DATA_CONTROL] & 1, "trTeDataImplemented"
    te[DATA_CONTROL] = 1 << 16 | 1 << 17
    assert te[DATA_CONTROL] == 1 | 1 << 16, "neither addresses nor values would be nothing at all"
    for written, becomes in enumerate((0, 2, 2, 2)):
        te[DATA_CONTROL] = written << 18
        assert te[DATA_CONTROL] >> 18 == becomes, "trTeDataAddrCompress: full or differences"
    te = registers_of(elf, NO_DATA)
    te[DATA_CONTROL] = 0xFFFF_FFFF
    assert te[DATA_CONTROL] == 0


def test_the_protocol_stays_while_the_encoder_is_enabled(elf: Path) -> None:
    te = registers_of(elf, formats=(N_TRACE, E_TRACE))
    te[CONTROL] = ACTIVE | ENABLE
    te.poll(ENABLE, ENABLE)
    te[CONTROL] = ACTIVE | ENABLE | 1 << 24
    assert te[CONTROL] >> 24 & 7 == 0


@pytest.mark.parametrize(
    "parameters", [{"context_width": 64, "time_width": 48}, {"context_width": 48, "time_width": 64}]
)
def test_packets_too_long_for_the_encapsulation_are_refused_at_once(parameters: dict[str, int]) -> None:
    """A packet has 31 bytes at most. Trap packets have 14 bits, ecause, time, context, address and tval."""
    with pytest.raises(ValueError, match=r"a trap packet has up to 2[0-9]{2} bits, more than a packet can carry"):
        built_with(iaddress_width=64, **parameters)


# When packets are sent


def test_debug_mode_ends_and_begins_a_trace(elf: Path) -> None:
    machine = machine_with(elf)
    te, ram = start(machine)
    machine.run_slice(100)
    machine.debug_module.write(0x10, 1 << 31 | 1)
    stopped_at = machine.hart.csr_read(0x7B1, debug=True)
    machine.debug_module.write(0x10, 1 << 30 | 1)
    machine.run_slice(100)
    machine.debug_module.write(0x10, 1 << 31 | 1)
    traced = trace(machine_with(elf), elf)._replace(data=stop(te, ram))
    places = [n for n, kind in enumerate(traced.kinds()) if kind == SUPPORT]
    assert len(places) == 3, "enabled; halted twice, and then no more is said"
    payloads = traced.payloads()
    assert [payloads[n][0] >> 4 & 1 for n in places] == [1, 1, 1], "ienable: halting does not switch it off"
    assert traced.kinds()[places[1] + 1] == SYNC_START
    restart = payloads[places[1] + 1]
    address = int.from_bytes(restart, "little") >> 7  # format, subformat, branch, privilege
    assert address << 1 & 0xFFFF_FFFF == stopped_at


def test_a_trap_is_told_with_its_cause(elf: Path) -> None:
    """Format 3, subformat 1: branch, privilege (2 bits), ecause (5), interrupt, thaddr. The timer is interrupt 7, ecall
    from user mode is exception 8.
    """
    traced = trace(machine_with(elf), elf)
    traps = [int.from_bytes(payload, "little") >> 4 for payload in traced.payloads() if payload[0] & 15 == SYNC_TRAP]
    assert {(bits >> 8 & 1, bits >> 3 & 31) for bits in traps} == {(1, 7), (0, 8)}
    assert {(bits >> 9 & 1, bits >> 1 & 3) for bits in traps} == {(1, 3), (0, 0)}, "thaddr: the handler, in M mode"


def test_loss_is_told(elf: Path) -> None:
    machine = machine_with(elf, trace_size=128)
    te, ram = start(machine, sink=STOP_ON_WRAP)
    machine.run_slice(5000)
    assert te[CONTROL] & 1 << 12, "trTeInstStallOrOverflow"
    ram[WP] = 0x3000_0000
    ram[SINK_CONTROL] = ram[SINK_CONTROL] | ENABLE
    ram.poll(ENABLE, ENABLE)
    machine.run_slice(200)
    traced = trace(machine_with(elf), elf)._replace(data=ram.bus.read_bytes(0x3000_0000, (ram[WP] & ~1) - 0x3000_0000))
    assert traced.data[:33] == bytes(31) + b"\x80" + traced.data[32:33], "the packet before may have been cut"
    assert traced.kinds()[:2] == [SUPPORT, SYNC_START]
    support = traced.payloads()[0]
    assert support[0] >> 7 | (support[1] & 1) << 1 == 2, "qual_status: trace_lost"


def test_a_trigger_has_an_instruction_reported(elf: Path) -> None:
    """Action 4 ("Using trigger outputs from the Debug Module"): a packet with the instruction's address."""
    machine, plain = machine_with(elf), trace(machine_with(elf), elf)
    place = plain.retired[plain.retired.index(symbol(elf, "deep")) + 1]
    set_trigger(machine.hart, 0, TRACE_NOTIFY, EXECUTE, place)
    traced = trace(machine, elf)
    traced.check()
    assert traced.retired.count(place) > 3
    assert len(traced.payloads()) > len(plain.payloads())


# The encapsulation


def test_source_id_unless_inhibited(elf: Path) -> None:
    """srcID of 6 bits: the payload begins two bits into the byte behind the header."""
    features = 6 << 28 | 0x2A << 16
    plain, shown, hidden = (
        trace(machine_with(elf, NO_DATA), elf, control, wanted, built=NO_DATA)
        for control, wanted in ((RARE_SYNC, 0), (RARE_SYNC, features), (RARE_SYNC | 1 << 15, features))
    )
    assert plain.data == hidden.data
    assert shown.data[1] & 0x3F == 0x2A
    assert shown.payloads() == plain.payloads()
    shown.check()


def test_the_bytes_of_the_first_packets(elf: Path) -> None:
    """Support, after 1111: ienable, encoder_mode 2 bits, qual_status 2, options 6, resync_disabled, iret_ext,
    time_width 3, f0s_width 2 = 1, return_stack_size 3 = 5, call_counter_size 4, bpred_size 3 = 6, cache_size 3 = 5,
    data 7.
    Synchronization: 1100, branch 1, privilege 3, address 0x80000000 >> 1, all least significant bit first.
    """
    traced = trace(machine_with(elf, NO_DATA), elf, RARE_SYNC, built=NO_DATA)
    support = 0xF | 1 << 4 | 1 << 16 | 1 << 20 | 5 << 22 | 6 << 29 | 5 << 32
    sync = 0b11 | 1 << 4 | 3 << 5 | 0x4000_0000 << 7
    want = b"\x05" + support.to_bytes(5, "little") + b"\x05" + sync.to_bytes(5, "little")
    assert traced.data[: len(want)] == want


def test_timestamps_are_those_of_the_instructions(elf: Path) -> None:
    """Five bytes, as trTsWidth is 40; one cycle for each instruction, from 0 on. A packet tells when the instruction
    that it reports began, which is a cycle before the history has it.
    """
    traced = trace(machine_with(elf), elf, timestamps=TIME)
    traced.check()
    times = [time for _, _, time in traced.packets()]
    assert all(time is not None for time in times)
    assert times == sorted(times) and times[-1] <= len(traced.retired)  # type: ignore[type-var, operator]
    history = traced.history()
    late = [time - position for position, time in history.times]
    assert len(late) > 20 and min(late) >= -1 and max(late) <= 1


@pytest.mark.parametrize(("frequency", "interval"), [(1, 256), (3, 1024)])
def test_synchronization_sequences(frequency: int, interval: int, elf: Path) -> None:
    """31 null.idle and a null.alignment ("Synchronization"), as often as trRamAsyncFreq says."""
    machine = machine_with(elf)
    te, ram = start(machine, sink=frequency << 12)
    machine.run_slice(7000)
    data = stop(te, ram)
    sequence = bytes(31) + b"\x80"
    places = [place for place in range(len(data)) if data.startswith(sequence, place)]
    steps = [after - before for before, after in pairwise(places)]
    assert len(places) >= len(data) // (interval + 64) > 0
    assert all(interval <= step <= interval + 64 for step in steps)
