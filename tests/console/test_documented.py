"""The command lines in README.md and docs/ do what they say, as they stand there."""

import re
import shlex
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.tandem.encoder import GroupEncoder
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.capture import file as capture_file
from tests.console.options.beginnings import beginning
from tests.console.verbs import VERBS, parser_of
from tests.decode.branches.gem5_probe import Probe, commits_of, compressed
from tests.decode.branches.test_ctxp import HEADER, lines_of
from tests.decode.branches.test_tacit import executed, naive
from tests.decode.etrace.esp32 import images
from tests.decode.etrace.vectors import ROOT
from tests.decode.executed.logs import PROGRAMS, spike_log
from tests.helpers.amounts import LONG
from tests.helpers.commit_logs import encode_log
from tests.helpers.event_traces import ELF, EVENTS, written
from tests.helpers.started_python import rvtrace
from tests.helpers.task_systems import small
from tests.session.description import devicetrees
from tests.session.perf_data.recorded import with_trace
from tests.session.tasks.captures import captured
from tests.transport.simulated.hart.programs import build

HOME = Path(__file__).resolve().parent.parent.parent
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
BLOCK = re.compile(r"^    (rvtrace .*?)(?: +#.*)?$", re.MULTILINE)
WITH_A_TARGET = {"init", "sim", "qemu", "console", "run", "usb", "serve", "mcp"}
"""Commands that are one, or need one, as what listens to a probe does: here it is only seen that they can be read."""
TRIED = {"rvtrace demo": "tests/endtoend/test_demo.py"}
"""Command lines that are tried elsewhere, and where."""
INLINE = re.compile(r"`(rvtrace [a-z-]+ [^`]*)`")


def documented(pattern: re.Pattern[str]) -> list[str]:
    return sorted({found for page in PAGES for found in pattern.findall(page.read_text(encoding="utf-8"))})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the files that the commands name."""
    folder = tmp_path_factory.mktemp("documented")
    elf = build(folder, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
    elf.rename(folder / "app.elf")
    log = spike_log(folder / "app.elf", folder, "-l", lines=30_000 if LONG else 8_000)
    for name in ("spike.log", "app.log"):
        (folder / name).write_bytes(log.read_bytes())
    pcs = re.findall(r"^core   0: (0x0*8[0-9a-f]{7}) ", log.read_text(), re.MULTILINE)
    (folder / "pcs.txt").write_text("\n".join(pcs))
    encode = ["encode", "--elf", str(folder / "app.elf"), "--pcs", str(log)]
    assert main([*encode, "-o", str(folder / "x.rvt")]) == 0
    for name in ("a", "b", "c", "good", "bad", "old", "new", "ok1", "ok2", "fail1"):
        (folder / f"{name}.rvt").write_bytes((folder / "x.rvt").read_bytes())
    (folder / "new.elf").write_bytes((folder / "app.elf").read_bytes())
    assert main([*encode, "--src-bits", "2", "--src-id", "1", "-o", str(folder / "raw.bin")]) == 0
    framed = ["--src-bits", "2", "--src-id", "1", "--frames", "coresight", "--atb-id", "0x10"]
    assert main([*encode, *framed, "-o", str(folder / "etr.bin")]) == 0
    data = beginning(ROOT / "data" / "basic" / "qsort.te_data_raw", 2000, folder)
    told = [str(data), "--etrace", "--encapsulation", "smi"]
    told += ["--data-reference", "--parameters", str(ROOT / "data" / "basic" / "hw.scf"), "--lrid-width", "0"]
    told += ["--elf", str(ROOT / "qsort" / "qsort.riscv"), "-o", str(folder / "data.rvt")]
    assert main(["import", *told]) == 0
    (folder / "events.rtd").write_bytes(EVENTS + written(0, b"a line\n"))
    assert main(["import", str(folder / "events.rtd"), "--ntrace", "--elf", ELF, "-o", str(folder / "events.rvt")]) == 0
    (folder / "etrace").mkdir()
    (folder / "etrace" / "app.elf").write_bytes((folder / "app.elf").read_bytes())
    for_raw = ["--etrace", "--support", "standard", "-o", str(folder / "etrace" / "raw.bin")]
    assert main([*encode, *for_raw]) == 0
    _esp32(folder / "esp32")
    _branches(folder)
    [sink] = capture_file.load(folder / "x.rvt").sinks
    (folder / "perf.data").write_bytes(with_trace(folder / "app.elf", [(sink.data, 0)]))
    _tandem(folder)
    (folder / "rtos.rvt").write_bytes(captured(small(folder, "rtthread")).file.read_bytes())
    (folder / "board").mkdir()
    (folder / "board" / "board.dtb").write_bytes(devicetrees.blob("per_hart"))
    return folder


_PLACES = {
    "demo.": "tandem", "commits.log": "tandem", "logged.rvt": "tandem", "core.elf": "esp32",
    "crash.rvt": "esp32", "raw.bin --elf app.elf --etrace": "etrace", "board.dtb": "board",
    "pairs.txt": "neorv32", "trace.bin --tacit": "branches", "trace.ctxp": "branches",
    "etrace.pb.gz": "branches",
}  # fmt: skip
"""Folders whose files of the same names are others."""


def _tandem(folder: Path) -> None:
    """With the program as demo.elf, and what it did as a tandem trace."""
    place, sent = folder / "tandem", bytearray()
    place.mkdir()
    (place / "demo.elf").write_bytes((folder / "app.elf").read_bytes())
    logged = spike_log(place / "demo.elf", place, "-l", "--log-commits", lines=6_000)
    (place / "app.elf").write_bytes((folder / "app.elf").read_bytes())
    (place / "commits.log").write_bytes(logged.read_bytes())
    with Log(str(logged)) as log:
        encode_log(CommitLog(log, 64), GroupEncoder(TandemParameters(64, 64), sent.extend))
    (place / "demo.tvt").write_bytes(sent)
    told = ["--tandem", "--elf", str(place / "demo.elf"), "-o", str(place / "demo.rvt")]
    assert main(["import", str(place / "demo.tvt"), *told]) == 0
    assert main(["note", str(place / "demo.rvt"), "--at", "40", "here", "--quiet"]) == 0
    assert main(["pack", str(place / "demo.rvt"), "-o", str(place / "demo.rvtz"), "--quiet"]) == 0


def _branches(folder: Path) -> None:
    """With what docs/branches.md names."""
    (folder / "neorv32").mkdir()
    for name, file in (("app.elf", "traced.elf"), ("pairs.txt", "pairs.txt")):
        (folder / "neorv32" / name).write_bytes((HOME / "tests" / "data" / "neorv32" / file).read_bytes())
    place = folder / "branches"
    place.mkdir()
    elf, items = executed("rv64imac", place)
    elf.rename(place / "app.elf")
    (place / "trace.bin").write_bytes(naive(items))
    (place / "trace.ctxp").write_text(HEADER + "".join(f"{line}\n" for line in lines_of(items)))
    probe = Probe()
    for commit in islice(commits_of(items, modes=False), 1000):
        probe.commit(commit)
    (place / "etrace.pb.gz").write_bytes(compressed(probe.end()))


def _esp32(folder: Path) -> None:
    """With what docs/esp32.md names."""
    folder.mkdir()
    (folder / "app.elf").write_bytes(images.ELF.read_bytes())
    buffer = images.stream("pt10")
    (folder / "core.elf").write_bytes(images.elf_core([images.Described(buffer + bytes(48), len(buffer))]))
    command = ["import", str(folder / "core.elf"), "--elf", str(folder / "app.elf"), "-o", str(folder / "crash.rvt")]
    assert main(command) == 0


def ended(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A command line, in *folder*, to its end; with a shell if it needs one."""
    if not set("|<>$&;`*").intersection(line):
        return rvtrace(*shlex.split(line)[1:], cwd=folder)
    command = line.replace("rvtrace", f"PYTHONPATH={HOME} {sys.executable} -m rvtrace_gdb", 1)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("line", documented(BLOCK))
def test_a_command_line_works(line: str, folder: Path) -> None:
    """What may be left out is in brackets: there it is once with and once without."""
    words = shlex.split(line)
    if words[1] in WITH_A_TARGET or "tcp:" in line or line in TRIED:
        parser().parse_args(words[1:])
        return
    line = line.replace(" [options of the encoder]", "")
    place = folder / _PLACES.get(next((word for word in _PLACES if word in line), ""), "")
    for spelled in {re.sub(r"\[(.*?)\]", kept, line) for kept in ("", r"\1")}:
        done = ended(spelled, place)
        assert (done.returncode, "warning:" in done.stderr + done.stdout) == (0, False), done.stderr
        output = re.search(r"(?:-o|--html) (\S+)", spelled)
        assert done.stdout or (output and (place / output[1]).stat().st_size)


@cache
def help_of(verb: str) -> str:
    """What --help-all prints, if the command has it, else --help."""
    if verb == "help":  # the word after it is a page, and no option
        return ""
    made = parser_of(VERBS[verb])
    text = made.format_help()
    return made.format_page("all") if "--help-all" in text else text


@pytest.mark.parametrize("line", documented(INLINE))
def test_options_named_in_the_text_exist(line: str) -> None:
    _, command, *words = line.split()
    known = help_of(f"{command} {words[0]}" if command == "tandem" else command)
    assert [word for word in words if word.startswith("--") and word not in known] == []
