"""The command line as a whole."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from argparse import SUPPRESS
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import Subcommand, tandem
from rvtrace_gdb.console.help_pages import PAGES
from rvtrace_gdb.console.main import COMMANDS as TABLE
from rvtrace_gdb.console.main import main, parser
from tests.console.verbs import VERBS, check_all_are_tried, parser_of, verb_of
from tests.decode.tandem.corpus import DATA
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, long_only
from tests.helpers.event_traces import written
from tests.helpers.started_python import CLOSED, Started, rvtrace
from tests.session.description import devicetrees

HOME = Path(__file__).resolve().parent.parent.parent


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"rvtrace \d+\.\d+\.\d+, with(out)? the compiled kernel( \(.+\))?\n", capsys.readouterr().out)


def test_the_version_tells_that_the_kernel_is_left_out() -> None:
    command = [sys.executable, "-m", "rvtrace_gdb", "--version"]
    environ = {**os.environ, "RVTRACE_KERNEL": "0"}
    told = subprocess.run(command, cwd=HOME, env=environ, capture_output=True, text=True, check=True).stdout
    assert told.endswith(", without the compiled kernel (RVTRACE_KERNEL is 0)\n")


@pytest.mark.parametrize(("words", "same"), [
    ("help", "--help"), ("", "--help"), ("help gdb-script", "gdb-script --help"),
    ("version", "--version"), ("-V", "--version"),
])  # fmt: skip
def test_what_people_type_for_help_and_version(words: str, same: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for line in (words, same):
        with pytest.raises(SystemExit) as caught:
            main(line.split())
        assert caught.value.code == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize(("word", "line"), [
    ("decod", "there is no command decod: did you mean `rvtrace decode`?"),
    ("zzz\x1b", "there is no command zzz\\x1b: `rvtrace help` lists them"),
])  # fmt: skip
def test_a_command_that_there_is_not(word: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "-h"]) == 2
    assert capsys.readouterr() == ("", f"rvtrace: {line}\n")


def test_only_the_command_that_is_used_is_loaded() -> None:
    """A start is mostly loading modules: the version needs a handful of ours, and no command needs another's."""
    code = """
import sys
from rvtrace_gdb.console.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(*sorted(name for name in sys.modules if name.startswith("rvtrace_gdb.")), file=sys.stderr)
"""

    def loaded(*words: str) -> list[str]:
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True)
        return done.stderr.splitlines()[-1].split()

    at_start = loaded("--help")
    assert len(at_start) <= 15
    assert {name.rpartition(".kernel")[0] for name in {*loaded("--version")} - {*at_start}} >= {"rvtrace_gdb.decode"}
    assert set(loaded("gdb-script", "--help")) == {*at_start, "rvtrace_gdb.console.commands.gdb_script"}
    commands = {f"rvtrace_gdb.console.commands.{command.module}" for command in (*TABLE, *tandem.COMMANDS)}
    assert commands & set(at_start) == set()
    assert commands & set(loaded("import-dt", "--help")) == {"rvtrace_gdb.console.commands.import_dt"}
    assert commands & set(loaded("tandem", "--help")) == {"rvtrace_gdb.console.commands.tandem"}


@pytest.mark.parametrize("command", [*TABLE, *tandem.COMMANDS], ids=lambda command: str(command.name))
def test_each_command_of_the_table_has_its_arguments(command: Subcommand) -> None:
    parser = parser_of(command)
    assert parser.description or command.name == "gdb-script"
    assert parser.get_default("run") or parser._subparsers is not None


def test_each_command_is_listed_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Every module that can be a command is one."""
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = " ".join(capsys.readouterr().out.split())
    assert [row.name for row in TABLE if f" {row.name} {row.help}" not in listed] == []
    modules = {row.module for row in (*TABLE, *tandem.COMMANDS)}
    folder = HOME / "console" / "commands"
    able = {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for path in folder.rglob("*.py")
        if re.search(r"(parser\.set_defaults\(run=|trace_answer\.add_arguments\()", path.read_text(encoding="utf-8"))
    }
    assert able | {"tandem"} == modules


def options_in(page: str) -> list[str]:
    """The names of the options that a page of help explains."""
    lines = re.findall(r"^  (-.*?)(?:  .*)?$", page, re.M)
    return [name for line in lines for name in re.findall(r"(?:^|, )(--[a-z0-9-]+)", line)]


@pytest.mark.parametrize("command", [*TABLE, *tandem.COMMANDS], ids=lambda command: str(command.name))
def test_a_short_help_and_pages_for_the_rest(command: Subcommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option is on one page; --help-all has them all; the examples are command lines that can be read."""
    monkeypatch.setenv("COLUMNS", "80")
    made = parser_of(command)
    text = made.format_help()
    assert len(text.splitlines()) <= 66
    pages = [made.format_page(page.name) for page in PAGES if f"--help-{page.name}" in text]
    found = [name for page in (text, *pages) for name in options_in(page)]
    assert len(found) == len(set(found))
    every = {name for action in made._actions for name in action.option_strings if action.help != SUPPRESS}
    assert {name for name in every if name.startswith("--")} == set(found)
    if pages:
        assert set(found) == set(options_in(made.format_page("all")))
    for words, _ in made.examples:
        parser().parse_args(shlex.split(words.partition(" >")[0]))


def test_pages_of_help_by_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    for page, option in (("raw", "--bpred-size"), ("encoder", "--icnt-limit"), ("hardware", "--ctr-depths")):
        with pytest.raises(SystemExit) as ended:
            main(["help", page])
        assert ended.value.code == 0
        said = capsys.readouterr()
        assert option in said.out and said.err == ""


@pytest.mark.parametrize("words", ["dump x.nex --ntrace --pcs app.elf", "gdb-script --pcs app.elf"])
def test_what_a_command_does_not_know_is_its_error(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    command = f"rvtrace {words.split()[0]}"
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {command} ")
    # Pythons differ in whether app.elf is a place in the trace.
    assert re.search(rf"^{command}: error: unrecognized arguments: --pcs( app\.elf)?\n\Z", said, re.MULTILINE)


@pytest.mark.parametrize("command", ["", "tandem", *VERBS])
def test_the_help_fits_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parser().parse_args([*command.split(), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []


STREAM, ELF = reference_streams.FOLDER / "median.1.nex", reference_streams.FOLDER / "median.elf"
T1 = reference_streams.FOLDER / "t1"
TANDEM = DATA / "tandem" / "flute_rv64mi-p-scall.tvt", "--dialect", "flute"
TRACE = STREAM, "--ntrace", "--elf", ELF
DAMAGED = "SHORT", "--ntrace", "--elf", ELF
LISTS = ("functions", "calls", "events", "gaps", "coverage", "report", "explain", "stack", "fork", "status", "values")
COMMANDS: list[list[object]] = [
    ["dump", STREAM, "--ntrace"],
    ["dump", STREAM, "--ntrace", "1,2"],
    ["decode", *TRACE],
    ["decode", *TRACE, "--events"],
    *([verb, *DAMAGED] for verb in LISTS),
    ["intervals", "SHORT", "0x80000000,0x80004000", "trap-return", *DAMAGED[1:]],
    ["diff", "SOUND", "SOUND", *DAMAGED[1:]],
    ["blame", "--good", "SOUND", "--bad", "SHORT", *DAMAGED[1:]],
    ["check", "SOUND", *DAMAGED[1:]],
    ["find", "SHORT", "0x80000000,0x80004000", *DAMAGED[1:]],
    ["who-wrote", "SHORT", "$a0", *DAMAGED[1:]],
    ["why", "SHORT", "$a0", "--branches", *DAMAGED[1:]],
    ["calls-of", "SHORT", "main", *DAMAGED[1:]],
    ["sql", "SHORT", "SELECT * FROM instructions", *DAMAGED[1:]],
    ["log", "SHORT", "0x80000000,0x80004000", "$a0", *DAMAGED[1:]],
    ["data", TANDEM[0], "--tandem", *TANDEM[1:]],
    ["itc", "WROTE", "--ntrace", "--elf", T1.with_suffix(".elf")],
    ["tandem", "show", *TANDEM],
    ["tandem", "convert", *TANDEM, "--to", "spike", "-o", "-"],
    ["export", TANDEM[0], "--tandem", *TANDEM[1:], "--to", "spike", "-o", "-"],
    ["perf-script", *TRACE],
    ["perf-script", *TRACE, "--insn-trace"],
    ["pgo", *TRACE, "--to", "symbol-order", "-o", "-"],
    ["tandem", "verify", *TANDEM, "--model", "simulated"],
    ["encode", "--elf", T1.with_suffix(".elf"), "--pcs", T1.with_suffix(".pcs.gz"), "--dump", "--limit", 60_000],
    ["note", "NOTED"],
    ["pack", "NOTED", "-o", "/dev/null"],
    ["gdb-script"],
    ["doctor", "cache"],
    ["completion", "bash"],
    ["man"],
    ["skill"],
    ["decode", "--help"],
    ["--version"],
    ["run", "--verbs"],
    ["import", *TRACE, "-o", "/dev/null"],
    ["import-dt", "DTB", "-o", "-"],
    ["targets"],
    ["targets", "show", "hifive-premier-p550", "-o", "-"],
]
NO_OUTPUT = {
    "demo": "prints what gdb prints: tests/endtoend/test_demo.py",
    "console": "prints what gdb prints: tests/console/commands/console",
    "sim": "serves until it is interrupted",
    "qemu": "starts QEMU",
    "usb": "needs an adapter",
    "top": "follows a file until it is interrupted: tests/console/commands/test_top.py",
    "init": "asks the user",
    "mcp": "serves until its client leaves: tests/console/commands/mcp",
    "serve": "serves until it is interrupted: tests/console/commands/serve",
    "tasks": "needs a system of tasks: tests/session/tasks",
    "lldb-dap": "starts lldb-dap: tests/console/commands/lldb_dap",
}
"""The verbs whose output is not tried here, and why."""


def test_every_verb_is_tried() -> None:
    check_all_are_tried([words for words in COMMANDS if words[0] != "--version"], NO_OUTPUT)


@pytest.fixture
def words(request: pytest.FixtureRequest, tmp_path: Path) -> list[object]:
    """One of the command lines above, with the files that it reads. SHORT is a trace with a gap."""
    made = {"DTB": tmp_path / "board.dtb", "SHORT": tmp_path / "short.nex", "SOUND": tmp_path / "sound.nex"}
    data = STREAM.read_bytes()
    if "NOTED" in request.param:
        made["NOTED"] = tmp_path / "noted.rvt"
        traced = [str(word) for word in TRACE]
        assert main(["import", *traced, "-o", str(made["NOTED"]), "--quiet"]) == 0
        assert main(["note", str(made["NOTED"]), "--at", "9", "here", "--quiet"]) == 0
    made["DTB"].write_bytes(devicetrees.blob("xuantie_small"))
    made["WROTE"] = tmp_path / "wrote.rtd"
    made["WROTE"].write_bytes(written(0, b"a line\n" * 3_000))
    made["SOUND"].write_bytes(data[:150])
    made["SHORT"].write_bytes(data[:150] + b"\xff" * 8 + data[158:300])
    return [made.get(str(word), word) for word in request.param]


def shell(words: Sequence[object], redirection: str) -> subprocess.CompletedProcess[str]:
    """With the shell's redirection, and Python's usual buffers."""
    command = shlex.join([sys.executable, "-m", "rvtrace_gdb", *map(str, words)])
    line = ["bash", "-o", "pipefail", "-c", f"{command} {redirection}"]
    return subprocess.run(line, cwd=HOME, env=BUFFERED, capture_output=True, text=True, check=False)


BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def check_full(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == (2 if "verify" in done.args else 1)
    assert done.stderr.splitlines()[-1] == "rvtrace: standard output: cannot be written: No space left on device"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def check_closed(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == (2 if "verify" in done.args else 1)
    assert done.stderr.splitlines()[-1] == "rvtrace: standard output: cannot be written: it is closed"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def check_not_read(done: "subprocess.CompletedProcess[str]", status: int = 0) -> None:
    assert done.returncode == status
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize(
    ("redirection", "check"),
    [
        ("> /dev/full", check_full), (">&-", check_closed), ("2>&-", check_not_read), ("| true", check_not_read),
        ("2> /dev/full > /dev/null", check_not_read), ("| head -c 1", check_not_read),
    ],
)  # fmt: skip
def test_as_a_shell_starts_it(redirection: str, check: Callable[["subprocess.CompletedProcess[str]"], None]) -> None:
    """The tests after this one have the same descriptors, in processes that begin with the modules loaded."""
    check(shell(COMMANDS[1], redirection))


@pytest.mark.parametrize("words", COMMANDS if LONG else COMMANDS[::2], ids=verb_of, indirect=True)
def test_a_full_disk_is_one_line(words: Sequence[object]) -> None:
    with open("/dev/full", "wb") as full:
        check_full(rvtrace(*words, stdout=full.fileno(), environ=BUFFERED))


@pytest.mark.parametrize("words", COMMANDS if LONG else COMMANDS[::4], ids=verb_of, indirect=True)
def test_a_closed_output_is_one_line(words: Sequence[object]) -> None:
    """What was asked for went nowhere."""
    check_closed(rvtrace(*words, stdout=CLOSED, environ=BUFFERED))


@pytest.mark.parametrize("words", COMMANDS if LONG else COMMANDS[1::2], ids=verb_of, indirect=True)
def test_nobody_reads_the_output(words: Sequence[object]) -> None:
    """From the beginning, or after the first byte. Each command is tried here or with the full disk."""
    for taken in (0, *long_only(1)):
        ours, theirs = os.pipe()
        with open(ours, "rb", buffering=0) as reader, tempfile.TemporaryFile("w+") as errors:
            started = Started([str(word) for word in words], (0, theirs, errors.fileno()), environ=BUFFERED)
            os.close(theirs)
            if not taken or reader.read(taken) is not None:
                reader.close()
            status = started.wait()
            errors.seek(0)
            check_not_read(subprocess.CompletedProcess([], status, "", errors.read()))


@pytest.mark.parametrize(
    "words",
    [
        *(words for words in COMMANDS if words[0] in ("encode", "import", "--version") or "--events" in words),
        *long_only(*(words for words in COMMANDS if words[0] not in ("encode", "import", "--version"))),
    ],
    ids=verb_of, indirect=True,
)
def test_errors_that_cannot_be_written_are_lost(words: Sequence[object]) -> None:
    status = 1 if "verify" in words else 0  # it has divergences
    check_not_read(rvtrace(*words, stderr=CLOSED, environ=BUFFERED), status)
    with open("/dev/full", "wb") as full, open(os.devnull, "wb") as nothing:
        check_not_read(rvtrace(*words, stdout=nothing.fileno(), stderr=full.fileno(), environ=BUFFERED), status)


def test_what_the_system_refuses_is_not_blamed_on_the_output() -> None:
    """Three files are open from the beginning; gdb or objdump for the text of the instructions needs more."""
    line = shlex.join([sys.executable, "-m", "rvtrace_gdb", *map(str, COMMANDS[2])])
    done = shell(["--version"], f"> /dev/null; ulimit -n 8; {line} > /dev/null")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said == "rvtrace: Too many open files; `ulimit -n` says how many one process may have open"


def test_a_closed_input_is_one_line() -> None:
    for words in (["decode", "-"], ["dump", "-", "--ntrace"], ["run", "-"], ["tandem", "show", "-"], ["console"]):
        done = rvtrace(*words, stdin=CLOSED)
        assert done.returncode in (1, 2), words
        assert re.fullmatch(r"rvtrace: (standard input|-): .*(closed|Bad file descriptor)\n", done.stderr), words


def test_captures_are_read_from_pipes(tmp_path: Path) -> None:
    file = tmp_path / "x.rvt"
    assert shell(["import", STREAM, "--elf", ELF, "-o", "-"], f"> {file}").returncode == 0

    def piped(path: Path, *words: object) -> "subprocess.CompletedProcess[str]":
        with path.open("rb") as content:
            return rvtrace(*words, stdin=content.fileno())

    for command in ("decode", "dump"):
        assert piped(file, command, "-").stdout == rvtrace(command, file).stdout != ""
    raw = piped(STREAM, "decode", "-", "--ntrace", "--elf", ELF)
    assert raw.stdout == rvtrace("decode", file).stdout
    assert "imported from standard input," in raw.stderr
    assert rvtrace("decode", "-").stderr == "rvtrace: standard input: is empty\n"


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("rvtrace_gdb.console.commands.decode.run", full)
    monkeypatch.setattr("rvtrace_gdb.support.system._limit", lambda: 700000 << 10)
    assert main(["decode", "x.rvt"]) == 1
    assert capsys.readouterr() == (
        "",
        "rvtrace: there is not enough memory for this (this program may have 683.6 MiB, see `ulimit -v`): raise that"
        " limit, or trace less: a smaller buffer, or filters (`trace start`); what was captured is kept\n",
    )
