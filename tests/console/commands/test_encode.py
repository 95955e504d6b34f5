"""`rvtrace encode`: logs of real simulators become traces that decode to what those executed."""

import fcntl
import gzip
import hashlib
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.session import Session
from tests.decode.executed.logs import PROGRAMS, qemu_log, spike_log
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, long_only
from tests.transport.simulated.hart.programs import build
from tests.transport.simulated.hart.spike import Commit, SpikeTrap, run_spike

HOME = Path(__file__).resolve().parents[3]
T1 = ["--elf", str(reference_streams.FOLDER / "t1.elf"), "--pcs", str(reference_streams.FOLDER / "t1.pcs.gz")]
# How the reference encoder is built, see tests/decode/ntrace/test_reference.py.
AS_REFERENCE = ["--sync", "exit-from-reset", "--evcode", "debug-mode", "--icnt-limit", "0x200000"]
AS_REFERENCE += ["--indirect-without-hist", "--correlation-without-hist"]
MODES = {
    "0": ["--btm"],
    "1": [],
    "2": ["--repeated-history"],
    "3": ["--implicit-return", "full", "--return-depth", "8"],
    "4": ["--implicit-return", "full", "--return-depth", "8", "--repeated-history"],
}
T1_SIZES = {"0": 12978, "1": 3393, "2": 2628, "3": 3374, "4": 2604}


def encode(*words: object) -> None:
    assert main(["encode", *map(str, words)]) == 0


def test_the_stream_of_the_reference_encoder(tmp_path: Path) -> None:
    encode(*T1, "--ntrace", *AS_REFERENCE, *MODES["4"], "-o", tmp_path / "t1.nex")
    assert (tmp_path / "t1.nex").read_bytes() == (reference_streams.FOLDER / "t1.4.nex").read_bytes()


@pytest.mark.parametrize("mode", MODES)
def test_the_sizes_published_for_t1(mode: str, tmp_path: Path) -> None:
    encode(*T1, *AS_REFERENCE, *MODES[mode], "-o", tmp_path / "t1.nex")
    assert (tmp_path / "t1.nex").stat().st_size == T1_SIZES[mode]


@pytest.mark.parametrize("program", ["median", "towers", *long_only("dhrystone", "qsort")])
def test_a_run_of_spike_gives_the_streams_of_the_reference_encoder(program: str, tmp_path: Path) -> None:
    """Which were made of such a run."""
    elf = reference_streams.FOLDER / f"{program}.elf"
    log = spike_log(elf, tmp_path, "-l", extensions="IMAFDC")
    for mode, words in MODES.items():
        encode("--elf", elf, "--pcs", log, *AS_REFERENCE, *words, "-o", tmp_path / "out.nex")
        expected = (reference_streams.FOLDER / f"{program}.{mode}.nex").read_bytes()
        assert hashlib.sha256((tmp_path / "out.nex").read_bytes()).digest() == hashlib.sha256(expected).digest(), mode


OPTION_SETS = [
    "",
    "--btm",
    "--btm --repeat-branch --timestamps",
    "--implicit-return full --repeated-history",
    "--implicit-return counter --return-depth 3",
    "--implicit-return partial --partial-bits 6 --btm",
    "--sequential-jump --all-jumps --extend-addr-msb",
    "--sync-mode messages --sync-max 0 --linear-sync prog-trace-sync",
    "--timestamps --timestamp-sparse 3 --src-bits 3 --src-id 5 --context",
    "--dialect rc7 --icnt-limit 200 --icnt-full-sync",
    "--dialect sifive --repeated-history --icnt-limit 500 --timestamps",
    "--icnt-limit 50 --hist-limit 6 --hist-chunks 3,1,2 --idle-bytes 2 --field-padding 1",
    "--context --exact-context --no-b-type-extended",
]


OF_INTERRUPTS = [OPTION_SETS[number] for number in (0, 3, 6, 8, 12)]
"""Those that write something else where a trap is, or of an address of 32 bits, as the interrupted hart has them."""


@pytest.fixture(scope="module")
def executed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[int]]:
    """A program, the log of a run of it, and the addresses that the tests' own reading of Spike finds in such a run."""
    folder = tmp_path_factory.mktemp("executed")
    sources = {"calls_and_traps": ("start.S", PROGRAMS / "calls_and_traps.c"), "interrupts": ("interrupts.S",)}
    elf = build(folder, *sources[request.param], march="rv32imac" if request.param == "interrupts" else "rv64imac")
    run = run_spike(elf, folder, "IMAC", steps=25_000)
    log = spike_log(elf, folder, "-l", "--log-commits")
    return elf, log, [step.pc for step in run.steps if isinstance(step, Commit)]


@pytest.mark.parametrize(
    ("executed", "words"),
    [
        *(("calls_and_traps", words) for words in (OPTION_SETS if LONG else OPTION_SETS[::4])),
        *(("interrupts", words) for words in (OPTION_SETS if LONG else OF_INTERRUPTS)),
    ],
    indirect=["executed"],
)
def test_a_capture_decodes_to_what_spike_executed(
    words: str, executed: tuple[Path, Path, list[int]], tmp_path: Path
) -> None:
    elf, log, pcs = executed
    encode("--elf", elf, "--pcs", log, *words.split(), "--limit", len(pcs), "-o", tmp_path / "run.rvt")
    history = opened(tmp_path / "run.rvt")
    assert list(history.pcs()) == pcs
    wrong = {EventKind.LOSS, EventKind.OVERFLOW, EventKind.MISMATCH, EventKind.NOTE}
    assert not wrong & {event.kind for event in history.events}


def opened(capture: Path) -> History:
    session = Session()
    session.open(str(capture), None)
    return session.decoded()[0]


def test_traps_and_contexts_are_where_spike_has_them(tmp_path: Path) -> None:
    elf = build(tmp_path, "traps.S", march="rv64imac")
    run = run_spike(elf, tmp_path, "IMAC", steps=4000).steps
    retired = [step for step in run if isinstance(step, Commit)]
    log = spike_log(elf, tmp_path, "-l", "--log-commits")
    encode("--elf", elf, "--pcs", log, "--context", "--limit", len(retired), "-o", tmp_path / "run.rvt")
    history = opened(tmp_path / "run.rvt")
    assert [history.pc(i) for i in range(len(history))] == [step.pc for step in retired]
    assert [history.context_at(i).prv for i in range(len(history))] == [step.privilege for step in retired]
    before = 0
    expected = []
    for step in run:
        before += isinstance(step, Commit)
        if isinstance(step, SpikeTrap):
            expected.append((before, "interrupt" if isinstance(step.name, int) else "exception"))
    traps = [(event.position, event.text) for event in history.events if event.kind is EventKind.TRAP]
    assert traps == expected[: len(traps)]
    assert len(expected) - len(traps) <= 1  # one at the end of the run, whose handler never began


BY_INSTRUCTIONS = "--icnt-limit 300 --hist-limit 12"
BY_HALFWORDS = "--sync-mode halfwords --sync-max 2 --implicit-return full --repeated-history --sequential-jump"
BY_CYCLES = "--sync-mode cycles --sync-max 3 --timestamps --btm --repeat-branch"


@pytest.mark.parametrize(
    ("words", "march"),
    [
        (BY_INSTRUCTIONS, "rv64imac"), (BY_HALFWORDS, "rv32imac"),
        *long_only((BY_INSTRUCTIONS, "rv32imac"), (BY_HALFWORDS, "rv64imac")),
        (BY_CYCLES, "rv64imac"), *long_only((BY_CYCLES, "rv32imac")),
    ],
)  # fmt: skip
def test_spike_and_qemu_give_the_same_bytes(march: str, words: str, tmp_path: Path) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march=march)
    logs = {
        "spike": spike_log(elf, tmp_path, "-l"),
        "spike-commits": spike_log(elf, tmp_path, "-l", "--log-commits"),
        "qemu": qemu_log(elf, tmp_path, name="blocks.log"),
        "qemu-asm": qemu_log(elf, tmp_path, what="exec,nochain,int,in_asm", name="asm.log"),
        "qemu-single": qemu_log(elf, tmp_path, "-singlestep", name="single.log"),
    }
    traces = {}
    for name, log in logs.items():
        encode("--elf", elf, "--pcs", log, *words.split(), "--limit", 10_000, "-o", tmp_path / f"{name}.nex")
        traces[name] = (tmp_path / f"{name}.nex").read_bytes()
    assert len(traces["spike"]) > 500
    assert set(traces.values()) == {traces["spike"]}


def test_summary_and_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encode(*T1, *AS_REFERENCE, *MODES["4"])
    assert capsys.readouterr() == ("", "164959 instructions: 367 messages, 2604 bytes, 0.126 bits per instruction\n")
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    encode("--elf", elf, "--pcs", spike_log(elf, tmp_path, "--log-commits"))
    note, summary = capsys.readouterr().err.splitlines()
    assert note.startswith("note: ") and "guessed" in note
    assert re.fullmatch(r"\d+ instructions, \d+ traps: \d+ messages, \d+ bytes, [\d.]+ bits per instruction", summary)


def test_messages_do_not_count_idle_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encode(*T1, *AS_REFERENCE, *MODES["4"], "--idle-bytes", "3")
    assert f" 367 messages, {2604 + 3 * 367} bytes," in capsys.readouterr().err


def test_dump_is_that_of_rvtrace_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--timestamps", "--src-bits", "2", "--src-id", "1", "--limit", "5000"]
    encode(*T1, *words, "--dump", "-o", tmp_path / "t1.nex")
    printed = capsys.readouterr().out
    assert main(["dump", str(tmp_path / "t1.nex"), "--ntrace", "--timestamps", "--src-bits", "2", "--xlen", "32"]) == 0
    assert printed == capsys.readouterr().out
    assert printed.count("\n") > 10 and "ProgTraceSync" in printed.splitlines()[0]


def test_start_at_a_symbol_or_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(tmp_path, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    image = Image.from_elf(elf)
    log = spike_log(elf, tmp_path, "-l")
    for number, place in enumerate(["selected", "ackermann"]):
        encode("--elf", elf, "--pcs", log, "--start", place, "-o", tmp_path / f"{number}.nex")
        first = next(decode((tmp_path / f"{number}.nex").read_bytes(), image, Options()).pcs())
        assert image.symbol(first) == (place, 0)
        encode("--elf", elf, "--pcs", log, "--start", hex(first), "-o", tmp_path / "address.nex")
        assert (tmp_path / "address.nex").read_bytes() == (tmp_path / f"{number}.nex").read_bytes()
    assert main(["encode", "--elf", str(elf), "--pcs", str(log), "--start", "nowhere"]) == 1
    assert capsys.readouterr().err.count("\n") == 5  # four summaries and the error


def test_sync_and_evcode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for sync, evcode in (("exit-from-power-down", "low-power"), ("9", "1")):
        encode(*T1, "--sync", sync, "--evcode", evcode, "--limit", 5000, "--dump")
        lines = capsys.readouterr().out.splitlines()
        assert "SYNC=9" in lines[0] and "EVCODE=1" in lines[-1]
    encode(*T1, "--limit", 5000, "--dump")
    lines = capsys.readouterr().out.splitlines()
    assert "SYNC=5" in lines[0] and "EVCODE=4" in lines[-1]


def run(*words: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "rvtrace_gdb", "encode", *map(str, words)]
    return subprocess.run(command, cwd=HOME, input=stdin, capture_output=True, check=False)


def test_standard_input_and_output() -> None:
    with open(reference_streams.FOLDER / "t1.pcs.gz", "rb") as file:
        packed = file.read()
    for content in (packed, gzip.decompress(packed)):
        finished = run(*T1[:2], "--pcs", "-", *AS_REFERENCE, *MODES["4"], "-o", "-", stdin=content)
        assert finished.stdout == (reference_streams.FOLDER / "t1.4.nex").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--elf", "missing.elf", "--pcs", "x"], "missing.elf: cannot be read"),
        ([*T1[:2], "--pcs", "missing.log"], "missing.log: cannot be read: No such file or directory"),
        ([*T1, "-o", "/nowhere/x.nex"], "/nowhere/x.nex: cannot be written: No such file or directory"),
        ([*T1, "-o", "/nowhere/x.rvt"], "/nowhere/x.rvt: cannot be written: No such file or directory"),
        ([*T1, "-o", "."], ".: cannot be written: Is a directory"),
        ([*T1, "--dump", "-o", "-"], "--dump and -o - would both write to standard output"),
        (["--elf", T1[1], "--pcs", T1[1]], "is neither a list of addresses nor a log of Spike"),
        (["--elf", str(reference_streams.FOLDER / "median.elf"), *T1[2:]], "is this the right ELF?"),
        ([*T1, "--start", "nowhere"], "--start nowhere: neither an address nor a symbol of "),
        ([*T1, "--format", "spike"], "no instruction in it is where encoding can start"),
    ],
)
def test_errors_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("rvtrace: ") and captured.err.count("\n") == 1
    assert said in captured.err


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(gzip.decompress((reference_streams.FOLDER / "t1.pcs.gz").read_bytes()) + b"hello\n")
    out = tmp_path / "out.nex"
    out.write_bytes(b"old")
    assert main(["encode", *T1[:2], "--pcs", str(bad), "-o", str(out)]) == 1
    assert out.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "out.nex"]


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """While an endless log is read from a pipe."""
    out = tmp_path / "out.nex"
    command = [sys.executable, "-m", "rvtrace_gdb", "encode", *T1[:2], "--pcs", "-", "-o", str(out)]
    loop = gzip.decompress((reference_streams.FOLDER / "t1.pcs.gz").read_bytes())
    with subprocess.Popen(
        command,
        cwd=HOME,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_heed_ctrl_c,  # these tests may run in the background, where a shell has it ignored
    ) as process:
        assert process.stdin is not None
        process.stdin.write(loop)
        process.stdin.flush()
        unread = bytes(4)
        while not list(tmp_path.iterdir()) or any(fcntl.ioctl(process.stdin, termios.FIONREAD, unread)):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == b"rvtrace: interrupted\n"
    assert list(tmp_path.iterdir()) == []
