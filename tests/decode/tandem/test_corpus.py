"""Traces of real cores (Piccolo RV32, Flute RV64) against Spike, step by step: every difference is listed, and why.

The golden logs are Spike's; the instruction, the registers, CSRs and bytes of memory it says a step wrote must be those
of the shadow state after the group that belongs to the step.
"""

from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.instructions import LOAD, reach
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.protocol import GPR, StateId
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.decode.tandem.trace import CUT_OFF
from tests.decode.tandem.corpus import (
    GOLDEN,
    TRACES,
    Step,
    decoded,
    golden_steps,
    parameters_of,
    program_of,
    trace_bytes,
)

MSTATUS, MEDELEG, MCYCLE_INHIBIT, MIP, TDATA1 = 0x300, 0x302, 0x320, 0x344, 0x7A1
MSTATUSH, TCONTROL, MVIP = 0x310, 0x7A5, 0x309

ABSENT_IN_PICCOLO = {MSTATUSH, TCONTROL}
"""Spike writes them with mret; a core of privileged architecture 1.10 does not have them."""
SHADOWS_OF_MIP = {MVIP}
"""Spike lists a register of AIA that these cores do not have together with mip."""

MSTATUS_VS = 3 << 9
"""Flute keeps these two bits, which are reserved without the vector extension; Spike clears them."""
MEDELEG_0 = 1
"""Whether delegation of misaligned fetches can be asked for is a choice: with compressed code there are none."""
MIP_MTIP = 1 << 7
"""Spike's timer is due; the SoC's is not."""

BIT_DIFFERENCES = {
    "flute_rv64ui-v-add": {MSTATUS: MSTATUS_VS},
    "flute_rv64si-p-csr": {MEDELEG: MEDELEG_0},
    "flute_rv64si-p-scall": {MEDELEG: MEDELEG_0},
    "flute_rv64mi-p-illegal": {MIP: MIP_MTIP},
}
"""By trace and CSR: bits that may be others."""

ENDS = {
    "piccolo_rv32mi-p-breakpoint": (
        0x8000_0138,
        "Piccolo has no triggers: tdata1 reads as another type, so the test skips",
    ),
    "piccolo_rv32ua-p-lrsc": (0x8000_0194, "sc never succeeds in this SoC: the branch after it goes back"),
    "flute_rv64ua-p-lrsc": (0x8000_01F0, "sc never succeeds in this SoC: the branch after it goes back"),
}
"""By trace: the address after which it and Spike part for good, and why."""

OTHER_VALUES = {
    "piccolo_rv32mi-p-breakpoint": {("csr", TDATA1), ("x", 11)},  # tdata1, and the register it is read into
    "piccolo_rv32ua-p-lrsc": {("x", 14), ("memory", 0x8000_2008)},  # sc failed: rd, and nothing stored
    "flute_rv64ua-p-lrsc": {("x", 14), ("memory", 0x8000_2008)},
}
"""By trace: what may differ in the last step before they part."""


class Difference(NamedTuple):
    kind: str
    place: int
    group: int
    trace: object
    spike: object


def compared(name: str, tandem: DecodedTandem) -> tuple[int, list[Difference]]:
    """How many steps were the same place, and what was not the same in them."""
    index, trace = tandem.index, tandem.trace
    traps = {trapped.group: trapped for trapped in index.traps}
    entry = program_of(name).entry
    steps = dropwhile(lambda step: step.pc != entry, golden_steps(name))
    began = False
    count, found = 0, []
    for group in range(len(trace)):
        began = began or (index.retired[group] == 1 and index.origin(group) == entry)
        if not began or not (index.retired[group] or group in traps):
            continue
        step = next(steps, None)
        if step is None:
            break
        kind = "interrupt" if group in traps and traps[group].interrupt else "trap" if group in traps else ""
        if index.origin(group) != step.pc or not (step.cause or "").startswith(kind) or bool(step.cause) != bool(kind):
            found.append(Difference("pc", step.pc, group, index.origin(group), step.pc))
            break
        count += 1
        found += differences(tandem, group, step)
    return count, found


def differences(tandem: DecodedTandem, group: int, step: Step) -> Iterator[Difference]:
    state, instr = tandem.after(group), tandem.trace.group(group).instr
    if instr is not None and step.word is not None and instr.word != step.word:
        yield Difference("instruction", step.pc, group, instr.word, step.word)
    for number, value in step.x.items():
        if state.x(number) != value:
            yield Difference("x", number, group, state.x(number), value)
    for number, value in step.f.items():
        if state.f(number) != value:
            yield Difference("f", number, group, state.f(number), value)
    for number, value in step.csrs.items():
        if state.csr(number) != value:
            yield Difference("csr", number, group, state.csr(number), value)
    for address, data in step.stores:
        if state.memory(address, len(data)) != list(data):
            yield Difference("memory", address, group, state.memory(address, len(data)), data)


def is_explained(name: str, found: Difference) -> bool:
    if (found.kind, found.place) in OTHER_VALUES.get(name, ()):
        return True
    if found.kind == "csr" and found.place in (ABSENT_IN_PICCOLO if name.startswith("piccolo") else SHADOWS_OF_MIP):
        return found.trace is None
    bits = BIT_DIFFERENCES.get(name, {}).get(found.place, 0) if found.kind == "csr" else 0
    return isinstance(found.trace, int) and isinstance(found.spike, int) and not (found.trace ^ found.spike) & ~bits


@pytest.mark.parametrize("name", GOLDEN)
def test_each_step_is_what_spike_does(name: str) -> None:
    tandem = decoded(name)
    count, found = compared(name, tandem)
    where = ENDS[name][0] if name in ENDS else None
    parted = [difference for difference in found if difference.kind == "pc"]
    unexplained = [difference for difference in found if difference.kind != "pc" and not is_explained(name, difference)]
    assert unexplained == []
    if where is None:
        assert not parted
        assert count == sum(tandem.index.retired) + len(tandem.index.traps) - 8  # boot ROM and trampoline
    else:
        assert len(parted) == 1 and tandem.index.origin(parted[0].group - 1) == where


@pytest.mark.parametrize("name", sorted(set(GOLDEN) - ENDS.keys()))
def test_the_final_state_is_spikes(name: str) -> None:
    """All that Spike wrote up to the last step, each register and byte as it was written last."""
    tandem = decoded(name)
    entry = program_of(name).entry
    index = tandem.index
    first = next(group for group in range(len(tandem.trace)) if index.retired[group] and index.origin(group) == entry)
    traps = sum(trapped.group >= first for trapped in index.traps)
    steps = dropwhile(lambda step: step.pc != entry, golden_steps(name))
    x: dict[int, int] = {}
    f: dict[int, int] = {}
    memory: dict[int, int] = {}
    for step in islice(steps, sum(index.retired[first:]) + traps):
        x |= step.x
        f |= step.f
        memory |= {address + at: byte for address, data in step.stores for at, byte in enumerate(data)}
    state = tandem.after(len(tandem.trace) - 1)
    assert {number: state.x(number) for number in x} == x
    assert {number: state.f(number) for number in f} == f
    if name != "flute_rv64ui-v-add":  # virtual memory: Spike's log has virtual addresses of several page tables
        assert {address: state.memory(address, 1, space=PHYSICAL)[0] for address in memory} == memory
    boot = {5, 10, 11}  # written by the boot ROM, which is another one in Spike
    assert {number for number in range(1, 32) if state.x(number) is not None} - boot <= x.keys()
    assert state.fs().count(None) == 32 - len(f)


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_decodes(name: str) -> None:
    """Nothing is lost, no rule broken, no instruction without its address, all bytes accounted for."""
    tandem = decoded(name)
    history, trace = tandem.history, tandem.trace
    data = trace_bytes(name)
    cut = 16 if name.endswith("truncated_midgroup") else 0
    assert history.accounting == (len(data), len(data) - cut, 0, cut)
    assert [loss.cause for loss in trace.losses] == [CUT_OFF] * bool(cut)
    assert list(trace.flaws()) == []
    assert not history.gaps and GAP not in history.pcs()
    assert len(history) == sum(tandem.index.retired)
    assert not [event for event in history.events if event.kind in (EventKind.MISMATCH, EventKind.LOSS)]
    assert [b for b in tandem.index.breaks if not b.loss] == []


def test_the_corpus_is_what_its_readme_says() -> None:
    sizes = [len(trace_bytes(name)) for name in TRACES]
    groups = [len(decoded(name).trace) for name in TRACES]
    assert (len(TRACES), sum(sizes), sum(groups)) == (32, 457_226, 18_035)


@pytest.mark.parametrize("name", TRACES)
def test_loads_read_what_was_stored(name: str) -> None:
    """The value an instruction loaded, as the trace has it, is what memory is known to hold: in both address spaces."""
    tandem, xlen = decoded(name), parameters_of(name).xlen
    known = 0
    for number, one in enumerate(tandem.trace.groups()):
        address = one.state(StateId.EFFECTIVE_ADDRESS)
        if one.instr is None or address is None or not tandem.index.retired[number]:
            continue
        found = reach(one.instr.word, xlen)
        loaded = [value for regno, value in one.registers.items() if regno >= GPR]
        if found is not None and found.kind == LOAD and loaded:
            expected = (loaded[0] & (1 << 8 * found.size) - 1).to_bytes(found.size, "little")
            before = tandem.after(number - 1)
            pairs = list(zip(before.memory(address, found.size), expected, strict=True))
            assert all(byte in (None, other) for byte, other in pairs), number
            known += all(byte == other for byte, other in pairs)
            seen = before.memory(address, found.size, loads=True)  # no device here answers otherwise the next time
            assert all(byte in (None, other) for byte, other in zip(seen, expected, strict=True)), hex(address)
            assert tandem.after(number).memory(address, found.size, loads=True) == list(expected)
    assert known == LOADS_KNOWN.get(name, 0)


LOADS_KNOWN = {
    "flute_rv64-irq": 8, "flute_rv64ua-p-amoadd_d": 2, "flute_rv64ua-p-amoadd_w": 2, "flute_rv64ua-p-lrsc": 1,
    "flute_rv64uc-p-rvc": 5, "flute_rv64ud-p-ldst": 5, "flute_rv64ui-p-sd": 34, "flute_rv64ui-v-add": 650,
    "piccolo_rv32-hello": 333, "piccolo_rv32-hello_truncated_midgroup": 95, "piccolo_rv32-irq": 8,
    "piccolo_rv32ua-p-lrsc": 1, "piccolo_rv32ui-p-sb": 33,
}  # fmt: skip
"""Loads of memory that was stored to before; the others read what the ELF file or the boot ROM holds."""


@pytest.mark.parametrize(
    "name", ["flute_rv64ua-p-lrsc", "flute_rv64ui-v-add", "piccolo_rv32ui-p-sb", "flute_rv64ud-p-ldst"]
)
def test_accesses(name: str) -> None:
    """Loads, stores, atomics, CSR instructions: as many as the code has, at their instructions, with Spike's values."""
    tandem, image = decoded(name), program_of(name)
    history, xlen = tandem.history, parameters_of(name).xlen
    accesses = list(history.accesses)
    words = {position: one_word(tandem, position) for position in range(len(history))}
    assert [one.position for one in accesses] == [p for p in words if reach(words[p], xlen) is not None]
    assert len(history.accesses) == len(accesses) and history.accesses[5:7] == accesses[5:7]
    steps = dropwhile(lambda step: step.pc != image.entry, golden_steps(name))
    retired = [step for step in steps if step.cause is None]
    first = next(position for position in range(len(history)) if history.pc(position) == image.entry)
    stop = first + (66 if "lrsc" in name else len(retired))
    for one in accesses:
        assert one.position is not None and one.address is not None and one.offset < len(tandem.trace.data)
        if not first <= one.position < stop:
            continue
        step = retired[one.position - first]
        if one.kind == "store":
            assert [(one.address, list(data)) for _, data in step.stores] == [
                (address, list((one.value or 0).to_bytes(one.size, "little"))) for address, _ in step.stores
            ]
        elif one.kind == "load":
            loaded = next(iter({**step.x, **step.f}.values()), None)
            assert one.value == (None if loaded is None else loaded & (1 << 8 * one.size) - 1)
    if "lrsc" in name:
        assert {one.operation for one in accesses if one.kind == "atomic"} >= {"conditional store failure", "add"}


def one_word(tandem: DecodedTandem, position: int) -> int:
    instr = tandem.trace.group(tandem.group_of(position)).instr
    assert instr is not None
    return instr.word


def test_csrs_are_what_the_core_reads_in_them() -> None:
    """What a CSR instruction reads was known right before it; of mstatus a return changes its own bits alone."""
    reads, returned = 0, 0
    own = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 3 << 11 | 1 << 17  # xIE, xPIE, xPP, MPRV
    for name, number, word in of_system(TRACES):
        tandem = decoded(name)
        before = tandem.before(tandem.position_of(number))
        told = tandem.trace.group(number).registers
        if word in (0x3020_0073, 0x1020_0073) and (known := before.csr(MSTATUS)) is not None:
            assert (known ^ told[MSTATUS]) & ~own == 0, f"mstatus, {name}, group {number}"
            returned += 1
        elif word >> 12 & 3 and (known := before.csr(word >> 20)) is not None:
            read = told.get(0x1000 + (word >> 7 & 31))
            assert read in (None, known), f"csr {word >> 20:#x}, {name}, group {number}"
            reads += read is not None
    assert reads > 250 and returned > 30


def of_system(names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Where CSR instructions and returns retired: the trace, the group, the instruction."""
    for name in names:
        tandem = decoded(name)
        for number in range(len(tandem.trace)):
            instr = tandem.trace.group(number).instr
            if instr is not None and instr.word & 0x7F == 0x73 and tandem.index.retired[number]:
                yield name, number, instr.word
