"""`rvtrace qemu` with gdb attached as usual: start, stop, history, and going back, exact wherever the program stops.

minstret with -icount counts the instructions that ran, and also those that raise an exception by what they are (ecall,
ebreak, an illegal instruction, one that cannot be fetched): QEMU 10, target/riscv (generate_exception does not take the
instruction back out of the count). Those are known from QEMU's log of another run.
"""

import re
from pathlib import Path

import pytest

from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.transport.qemu.machine import gdb, histories, logged, ticks, told

COUNTED = (1, 2, 3, 8, 11)
"""Causes of exceptions whose instruction QEMU counts in minstret."""
SOURCES = ("plugin", "log")


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without interrupts, whose place would depend on when gdb stopped the program."""
    return ticks(tmp_path_factory.mktemp("elf"), "rv64imac_zicsr", "-DPATCHING", "-DQUIET", "-DROUNDS=12")


def value(said: str) -> int:
    return int(said.split("=")[1].split()[0], 0)


def retired(status: str) -> int:
    match = re.search(r"hart0: (\d+) instructions", status)
    assert match, status
    return int(match[1])


STOPS = [
    "continue", "continue ", "stepi", "stepi ", "next", "watch sink", "continue  ", "delete", "break handler",
    "continue   ", "stepi  ", "continue    ", "break patched", "continue     ", "stepi 9", "stepi   ", "delete ",
    "break finish", "continue      ", "stepi    ",
]  # fmt: skip


def asked(number: int) -> list[str]:
    """What is asked at a stop, spelt differently at each."""
    return [f"{what}{' ' * number}" for what in ("trace history -", "trace status", "print $minstret", "print/x $pc")]


@pytest.mark.parametrize("source", SOURCES)
def test_retired_is_minstret_wherever_it_stops(elf: Path, tmp_path: Path, source: str) -> None:
    commands = ["trace start", "break work"]
    for number, stop in enumerate(STOPS):
        commands += [stop, *asked(number)]
    said = gdb(elf, tmp_path, commands, "--source", source)
    (expected,) = logged(elf)
    counts = []
    for number, stop in enumerate(STOPS):
        _, status, minstret, pc = (said[it] for it in asked(number))
        count = retired(status)
        raised = [before for before, _, cause in expected.traps if cause in COUNTED]
        sure = sum(before < count for before in raised)
        assert sure <= value(minstret) - count <= sure + raised.count(count), (stop, count, minstret)
        if count not in {before for before, _, _ in expected.traps}:
            assert expected.pcs[count] == value(pc), stop
        counts.append(count)
        assert "0 gaps" in status
    assert counts == sorted(counts) and len(set(counts)) >= len(STOPS) - 8
    assert counts[-1] == expected.pcs.index(symbol_address(elf, "finish")) + 1


@pytest.mark.parametrize("source", [SOURCES[0], *long_only(*SOURCES[1:])])
def test_retired_is_minstret_with_interrupts(tmp_path: Path, source: str) -> None:
    """Half of the faults the program counts are calls of the environment, which QEMU counts in minstret."""
    elf = ticks(tmp_path)
    commands = ["trace start", "break work"]
    for number in range(6):
        commands += [f"continue{' ' * number}", *(["trace  status"] if number == 0 else [])]
        commands += [*asked(number)[:3], f"print ticks{' ' * number}"]
        commands += [f"print faults{' ' * number}"]
    said = gdb(elf, tmp_path, commands, "--source", source)
    assert re.search(r"hart0: 0 instructions, 0 bytes, [1-9]\d* bytes of the ring are not", said["trace  status"])
    assert "in software: tracing, N-Trace" in said["trace  status"]
    for number in range(6):
        _, status, minstret, _ = asked(number)
        calls, interrupts = value(said[f"print faults{' ' * number}"]) // 2, value(said[f"print ticks{' ' * number}"])
        assert calls == number
        assert value(said[minstret]) - retired(said[status]) == calls
        traps = re.search(r"0 gaps(?:, (\d+) traps?)?;", said[status])
        assert traps and int(traps[1] or 0) == 2 * calls + interrupts
    assert interrupts > 3


OPTIONS = {
    "-format etrace": "E-Trace", "-btm": "BTM", "-timestamps": "timestamps",
    "-repeated-history -context": "repeated history",
}  # fmt: skip
"""And what `trace status` then says."""
UNKNOWN = "trace start -data -stall -function work"
NO_SUCH_HART = "trace start -hart 3"
IN_THE_MIDDLE = ["continue", "trace start", "continue ", "trace history -", "trace status", "trace stop"]
IN_THE_MIDDLE += ["continue  ", "trace start ", "stepi", "stepi ", "trace history - ", "trace status ", "trace stop "]


@pytest.fixture(scope="module")
def said(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one gdb said. The program runs with each of OPTIONS from a reset on, and is saved as NUMBER.rvt in the
    folder that "folder" has. At last it is traced in the middle of it.
    """
    folder = tmp_path_factory.mktemp("traces")
    commands = [UNKNOWN, NO_SUCH_HART, "trace stop  ", "monitor system_reset", "break finish"]
    for number, option in enumerate(OPTIONS):
        again = [f"trace start {option}", "continue", "trace history -", "trace status", "trace stop"]
        again += [f"trace save {folder / str(number)}.rvt", "monitor system_reset"]
        commands += [f"{command}{' ' * (9 + number)}" for command in again]
    with_gdb = gdb(elf, folder, [*commands, "delete", "break work", *IN_THE_MIDDLE])
    return {**with_gdb, "folder": str(folder)}


@thorough("transport/qemu/test_whole_runs.py::test_other_encoders")
def test_options_change_the_trace_not_the_history(elf: Path, said: dict[str, str]) -> None:
    (expected,) = logged(elf)
    there = expected.pcs.index(symbol_address(elf, "finish"))
    for number, option in enumerate(OPTIONS):
        status = said[f"trace status{' ' * (9 + number)}"]
        assert retired(status) == there and OPTIONS[option] in status, option
        pcs, _ = told(histories(Path(said["folder"], f"{number}.rvt")).histories[0])
        assert pcs == expected.pcs[:there], option


def test_what_qemu_does_not_do_is_said(said: dict[str, str]) -> None:
    assert said[UNKNOWN].count("QEMU does not support") == 3
    assert "there is no hart 3: this QEMU has 1" in said[NO_SUCH_HART]


def test_tracing_in_the_middle_and_again(elf: Path, said: dict[str, str]) -> None:
    (expected,) = logged(elf)
    calls = [at for at, pc in enumerate(expected.pcs) if pc == symbol_address(elf, "work")]
    assert retired(said["trace status"]) == calls[1] - calls[0]
    assert retired(said["trace status "]) == 2


def test_a_ring_that_goes_round_keeps_the_newest(elf: Path, tmp_path: Path) -> None:
    commands = ["trace start", "break finish", "continue", "trace history -", "trace status"]
    said = gdb(elf, tmp_path, [*commands, f"trace save {tmp_path}/all.rvt"], "--ring", "16K")
    (expected,) = logged(elf)
    there = expected.pcs.index(symbol_address(elf, "finish"))
    assert "older trace was overwritten" in said["trace status"] and "0 gaps" in said["trace status"]
    pcs, _ = told(histories(tmp_path / "all.rvt").histories[0])
    assert 3500 < len(pcs) < there  # of 4096 words; around a breakpoint blocks have one instruction
    assert pcs == expected.pcs[there - len(pcs) : there]


def test_going_back_and_forth(elf: Path, tmp_path: Path) -> None:
    commands = ["trace start", "break finish", "continue", "reverse-stepi", "print/x $pc", "break work"]
    commands += ["reverse-continue", "print $trace_pos", "reverse-finish", "trace live", "print/x $pc ", "stepi"]
    commands += ["trace history -", "trace status"]
    said = gdb(elf, tmp_path, commands, connect="trace connect")
    (expected,) = logged(elf)
    there, work = expected.pcs.index(symbol_address(elf, "finish")), symbol_address(elf, "work")
    assert value(said["print/x $pc"]) == expected.pcs[there - 1]
    last = max(at for at, pc in enumerate(expected.pcs[:there]) if pc == work)
    assert value(said["print $trace_pos"]) == last + 1
    assert value(said["print/x $pc "]) == expected.pcs[there]
    assert retired(said["trace status"]) == there + 1
    assert "in main" in said["reverse-finish"]


@thorough("transport/qemu/test_whole_runs.py::test_two_harts")
@pytest.mark.parametrize("icount", [True, *long_only(False)])
def test_two_harts(tmp_path: Path, icount: bool) -> None:
    elf = compile_program(tmp_path, HOME / "tests" / "programs" / "qemu" / "pair.c")
    commands = ["trace start", "break second", "break first", "continue", "continue "]
    commands += ["trace history -", "thread 1", "trace history - ", f"trace save {tmp_path}/all.rvt"]
    gdb(elf, tmp_path, commands, more=("-smp", "2"), icount=icount)
    expected = logged(elf, "-smp", "2")
    found = histories(tmp_path / "all.rvt").histories
    (first, _), (second, _) = told(found[0]), told(found[1])
    compared = []
    for pcs, ran, name in ((first, expected[0].pcs, "first"), (second, expected[1].pcs, "second")):
        there = min(ran.index(symbol_address(elf, name)), len(pcs))  # one may stop twice before the other is there
        assert pcs[:there] == ran[:there]
        compared.append(there)
    assert (min if icount else max)(compared) > 100  # free harts need not take turns


@thorough("test_going_back_and_forth")
def test_rv32(tmp_path: Path) -> None:
    elf = ticks(tmp_path, "rv32imac_zicsr", "-DQUIET", "-DROUNDS=3")
    commands = ["trace start", "break finish", "continue", "trace history -", "trace status", "print $minstret"]
    commands += ["monitor system_reset", "stepi 5", "trace history - ", "trace status ", "trace info"]
    said = gdb(elf, tmp_path, commands)
    (expected,) = logged(elf)
    there = expected.pcs.index(symbol_address(elf, "finish"))
    assert retired(said["trace status"]) == there
    assert value(said["print $minstret"]) == there + 3  # three ecalls
    assert retired(said["trace status "]) == there + 5 and "1 gap" in said["trace status "]  # that is the reset
    assert "QEMU has no trace components" in said["trace info"]


def test_qemu_ends_before_it_is_asked(elf: Path, tmp_path: Path) -> None:
    """QEMU ends in the middle of `continue`, with the program: what ran is there all the same."""
    commands = ["trace start", "continue", "trace history -", "trace status", f"trace save {tmp_path}/all.rvt"]
    said = gdb(elf, tmp_path, commands)
    (expected,) = logged(elf)
    pcs, _ = told(histories(tmp_path / "all.rvt").histories[0])
    both = min(len(pcs), len(expected.pcs))
    assert symbol_address(elf, "finish") in pcs and pcs[:both] == expected.pcs[:both]
    assert "QEMU has ended" in said["trace status"], said["trace history -"]
