"""Real gdb in the past of tandem traces: registers and memory as of that moment, or unavailable.

What is expected comes from Spike's logs of the same programs, from what gdb says live at the same instruction, and from
the source.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.csrs import CSRS
from tests.decode.tandem.corpus import DATA, decoded, golden_steps, program_of, trace_bytes
from tests.gdbext.gdb_process import GDB, GDB16, GDBS, SOURCE, run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import compile_program

READER = f"source {Path(__file__).resolve().parent / 'state_reader.py'}"
TRACES = ["piccolo_rv32mi-p-csr", "flute_rv64ud-p-ldst", "flute_rv64si-p-scall"]
DIFFERENT = {"mstatus", "sstatus", "medeleg", "mip", "mvien", "mstatush", "tcontrol", "tdata1"}
"""What Spike and these cores choose differently: docs/tandem.md, "Compared with Spike"."""
TRAP = {"mepc", "mcause", "mtval", "sepc", "scause", "stval"}
INTEGERS = "zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"
ABI = INTEGERS.split()
PLACES = 12


class Model(NamedTuple):
    """What was written by then, by Spike's log."""

    pc: int
    registers: dict[str, int]
    memory: dict[int, int]


def models(name: str) -> Iterator[tuple[int, Model]]:
    """By position of the history, from the program's entry on: before each instruction that retired."""
    history, entry = decoded(name).history, program_of(name).entry
    pcs = list(history.pcs())
    position, began = pcs.index(entry), False
    names = {number: name for name, number in CSRS.items()}
    registers: dict[str, int] = {}
    memory: dict[int, int] = {}
    for step in golden_steps(name):
        began = began or step.pc == entry
        if not began or position >= len(pcs):
            continue
        if step.cause is None:
            assert step.pc == pcs[position]
            yield position, Model(step.pc, dict(registers), dict(memory))
            position += 1
        else:  # the log does not say what a trap writes
            registers = {name: value for name, value in registers.items() if name not in TRAP}
        registers |= {ABI[number]: value for number, value in step.x.items()}
        registers |= {f"f{number}": value for number, value in step.f.items()}
        registers |= {names[number]: value for number, value in step.csrs.items() if number in names}
        for address, data in step.stores:
            memory |= dict(enumerate(data, address))


def capture_of(name: str, folder: Path) -> tuple[Path, Path]:
    """The capture of a core's trace, and the program."""
    dialect, elf = name.split("_", 1)
    program, capture = DATA / "riscv-tests" / elf, folder / "x.rvt"
    command = ["import", "--tandem", "--dialect", dialect, "--elf", program, "--quiet", "-o", capture]
    assert main([*map(str, command), str(DATA / "tandem" / f"{name}.tvt")]) == 0
    return capture, program


@pytest.mark.parametrize("gdb, name", list(zip([GDB, GDB16 or GDB, GDB], TRACES, strict=True)))
def test_what_spike_says(gdb: str, name: str, tmp_path: Path) -> None:
    """Values at random places are Spike's, or unavailable; and of those the program wrote all are known."""
    capture, program = capture_of(name, tmp_path)
    chosen = dict(random.Random(name).sample(list(models(name)), PLACES))
    wanted = {name for model in chosen.values() for name in model.registers} - DIFFERENT
    stored = sorted({address for model in chosen.values() for address in model.memory})[:40]
    asked, result = tmp_path / "asked.json", tmp_path / "result.json"
    numbers = [position + 1 for position in chosen]
    asked.write_text(json.dumps({"numbers": numbers, "registers": ["pc", *wanted], "memory": stored}))
    files = {"STATE_ASKED": str(asked), "STATE_RESULT": str(result)}
    run_gdb(program, [SOURCE, f"trace open {capture}", "trace replay", READER], gdb=gdb, **files)
    found = json.loads(result.read_text())
    for position, model in chosen.items():
        here = found[str(position + 1)]
        assert here["registers"].pop("pc") == model.pc
        for register, value in here["registers"].items():
            assert value == model.registers.get(register, value), (position, register)
            counts = CSRS.get(register, 0) & 0xF00 in (0xB00, 0xC00)
            assert value is not None or register not in model.registers or counts, (position, register)
        for address, byte in here["memory"].items():
            assert byte == model.memory.get(int(address), byte), (position, address)


SOURCE_CODE = """
    struct padded { char letter; long number; };
    struct tree { struct tree *left, *right; int key; int unused; };
    int table[4] = {5, 6, 7, 8};
    volatile int result;
    double scale = 0.5;
    void on_trap(void) {}
    __attribute__((noinline)) int depth(const struct tree *tree, int level)
    {
        volatile int seen[2] = {tree->key, level};
        if (tree->left)
            return depth(tree->left, level + 1) + seen[0];
        return seen[1];
    }
    __attribute__((noinline)) double scaled(int value) { return value * scale; }
    __attribute__((noinline)) void finish(int value) { result = value; }
    int main(void)
    {
        __asm__ volatile("csrs mstatus, %0" : : "r"(0x2000));
        struct tree leaf = {0, 0, 3, 0}, node = {&leaf, &leaf, 2, 0}, root = {&node, 0, 1, 0};
        volatile struct padded padded;
        padded.letter = 'x';
        padded.number = 77;
        int count = result + 3;
        volatile short lengths[count];
        for (int i = 0; i < count; i++)
            lengths[i] = 7 + i;
        for (int i = 0; i < 4; i++)
            table[i] += depth(&root, i);
        result = count;
        table[0] += (int)scaled(table[1]);
        finish(table[0] + padded.number);
        return 0;
    }
"""
ASKED = (
    f"info registers {INTEGERS}",
    "info registers pc fa0 fa4 fa5 fcsr mstatus mepc mcause mtvec priv", "backtrace", "output table",
    "output scale", "x/4xw table", "info locals", "info args", "x/4i $pc", "up", "info locals", "output leaf",
    "output root", "info registers pc sp s0 s1", "frame 0",
)  # fmt: skip


def spelled(commands: Sequence[str], times: int) -> list[str]:
    """The same commands, told apart by blanks at their ends: `run_gdb` returns what each printed by its text."""
    return [command + " " * times for command in commands]


@pytest.fixture(scope="module", params=[*GDBS[:1], *long_only(*GDBS[1:])])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What gdb said in a session on the simulated target; at each place as often as it was there."""
    folder = tmp_path_factory.mktemp("tandem")
    (folder / "state.c").write_text("\n".join(line[4:] for line in SOURCE_CODE.splitlines()))
    elf = compile_program(folder, folder / "state.c", march="rv64gc")
    commands = ["trace start", "break depth if level == 5", "break scaled", "tbreak finish", "continue", "stepi 9"]
    commands += [*spelled(ASKED, 1), "continue ", *spelled(ASKED, 2), "delete 1 2", "continue  ", *spelled(ASKED, 3)]
    commands += [
        "reverse-step",
        "trace goto scaled",
        *spelled(ASKED, 4),
        "finish",
        "reverse-finish ",
        "print $trace_pos",
    ]
    commands += ["trace goto depth", "reverse-finish", "reverse-finish  ", "finish ", "trace goto depth ", "bt full"]
    commands += ["set backtrace past-main on", "backtrace 9", "set backtrace past-main off"]
    commands += ["frame 3", "print i", "print padded", "trace print padded", "trace print /x padded.number"]
    commands += ["trace print nothing", "trace print /q i", "set var table[0] = 1", "frame 0 ", "reverse-next", "frame"]
    commands += ["trace live", *spelled(ASKED, 5)]
    with Rig(elf, folder / "rig", "--tandem", str(folder / "x.tvt")) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
        return run_gdb(elf, [*begin, *commands], gdb=request.param)


def known(text: str) -> list[str]:
    """Without the structure that has bytes nobody ever wrote: gdb cannot read it as a whole."""
    return [line for line in text.splitlines() if not line.startswith("padded = ")]


@thorough("endtoend/tandem/test_live.py::test_the_past_is_as_the_present_was")
def test_as_it_was_live(told: dict[str, str]) -> None:
    """In the past of a place where gdb was before: the same, word for word."""
    for command in ASKED:
        assert known(told[command + " " * 4]) == known(told[command + " " * 2]), command
        assert told[command + " " * 5] == told[command + " " * 3], command
    assert "fa0" in told["info registers pc fa0 fa4 fa5 fcsr mstatus mepc mcause mtvec priv" + " " * 4]
    assert "{10, 12, 14, 16}" in told["output table" + " " * 4]
    assert "value = 12\n" in told["info args" + " " * 4]


def test_functions_and_their_values(told: dict[str, str]) -> None:
    """Of the source: scaled(12) is 6; the last depth(&root, 3) is 1 + 2 + 5."""
    assert "= 6\n" in told["finish"]
    assert "= 8\n" in told["finish "]
    assert "level=level@entry=5" in told["trace goto depth"]
    assert "level=level@entry=4" in told["reverse-finish"]
    assert "level=level@entry=3" in told["reverse-finish  "]
    assert "level=level@entry=4" in told["frame"]


def test_all_variables_of_all_frames(told: dict[str, str]) -> None:
    text = told["bt full"]
    assert [line.split()[0] for line in text.splitlines() if line.startswith("#")] == ["#0", "#1", "#2", "#3"]
    for line in ("i = 3", "leaf = {left = 0x0, right = 0x0, key = 3, unused = 0}", "seen = {2, 4}", "seen = {1, 3}"):
        assert f"        {line}\n" in text
    assert "        padded = {letter = 120 'x', number = 77}\n" in text
    assert "        lengths = {7, 8, 9}\n" in text
    assert told["print i"].endswith("= 3\n")
    assert " in _start () at " in told["backtrace 9"]  # the call is the last there, before _exit


def test_what_is_not_known(told: dict[str, str]) -> None:
    """The bytes between the members were never written."""
    assert "Cannot access memory" in told["print padded"]
    assert told["trace print padded"] == "= {letter = 120 'x', number = 77}\n"
    assert told["trace print /x padded.number"] == "= 0x4d\n"
    assert told["trace print nothing"].startswith("trace print: No symbol")
    assert told["trace print /q i"].startswith("Usage: trace print")
    assert "Cannot access memory" in told["set var table[0] = 1"]


def test_a_capture_alone(tmp_path: Path) -> None:
    """Of a core whose program has no floating point, no frame information and traps."""
    capture, program = capture_of("piccolo_rv32-hello", tmp_path)
    commands = [
        "backtrace",
        "trace goto ns16550_txchar",
        "backtrace ",
        "finish",
        "print $f0",
        "print $mepc",
        "print $priv",
    ]
    commands += ["continue", "print $trace_pos", "print $pc", "print $sp = 1", "trace goto begin", "info registers sp"]
    said = run_gdb(program, [SOURCE, f"trace open {capture}", "trace replay", *commands])
    assert "#0  ns16550_txchar (c=33)" in said["backtrace "] and "#5  0xc0000aa4 in main (argc=0," in said["backtrace "]
    assert '_write (file=1, ptr=0xc0002e01 "", len=1)' in said["finish"]
    assert "= 10\n" in said["finish"]  # what the core wrote to a0 last
    assert "<unavailable>" in said["print $f0"] and "<unavailable>" in said["print $mepc"]
    assert said["print $priv"].endswith("= 3\n")
    length = len(decoded("piccolo_rv32-hello").history)
    assert said["print $trace_pos"].endswith(f"= {length + 1}\n")  # behind all that ran
    assert "error" not in said["print $pc"] and "<unavailable>" in said["info registers sp"]
    assert "not write" in said["print $sp = 1"]


def test_gaps_one_after_the_other(tmp_path: Path) -> None:
    """What happened in a gap led to the place behind it: the last one before that is another."""
    data, program = trace_bytes("piccolo_rv32-hello"), DATA / "riscv-tests" / "rv32-hello"
    at = [len(data) // 3, len(data) * 2 // 3]
    (tmp_path / "x.tvt").write_bytes(b"".join((data[: at[0]], data[at[0] + 99 : at[1]], data[at[1] + 99 :])))
    command = ["import", "--tandem", "--dialect", "piccolo", "--elf", program, "--quiet", "-o", tmp_path / "x.rvt"]
    assert main([*map(str, command), str(tmp_path / "x.tvt")]) == 0
    went = ["trace goto event loss" + " " * n for n in range(3)]
    commands = [command for line in went for command in (line, "print $trace_pos" + line[21:])]
    said = run_gdb(program, [SOURCE, f"trace open {tmp_path / 'x.rvt'}", "trace replay", *commands])
    second, first, _ = (int(said["print $trace_pos" + " " * n].split()[-1]) for n in range(3))
    assert first < second and "there is none before this place" in said[went[2]]
