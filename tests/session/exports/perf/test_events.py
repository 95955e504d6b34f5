"""The events of `rvtrace perf-script` are what a hart ran, stepped: instructions, transfers, samples, stacks."""

import re
from collections import Counter
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.ntrace.messages import split
from tests.reports.coverage import traced
from tests.session.exports import exported
from tests.session.exports.exported import export, options, retired, stream
from tests.session.exports.perf.test_exports import stackcollapse
from tests.session.exports.perf.traced_program import TracedProgram, disassembly, made, name_of, script_of


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> TracedProgram:
    return made(tmp_path_factory.mktemp("perf"))


def addresses(line: str) -> list[int]:
    return [int(it, 16) for it in re.findall(r"\b([0-9a-f]{8})\b", line)]


def entries(line: str) -> list[tuple[int, int]]:
    """The transfers of a branch stack."""
    return [(int(source, 16), int(target, 16)) for source, target in re.findall(r" 0x(\w+)/0x(\w+)/P/-/-/0/", line)]


def test_each_instruction_is_there_with_its_bytes_and_text(program: TracedProgram) -> None:
    lines = program.script("--insn-trace", "-F", "+insn,insnlen".replace(",", ",+"))
    pattern = r" *hart0 +1 \[000\] +0\.\d{9}: +(\w+) (\w+)\+0x(\w+) \((.*)\) ilen: (\d) insn: ([\w ]+)\t\t(.*)"
    rows = [re.fullmatch(pattern, line) for line in lines]
    assert [int(row[1], 16) for row in rows if row] == program.pcs and len(rows) == len(program.pcs)
    listed, code = disassembly(program.elf), exported.binutils("objdump", "-d", str(program.elf))
    encodings = {int(at, 16): word for at, word in re.findall(r"^ *(\w+):\t([0-9a-f]+) ", code, re.MULTILINE)}
    for row in filter(None, rows[:300]):
        pc = int(row[1], 16)
        assert (row[2], row[4], int(row[5])) == (name_of(program.elf, pc), str(program.elf), len(encodings[pc]) // 2)
        assert bytes.fromhex(row[6])[::-1].hex() == encodings[pc]
        assert row[7].split()[0] == listed[pc].split("\t")[0] or row[7].split()[0] in ("add", "sllw")


def test_each_transfer_is_there_with_its_kind(program: TracedProgram) -> None:
    lines = program.script("--itrace=b", "-F", "flags,ip,addr")
    rows = [re.fullmatch(r"  (\S.*?) +(\w+) => +(\w+)", line) for line in lines]
    found = [(row[1], int(row[2], 16), int(row[3], 16)) for row in rows if row]
    assert len(found) == len(lines) and found[0] == ("tr strt", 0, program.pcs[0])
    assert found[-1] == ("tr end", program.pcs[-1], 0)
    transfers = program.transfers()
    assert [it[1:] for it in found[1:-1]] == [it[1:] for it in transfers]
    for kind, source, _ in found[1:-1]:
        name, _, operands = disassembly(program.elf)[source].partition("\t")
        links = name in ("jal", "jalr") and not operands.startswith("zero")
        expected = "return" if name == "ret" else "call" if links else "jmp" if name in ("j", "jr") else "jcc"
        assert kind == expected and (expected != "jcc" or name.startswith("b"))
    assert {kind for kind, _, _ in found} == {"tr strt", "tr end", "call", "return", "jcc", "jmp"}


def test_a_sample_has_the_transfers_before_it(program: TracedProgram) -> None:
    """Every 50 instructions, whatever is asked for besides."""
    lines = program.script("--itrace=i50ibl8", "-F", "event,period,ip,brstack")
    samples = [line for line in lines if "instructions: " in line]
    transfers = program.transfers()
    assert len(samples) == len(program.pcs) // 50 > 20
    for number, line in enumerate(samples, 1):
        at = number * 50 - 1
        before = [(pc, to) for index, pc, to in transfers if index < at][-8:]
        assert int(line.split()[0]) == 50 and addresses(line)[0] == program.pcs[at]
        assert entries(line) == before[::-1]
    assert sum("branches: " in line for line in lines) == len(transfers) + 2


def test_a_call_chain_is_the_calls_under_way(program: TracedProgram) -> None:
    lines = "\n".join(program.script("--itrace=i97ig64", "-F", "ip,sym")).split("\n\n")
    chains = [[int(line.split()[0], 16) for line in part.splitlines() if line] for part in lines]
    expected = [program.chain_at(at) for at in range(96, len(program.pcs), 97)]
    assert [chain for chain in chains if chain] == expected
    assert max(map(len, expected)) > 4
    short = "\n".join(program.script("--itrace=i97ig2", "-F", "ip")).split("\n\n")
    assert [part.split() for part in short if part] == [[f"{pc:x}" for pc in chain[:2]] for chain in expected]


def test_calls_are_indented_by_their_callers(program: TracedProgram) -> None:
    lines = program.script("--call-trace", "-F-comm,-tid,-cpu,-time")
    found = [line.rstrip() for line in lines]
    calls = [f"{'':{4 * len(back)}}{name_of(program.elf, to)}" for _, to, back in program.calls()]
    assert found[: len(calls)] == calls and len(calls) > 20
    both = program.script("--call-ret-trace", "-F-comm,-tid,-cpu,-time")
    returned = [line for line in both if line.startswith("  return ")]
    called = [line for line in both if line.startswith("  call ")]
    assert len(called) == len(calls) and 0 < len(returned) <= len(calls)
    assert Counter(line.split()[-1] for line in returned) <= Counter(line.split()[-1] for line in called)


@pytest.mark.parametrize("words", [["--insn-trace"], ["--call-ret-trace"], ["--itrace=b", "-F", "+flags"]])
def test_a_part_has_the_lines_of_the_whole(program: TracedProgram, words: list[str]) -> None:
    """But for the transfer out of it."""

    def ran_at(line: str) -> int:
        found = re.search(r" 0\.(\d{9}): ", line)
        assert found is not None
        return int(found[1])

    part = program.script("401,1400", *words)
    assert part == [
        line for line in program.script(*words) if 400 <= ran_at(line) <= 1399 - ("--insn-trace" not in words)
    ]
    assert len(part) > 50


def test_flamegraph_adds_up_every_instruction(program: TracedProgram) -> None:
    """What stackcollapse-perf.pl makes of a sample for each instruction are the folded stacks."""
    text = "\n".join(program.script("--itrace=i1ig1024")) + "\n"
    found = stackcollapse(text)
    folded = export("folded", program.capture.with_suffix(".folded"), program.capture, []).decode().splitlines()
    expected = {stack.replace("hart 0", "hart0"): int(count) for stack, _, count in (x.rpartition(" ") for x in folded)}
    assert found == expected and sum(found.values()) == len(program.pcs)


def test_samples_by_time_have_all_ticks(tmp_path: Path) -> None:
    """Of two harts with a time for each message; a sample ends where its ticks are over."""
    trace, words = exported.two_harts(tmp_path)
    lines = script_of([str(trace), *words, "--itrace=i100ty100t", "-F", "cpu,time,event,period,ip"])
    rows = [re.fullmatch(r"\[(\d+)\] +0\.(\d{9}): +(\d+) +(\w+): +(\w+)", line) for line in lines]
    ran = retired("median")
    for hart in (1, 2):
        mine = [row for row in rows if row and int(row[1]) == hart]
        done = 0
        instructions, ticks = ([row for row in mine if row[4] == kind] for kind in ("instructions", "ticks"))
        for row in instructions:
            done += int(row[3])
            assert ran[done - 1] == int(row[5], 16)
        assert len(ticks) == len(instructions) > 10 and all(int(row[3]) >= 100 for row in ticks)
        assert sum(int(row[3]) for row in ticks) % 10 == 0, "each message is 10 ticks after the one before"
    times = [int(row[2]) for row in rows if row]
    assert times == sorted(times) and len(times) == len(lines)


def test_what_is_missing_is_an_error_at_its_place(program: TracedProgram, tmp_path: Path) -> None:
    """A message in the middle is missing, and the next synchronization comes soon."""
    whole = traced.trace(program.elf, program.pcs, tmp_path / "it.bin", "--sync-mode", "messages")
    messages = split(whole.read_bytes())
    middle = len(messages) // 2
    whole.write_bytes(b"".join(messages[:middle]) + b"\x00\x55\xaa\x03" + b"".join(messages[middle + 1 :]))
    words = [str(whole), "--ntrace", "--elf", str(program.elf)]
    lines = script_of([*words, "--itrace=bei1000i", "-F", "event,ip,addr"])
    [error] = [line for line in lines if line.startswith(" instruction trace error type 1 ")]
    last = re.search(r" cpu 0 pid 1 tid 1 ip 0x(\w+) code 0: lost: .*; trace byte 0x", error)
    assert last is not None
    at = lines.index(error)
    assert re.fullmatch(rf" *branches: +{last[1]} => +0", lines[at - 1])
    assert re.fullmatch(r" *branches: +0 => +\w+", lines[at + 1])
    pcs = [int(line, 16) for line in script_of([*words, "--itrace=i1i", "-F", "ip"])]
    assert len(pcs) < len(program.pcs) and pcs[-50:] == program.pcs[-50:] and pcs[:50] == program.pcs[:50]
    stacks = [entries(line) for line in script_of([*words, "--itrace=i1il4", "-F", "ip,brstack"])]
    [begin] = [number for number, stack in enumerate(stacks) if not stack and number > 20][:1]
    assert pcs[begin] == addresses(lines[at + 1])[-1], "the branch stack begins anew behind the gap"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--itrace=x"], "--itrace=x: x: give letters of i, y, b, c, r, e, g, l, as in i1000igl32"),
        (["--itrace="], "no event"),
        (["--itrace=bg"], "g and l belong to samples"),
        (["--itrace=i1000"], "i1000: 1000 of what: give instructions, 1000i, or ticks, 1000t"),
        (["--itrace=i10us"], "a trace has ticks, not seconds"),
        (["--itrace=ig2000"], "g2000: give 1 to 1024"),
        (["--itrace=il0"], "l0: give 1 to 1024"),
        (["--itrace=y"], "y: give the ticks"),
        (["--itrace=i9t"], "the trace of hart 0 has no times that rise"),
        (["-F", "ip,phase"], "-F ip,phase: there is no field phase"),
        (["-F", "+ip,sym"], "either each field has + or - in front, or none"),
        (["1-2"], "1-2: no RANGE"),
        (["1,2", "--time", "3"], "range and time"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace = [str(stream("median")), *options("median")]
    assert main(["perf-script", trace[0], *words, *trace[1:], "--quiet"]) == 1
    assert why in capsys.readouterr().err


def test_every_instruction_is_what_i0ns_asks_for() -> None:
    words = [str(stream("median")), "1,50", *options("median"), "-F", "ip"]
    assert script_of([*words, "--itrace=i0ns"]) == [f" {pc:16x}" for pc in retired("median")[:50]]
