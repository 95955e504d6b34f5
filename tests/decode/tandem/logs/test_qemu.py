"""QEMU's logs with registers, real ones: against Spike's log of the same program, and QEMU's states by other eyes."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.readers import LogError
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.program.image import Image
from tests.decode.executed.logs import CLOCK, PROGRAMS, qemu_log, spike_log
from tests.decode.tandem.corpus import DATA
from tests.decode.tandem.logs.read_logs import read_log, read_lossy_log, written
from tests.helpers.amounts import some_of
from tests.helpers.spike import needs_spike
from tests.transport.simulated.hart.programs import build

WHAT = "exec,nochain,int,cpu"
LINES = some_of(300_000, 4)
_COMMIT = re.compile(r"core +0: (\d) 0x([0-9a-f]+) \(0x[0-9a-f]+\)(.*)")
_STATE = re.compile(r" (?:x(\d+)/\w+|(\w+)) +([0-9a-f]{8,16})(?=\s|$)")


def qemu(elf: Path, folder: Path, *options: str, what: str = WHAT, lines: int = LINES) -> Path:
    return qemu_log(elf, folder, *CLOCK, "-singlestep", *options, what=what, lines=lines)


@needs_spike
@pytest.mark.parametrize("march", ["rv64imac", "rv32imac"])
def test_registers_memory_and_modes_are_those_that_spike_logs(march: str, tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march=march)
    xlen = int(march[2:4])
    reader, found = read_log(qemu(elf, tmp_path), xlen, Image.from_elf(elf))
    assert not reader.mismatch and not found.index.breaks
    mask, position, traps = (1 << xlen) - 1, 0, 0
    stored: dict[int, int] = {}
    for line in spike_log(elf, tmp_path, "--log-commits", lines=LINES // 30).read_text().splitlines():
        commit = _COMMIT.match(line)
        assert commit is not None
        pc, mode = int(commit[2], 16) & mask, int(commit[1])
        if pc < 0x8000_0000:
            continue
        if position + 1 >= found.history.instructions:
            break
        before, after = found.before(position), found.before(position + 1)
        assert found.history.pc(position) == pc and before.privilege == mode
        for number, value in re.findall(r" x(\d+) +0x([0-9a-f]+)", commit[3]):
            assert after.x(int(number)) == int(value, 16) & mask
        for address, data in re.findall(r" mem 0x([0-9a-f]+) 0x([0-9a-f]+)", commit[3]):
            size = len(data) // 2
            held = int(data, 16).to_bytes(size, "little")
            stored |= {(int(address, 16) & mask) + at: byte for at, byte in enumerate(held)}
            assert after.memory(int(address, 16) & mask, size) == list(held)
        traps += after.group > before.group + 1
        position += 1
    assert position > 1500 and traps > 3 and len(stored) > 50


def test_interrupts_and_every_state(tmp_path: Path) -> None:
    """Each state is QEMU's."""
    elf = build(tmp_path, "interrupts.S", march="rv64imac")
    log = qemu(elf, tmp_path)
    _, found = read_log(log, 64, Image.from_elf(elf))
    assert not found.index.breaks
    states = [state for pc, state in _states(log) if pc >= 0x8000_0000]
    assert list(found.history.pcs()) == [state["pc"] for state in states[: found.history.instructions]]
    for position in range(found.history.instructions):
        state = found.before(position)
        assert {f"x{n}": value for n, value in enumerate(state.xs()) if n} == {
            name: value for name, value in states[position].items() if re.fullmatch(r"x[1-9]\d*", name)
        }
        assert (state.csr(0x300), state.csr(0x341), state.csr(0x342)) == tuple(
            states[position][name] for name in ("mstatus", "mepc", "mcause")
        )
    traps = [event for event in found.history.events if event.kind is EventKind.TRAP]
    assert len(traps) == len(re.findall("riscv_cpu_do_interrupt", log.read_text().rpartition("Trace ")[0])) > 1


def _states(log: Path) -> list[tuple[int, dict[str, int]]]:
    """What QEMU printed before each instruction that ran."""
    found: list[tuple[int, dict[str, int]]] = []
    for line in log.read_text().splitlines():
        if line.startswith("Trace "):
            found.append((int(line.split("/")[1], 16), {}))
        elif line.startswith(("Stopped", "cpu_io_recompile")):
            found.pop()
        elif line.startswith(" ") and found:
            found[-1][1].update(
                (f"x{number}" if number else name, int(value, 16)) for number, name, value in _STATE.findall(line)
            )
    return found


def test_code_that_is_in_the_log_alone(tmp_path: Path) -> None:
    """in_asm has the boot ROM, so that nothing is left out; without it the trace begins at the program."""
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    with_code, found = read_log(qemu(elf, tmp_path, what=f"{WHAT},in_asm", lines=4000), 64)
    assert found.history.pc(0) == 0x1000 and not with_code.notes and found.before(0).privilege == 3
    without, found = read_log(qemu(elf, tmp_path, lines=4000), 64, Image.from_elf(elf))
    assert found.history.pc(0) == 0x8000_0000
    assert "in_asm logs them" in without.notes[0]


def test_another_program(tmp_path: Path) -> None:
    """QEMU's log has no opcodes: registers change, and the pc goes on, as this code cannot have done it."""
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    log = qemu(elf, tmp_path, lines=20_000)
    (tmp_path / "other").mkdir()
    for march in ("rv64imac", "rv64ima"):
        other = build(tmp_path / "other", "interrupts.S", march=march)
        reader, _ = read_lossy_log(log, 64, Image.from_elf(other))
        assert re.fullmatch(
            rf"at 0x800000[0-9a-f]+ (\w+ changed to 0x[0-9a-f]+|an instruction of [24] bytes ran), but {other} has the"
            r" instruction 0x[0-9a-f]+ there, which does not do that: is this the program that ran\?",
            reader.mismatch,
        )


def test_a_program_elsewhere(tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    log = qemu(elf, tmp_path, lines=1000)
    with pytest.raises(LogError, match=r"instructions ran, and .*traced.elf has code at none of their addresses: is"):
        read_log(log, 64, Image.from_elf(DATA / "neorv32" / "traced.elf"))
    with pytest.raises(LogError, match=r"has no code of what ran: give the program \(--elf\), or QEMU -d in_asm, too"):
        read_log(log, 64)


_BLOCK = "Trace 0: 0x7f [0000000000000000/{:016x}/00209003/ff000201] "


@pytest.mark.parametrize("word", [0x0000_0000_0000_003F, 0x0000_0000_001F, 0x100073, 0x0000_000B])
def test_instructions_with_unknown_effects(word: int, tmp_path: Path) -> None:
    """One of 8 bytes or of 6, which no trace has; ebreak, which semihosting answers in a0; a custom one."""
    image = Image(64)
    image.add_code(0x8000_0000, word.to_bytes(8, "little") + bytes.fromhex("13000000") * 4)
    states = (f" pc       {0x8000_0000 + at:016x}\n x10/a0   {at:016x}" for at in (0, 4, 8))
    lines = [
        line for at, state in zip((0, 4, 8), states, strict=True) for line in (_BLOCK.format(0x8000_0000 + at), state)
    ]
    reader, _ = read_lossy_log(written(tmp_path / "it.log", *lines), 64, image)
    assert "at 0x80000000" not in reader.mismatch


@pytest.mark.parametrize("base", [0, 4])
def test_harts_that_log_at_the_same_time(base: int, tmp_path: Path) -> None:
    """As QEMU 7.2 wrote it with -smp 2: what another hart ran came between a line and its registers. The numbers of
    harts may begin elsewhere (hartid-base).
    """
    image = Image(64)
    image.add_code(0x8000_0000, bytes.fromhex("13050500") * 8)  # mv a0,a0

    def ran(hart: int, at: int) -> str:
        return _BLOCK.format(0x8000_0000 + at).replace("Trace 0", f"Trace {hart}")

    def state(hart: int, at: int) -> str:
        return f" pc       {0x8000_0000 + at:016x}\n mhartid  {base + hart:016x}\n x10/a0   {0x100 + hart:016x}"

    alone = [line for hart in (0, 1) for line in (ran(hart, 0), state(hart, 0))]
    mixed = [
        *(ran(1, 4), ran(0, 4), state(1, 4), state(0, 4)),
        *(ran(0, 8), ran(1, 8), state(1, 8), state(0, 8)),
        *(ran(1, 12), state(1, 12), ran(0, 12), state(0, 12)),
    ]
    log = written(tmp_path / "it.log", *(mixed if base == 0 else [*alone, *mixed]))
    for hart in (0, 1) if base == 0 else (0,):
        reader, found = read_log(log, 64, image, hart)
        assert not reader.mismatch
        positions = range(found.history.instructions)
        assert {found.before(position).x(10) for position in positions} == {0x100 + hart} and len(positions) > 1


_STATE_LINES = " pc       0000000080000000\n x0/zero  0000000000000000 x1/ra    0000000000000001"


def test_what_the_log_must_have(tmp_path: Path) -> None:
    begin = "Trace 0: 0x7f [0000000000000000/0000000080000000/00209003/ff000201] "
    several = begin.replace("ff000201", "ff000202")
    with pytest.raises(LogError, match=r"line 4: several instructions ran here.*-singlestep"):
        read_log(written(tmp_path / "it.log", begin, _STATE_LINES, several, _STATE_LINES), 64)
    with pytest.raises(LogError, match=r"line 4: there are no registers after this line: give QEMU -d cpu"):
        read_log(written(tmp_path / "it.log", begin, _STATE_LINES, begin, begin, _STATE_LINES), 64)
    with pytest.raises(LogError, match="hart 1 after lines of hart 0: choose one with --hart"):
        read_log(written(tmp_path / "it.log", begin, _STATE_LINES, begin.replace("Trace 0", "Trace 1")), 64)
    with pytest.raises(LogError, match="has no instruction"):
        read_log(written(tmp_path / "it.log", begin, _STATE_LINES), 64)
