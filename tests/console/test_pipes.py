"""Every argument that names a file to read takes a pipe, as the shell's <(...), or says that it must be a file."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.shell_files.command_line import commands_of
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.support import inputs
from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import demo

LISTS = (
    "decode", "dump", "functions", "calls", "find", "events", "gaps", "check", "coverage", "report", "explain", "stack",
    "status", "data",
)  # fmt: skip
RAW = "{raw} --etrace --type-bits 1 --parameters {parameters} --elf {elf}"
CASES = [
    *(f"{name} {{capture}} {'fib' if name == 'find' else ''}" for name in LISTS),
    *(f"{name} {RAW} {'fib' if name == 'find' else ''}" for name in LISTS if name != "dump"),
    "dump {raw} --etrace --parameters {parameters}", "decode {raw} --settings {capture} --elf {elf}",
    "decode {capture} --elf {elf}", "decode {ntrace} --ntrace --maps {maps}",
    "decode {ntrace} --ntrace --vdso {elf} --maps {maps}",
    "import {raw} --etrace --type-bits 1 --ecause-width 5 --elf {elf} -o {out}",
    "export {capture} --to riscv-dv -o {out}", "report {capture} --merge {tandem}",
    "diff {capture} {capture} --other-elf {elf}", "blame --good {capture} --bad {tandem}",
    "tandem show {tandem} --elf {elf}", "tandem convert {tandem} --elf {elf} --to spike -o {out}",
    "tandem verify {tandem} --elf {elf}",
    "tandem verify {tandem} --mask-file {empty}", "import-dt {source} -o {out}",
    "tasks {capture} --rtos {rtos}", "decode {capture} --memory {elf}@0x70000000",
    "decode {capture} --symbols {symbols}",
    "init --device-tree {source} -o {out} --yes", "encode --elf {elf} --pcs {pcs} -o {out}",
    "encode --elf {elf} --pcs {pcs} --etrace --parameters {parameters} -o {out}", "usb list --target {target}",
]  # fmt: skip
REFUSED = [
    "run {script} --sim --elf {elf}", "run {script} --target {target}", "console --elf {elf}",
    "console --target {target}", "console --sim --elf {elf}",
]  # fmt: skip
"""gdb reads these."""
SERVERS = {"sim --elf", "sim --target", "sim --devices", "qemu --elf", "init --elf"}
"""Of programs that go on, or ask."""
WRITTEN = re.compile(r"--output|--report|--unix|--write|--side-door|--log-retired|--stream|--spike-python|sim --tandem")
"""Options that name what is not read, or what is run."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pipes")
    names = ("script", "parameters", "empty", "pcs", "maps", "target", "rtos", "symbols", "out")
    found = {name: folder / name for name in names}
    found["elf"] = elf = demo(folder)
    for name, more, options in (("ntrace", "", []), ("etrace", " -format etrace", []), ("tandem", "", ["--tandem"])):
        found["script"].write_text(f"start{more}\nrun until finish\nstop\n")
        words = ["run", str(found["script"]), "--sim", "--elf", str(elf), "--quiet", *options]
        assert main([*words, "-o", str(folder / f"{name}.rvt")]) == 0
        if name != "tandem":
            found[name] = folder / f"{name}.bin"
            found[name].write_bytes(load(folder / f"{name}.rvt").sinks[0].data)
    found |= {"raw": found["etrace"], "capture": folder / "etrace.rvt", "tandem": folder / "tandem.rvt"}
    found["parameters"].write_text("iaddress_width_p = 64\necause_width_p = 5\n")
    found["empty"].touch()
    found["target"].write_text('name = "x"\n')
    found["rtos"].write_text(
        'name = "x"\nsymbols = ["main"]\nswitches = ["fib"]\n[current]\ntask = ["0"]\n[task]\nname = ["0"]\n'
    )
    found["pcs"].write_text("80000000\n80000004\n80000008\n")
    found["symbols"].write_text("0000000080000000 T _start\n")
    found["maps"].write_text(f"80000000-80001000 r-xp 00001000 00:00 0    {elf}\n")
    found["source"] = HOME / "tests" / "data" / "device-tree" / "clusters.dts"
    return found


@contextmanager
def pipes(files: dict[str, Path], folder: Path) -> Iterator[dict[str, Path]]:
    """A pipe for each of the files, of the same name, that brings its content once."""
    ends, writers = [], []
    found = {}
    for name, path in files.items():
        end, other = os.pipe()
        found[name] = folder / path.name
        found[name].symlink_to(f"/dev/fd/{end}")
        writers.append(threading.Thread(target=_write, args=(other, path.read_bytes())))
        ends.append(end)
        writers[-1].start()
    try:
        yield found
    finally:
        for end in ends:
            os.close(end)
        inputs._pipes.clear()
        for writer in writers:
            writer.join()


def _write(to: int, content: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(to, "wb") as file:  # perhaps nobody reads it
        file.write(content)


def said(command: str, names: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and what is printed, with the folders of files and the time taken out."""
    status = main(command.format(**names).split())
    printed = capsys.readouterr()
    text = printed.out + printed.err
    for folder in {str(path.parent) for path in names.values()}:
        text = text.replace(folder, "")
    return status, re.sub(r"\d\d:\d\d:\d\dZ", "", text)


def used(command: str, files: dict[str, Path]) -> dict[str, Path]:
    return {name: path for name, path in files.items() if f"{{{name}}}" in command and name != "out"}


@pytest.mark.parametrize("command", CASES if LONG else CASES[::2])
def test_a_pipe_is_like_a_file(
    command: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = said(command, files, capsys)
    with pipes(used(command, files), tmp_path) as piped:
        found = said(command, {**files, **piped}, capsys)
    assert found == expected
    assert "etrace" not in command or found[0] == 0 or "data trace" in found[1] or "check" in command, found


@pytest.mark.parametrize("command", REFUSED)
def test_what_must_be_a_file(
    command: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = used(command, {name: path for name, path in files.items() if name != "script"})
    with pipes(given, tmp_path) as piped:
        status = main(command.format(**{**files, **piped}).split())
    assert status == 2
    (name,) = piped.values()
    assert capsys.readouterr().err.endswith(f"{name}: is a pipe, which gdb cannot read: give a file\n")


def test_no_option_is_forgotten() -> None:
    """Each option of each command whose value is a file is in one of the tables."""
    tried = " ".join(CASES + REFUSED)
    for command in commands_of(parser()):
        for option in command.options:
            name = " ".join((*command.words, option.names[-1]))
            if "FILE" in option.value and WRITTEN.search(f"{name} {option.names}") is None and name not in SERVERS:
                assert option.names[-1] in tried, name


def test_a_pipe_in_gdb(files: dict[str, Path], tmp_path: Path) -> None:
    """`trace open` reads what the pipe brings each time, `set trace target` once."""
    trace, target = tmp_path / "trace", tmp_path / "target"
    os.mkfifo(trace)
    os.mkfifo(target)
    capture = files["capture"]
    commands = [
        SOURCE, f"shell cat {capture} > {trace} &", f"trace open {trace}", "trace history 1,2", "trace close",
        f"shell cat {files['tandem']} > {trace} &", f"trace open {trace} ", "trace history 1,+2", "trace close ",
        f"shell cat {files['target']} > {target} &", f"set trace target {target}", "trace info", "trace info ",
    ]  # fmt: skip
    found = run_gdb(files["elf"], commands)
    expected = run_gdb(files["elf"], [SOURCE, f"trace open {capture}", "trace history 1,2"])
    assert found["trace history 1,2"] == expected["trace history 1,2"]
    assert "tandem:" in found[f"trace open {trace} "] and "2\t" in found["trace history 1,+2"]
    assert found["trace info"] == found["trace info "]


def test_a_pipe_is_read_no_further_than_asked() -> None:
    end, other = os.pipe()
    with os.fdopen(other, "wb") as writer:
        writer.write(b"0123456789")
        writer.flush()
        with inputs.open_input(f"/dev/fd/{end}") as first, inputs.open_input(f"/dev/fd/{end}") as second:
            assert (first.read1(4), second.read1(100)) == (b"0123", b"0123456789")
            writer.write(b"AB")
            writer.close()
            assert first.read() == b"456789AB"
            assert second.seek(-3, os.SEEK_END) == 9 and second.read() == b"9AB"
    assert inputs.read_input(f"/dev/fd/{end}") == b"0123456789AB"
    os.close(end)
    inputs._pipes.clear()
