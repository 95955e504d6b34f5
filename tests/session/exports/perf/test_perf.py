"""A perf.data with events is read by Debian's perf, by llvm-profgen through it, and by create_llvm_prof."""

import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.export import named, write
from rvtrace_gdb.session.exports.perf.event_text import ScriptText
from rvtrace_gdb.session.exports.perf.fields import fields_of
from rvtrace_gdb.session.exports.perf.itrace import itrace_of
from rvtrace_gdb.session.exports.selection import ExportOptions
from rvtrace_gdb.session.exports.selection import exported as exported_trace
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.console.options.beginnings import beginning
from tests.helpers.amounts import thorough
from tests.helpers.core_captures import sifive
from tests.session.exports import exported
from tests.session.exports.exported import export, options
from tests.session.exports.perf.test_exports import profgen
from tests.session.exports.perf.traced_program import (
    TracedProgram,
    disassembly,
    following,
    functions,
    made,
    made_like_linux,
    name_of,
    perf,
    script_of,
)
from tests.transport.simulated.encoder.traces import HTM, LOW, TIME, compiled, machine_with, trace


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> TracedProgram:
    return made(tmp_path_factory.mktemp("perf"))


def without_offsets(lines: list[str]) -> list[str]:
    """Without the addresses of call chains: perf 6.1 shows where they are in their file, and where a call is the last
    instruction of a function, the file has an address in the call.
    """
    return [re.sub(r"^\t *\w+ (\w+)\+0x\w+", r"\t\1", line) for line in lines]


FIELDS = "comm,pid,tid,cpu,time,event,period,ip,sym,symoff,dso"


@pytest.mark.parametrize(
    ("itrace", "words"),
    [
        ("b", ["--show-mmap-events"]),
        ("cr", ["-F", "+srcline,+addr"]),
        ("i1i", []),
        ("i30il5", ["-F", "ip,sym,brstack"]),
        ("i30ig", []),
        ("i30igl3", ["-F", f"{FIELDS},brstack".replace("dso,", "")]),
        ("i30ib", ["-F", FIELDS]),
    ],
)
def test_perf_script_prints_what_rvtrace_prints(program: TracedProgram, itrace: str, words: list[str]) -> None:
    """Whose events are what ran (test_events.py)."""
    ours, theirs = program.script(f"--itrace={itrace}", *words), program.perf_script(itrace, *words)
    assert without_offsets(ours) == without_offsets(theirs) and len(ours) > 30


def test_harts_are_merged_and_losses_are_errors(tmp_path: Path) -> None:
    trace, words = exported.two_harts(tmp_path)
    export("perf-data", tmp_path / "two", trace, words, "--itrace", "b")
    chosen = "-F", "cpu,time,ip,addr"
    theirs = perf("script", "--ns", *chosen, data=tmp_path / "two").splitlines()
    assert script_of([str(trace), *words, "--itrace=b", *chosen]) == theirs and len(theirs) > 1000
    export("perf-data", tmp_path / "lost", exported.damaged(tmp_path), options("towers"), "--itrace", "ei1000i")
    said = perf("script", data=tmp_path / "lost")
    assert len(re.findall(r"^ instruction trace error type 1 .*: lost: ", said, re.MULTILINE)) == 1


def test_no_room_for_temporary_files_is_said(
    program: TracedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    words = ["export", str(program.capture), "--to", "perf-data", "-o", str(tmp_path / "it"), "--quiet"]
    assert main(words) == 1
    assert f"{tmp_path}/missing: cannot be written: No such file or directory" in capsys.readouterr().err
    assert not (tmp_path / "it").exists()


def test_traps_and_times_are_those_of_the_hart(tmp_path: Path) -> None:
    """Of a 32-bit hart with interrupts and times: its transfers, and perf."""
    elf = compiled(tmp_path, "rv32imac", LOW, "user.c", "-g")
    ran = trace(machine_with(elf), elf, HTM, timestamps=TIME, instructions=2000)
    file, words = tmp_path / "it.bin", ["--ntrace", "--timestamps", "--elf", str(elf)]
    file.write_bytes(ran.data)
    rows = [line.split() for line in script_of([str(file), *words, "--itrace=b", "-F", "ip,addr,flags"])[1:-1]]
    found = [(" ".join(kind), int(source, 16), int(target, 16)) for *kind, source, _, target in rows]
    behind, jumps = following(elf), {pc for pc, text in disassembly(elf).items() if text.startswith(("j", "ret"))}
    steps = pairwise(ran.retired)
    assert [it[1:] for it in found] == [(pc, to) for pc, to in steps if behind.get(pc) != to or pc in jumps]
    returns = [kind for kind, source, _ in found if disassembly(elf)[source] == "mret"]
    interrupts = {target for kind, _, target in found if kind == "hw int"}
    assert set(returns) == {"iret"} and 0 < len([kind for kind, *_ in found if kind == "hw int"]) <= len(returns)
    assert len(interrupts) == 1 and interrupts <= set(functions(elf)), "the trap vector"
    for itrace in ("cr", "i50ty50t"):
        export("perf-data", tmp_path / itrace, file, words, "--itrace", itrace)
        chosen = "-F", "time,event,period,ip,addr" if itrace == "cr" else "time,event,period,ip"
        theirs = perf("script", "--ns", *chosen, data=tmp_path / itrace).splitlines()
        assert theirs == script_of([str(file), *words, f"--itrace={itrace}", *chosen]) and len(theirs) > 10


@thorough("session/exports/perf/test_processes.py::test_a_context_is_a_process")
def test_contexts_are_processes(tmp_path: Path) -> None:
    """Of Linux on a P550 core, with its process 738 on two harts: perf, and the contexts of the history."""
    folder, file = sifive("linux-static"), tmp_path / "it.rvt"
    trace = beginning(sifive("linux-static.rtd"), 20_000, tmp_path)
    words = ["import", str(trace), "--dialect", "sifive", "--src-bits", "2", "--elf", str(folder / "gtod")]
    words += ["--maps", f"738={folder / 'gtod.map'}", "--kernel-pages", str(folder / "kmem"), "-o", str(file)]
    assert main([*words, "--quiet"]) == 0
    session, form, fields = Session(), named("perf-data"), "comm,pid,tid,cpu,ip"
    session.open(file, None)
    traces = exported_trace(session, Context(), form, ExportOptions(itrace="i1i"))
    with (tmp_path / "it").open("wb") as data:
        write("perf-data", traces, data)
    theirs = perf("script", "-F", fields, data=tmp_path / "it").splitlines()
    text = ScriptText(traces, itrace_of("i1i"), fields_of(fields), silent)
    assert Counter(theirs) == Counter(b"".join(piece.text for piece in text.pieces()).decode().splitlines())
    for hart, history in session.harts().harts.histories.items():
        contexts = (history.context_at(at).scontext for at, pc in enumerate(history.pcs()) if pc >= 0)
        expected = Counter((f"context{pid}", pid) if pid else (f"hart{hart}", hart + 1) for pid in contexts)
        if ("context738", 738) in expected:
            expected["gtod.map", 738] = expected.pop(("context738", 738))
        rows = (re.fullmatch(rf" *(\S+) +(\d+)/\2 +\[{hart:03d}\] +\w+", line) for line in theirs)
        assert Counter((row[1], int(row[2])) for row in rows if row) == expected
    assert any(" 738/738 " in line for line in theirs)


def test_perf_report_counts_instructions_by_functions(program: TracedProgram) -> None:
    report = perf("report", "--stdio", "-s", "symbol", "-n", data=program.perf_data("i1i"))
    found = Counter[str]()
    for times, name in re.findall(r"^ +[\d.]+% +(\d+)  \[\.\] (\S+)", report, re.MULTILINE):
        found[name] += int(times)
    assert found == Counter(name_of(program.elf, pc) for pc in program.pcs)


def test_perf_report_knows_callers(program: TracedProgram) -> None:
    """What is in a function and in all that it called."""
    words = "report", "--stdio", "--children", "-g", "none", "-s", "symbol"
    report, found = perf(*words, data=program.perf_data("i9ig64")), defaultdict[str, float](float)
    for share, name in re.findall(r"^ +([\d.]+)% +[\d.]+%  \[\.\] (\S+)", report, re.MULTILINE):
        found[name] += float(share)
    total = Counter[str]()
    sampled = range(8, len(program.pcs), 9)
    for at in sampled:
        total.update({name_of(program.elf, pc - (depth > 0)) for depth, pc in enumerate(program.chain_at(at))})
    assert found == {name: pytest.approx(100 * times / len(sampled), abs=0.016) for name, times in total.items()}


def test_perf_annotate_shows_where_samples_are(program: TracedProgram) -> None:
    words = "--stdio", "-l", "--objdump=riscv64-unknown-elf-objdump", "collatz"
    shown = perf("annotate", *words, data=program.perf_data("i1i"))
    rows = re.findall(r"^ +([\d.]+) .*: +([0-9a-f]{8}):", shown, re.MULTILINE)
    [start] = [at for at, name in functions(program.elf).items() if name == "collatz"]
    ran = Counter(pc for pc in program.pcs if name_of(program.elf, pc) == "collatz")
    found = {int(at, 16): float(share) for share, at in rows if float(share)}
    expected = {pc: pytest.approx(100 * times / ran.total(), abs=0.006) for pc, times in ran.items()}
    assert found == expected and start in ran


def test_llvm_profgen_takes_the_text_and_the_data(program: TracedProgram, tmp_path: Path) -> None:
    """It counts the transfers of the branch stacks; of the data it has perf print these."""
    chosen = "--itrace=i40il1024", "-F", "ip,brstack"
    text = tmp_path / "it.txt"
    text.write_text("\n".join(program.script(*chosen, "--show-mmap-events")) + "\n")
    _, branches = profgen(text, program.elf, [])
    expected, transfers = Counter[tuple[int, int]](), program.transfers()
    for at in range(39, len(program.pcs), 40):
        expected.update([(pc, to) for index, pc, to in transfers if index < at][-1024:])
    assert branches == expected
    outs = []
    for option, file in (("perfscript", text), ("perfdata", program.perf_data("i40il1024"))):
        outs.append(tmp_path / option)
        command = ["llvm-profgen-19", f"--{option}={file}", f"--binary={program.elf}", f"--output={outs[-1]}"]
        subprocess.run([*command, "--format=text"], check=True, capture_output=True)
    assert outs[0].read_text() == outs[1].read_text() != ""


def test_create_llvm_prof_reads_programs_of_linux(program: TracedProgram, tmp_path: Path) -> None:
    """Its counts are at most those of what ran, where a sample ends: what `rvtrace pgo` has."""
    linux, profiles = made_like_linux(tmp_path, program.pcs), []
    data, counts = tmp_path / "perf.data", tmp_path / "counts"
    assert main(["export", str(linux.capture), "--to", "perf-data", "-o", str(data), "--quiet"]) == 0
    assert main(["pgo", str(linux.capture), "--to", "autofdo", "-o", str(counts), "--quiet"]) == 0
    for profiler, profile in (("perf", data), ("text", counts)):
        out = tmp_path / profiler
        command = ["create_llvm_prof", f"--profiler={profiler}", f"--binary={linux.elf}", "--format=text"]
        subprocess.run([*command, f"--profile={profile}", f"--out={out}"], check=True, capture_output=True)
        rows = re.findall(rb"^ (\d{1,4}(?:\.\d+)?): (\d+)", out.read_bytes(), re.MULTILINE)
        profiles.append([(place, int(times)) for place, times in rows])
    [of_samples, exact] = profiles
    assert len(of_samples) > 20 and set(dict(of_samples)) <= set(dict(exact))
    assert 0.9 * sum(times for _, times in exact) < sum(times for _, times in of_samples)
