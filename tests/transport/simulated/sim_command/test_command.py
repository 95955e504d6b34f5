"""`rvtrace sim` as a program: what it prints and writes, how it ends, what it refuses."""

import errno
import os
import signal
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import CommandParser, sim
from rvtrace_gdb.console.commands.sim import encoder, etrace
from rvtrace_gdb.console.commands.sim.request import SimRequest, sim_request
from rvtrace_gdb.decode.etrace.encoder.options import EndReport
from rvtrace_gdb.decode.etrace.options import SupportLayout
from rvtrace_gdb.decode.ntrace.messages import Tcode
from rvtrace_gdb.decode.ntrace.options import RC7, EncoderOptions, SyncPlacement
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.hart.block import BlockPart, HartBlock
from tests.helpers.cross_compiler import compile_program, demo
from tests.helpers.started_python import python_stub

HOME = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("sim"))


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [python_stub(), "-m", "rvtrace_gdb", "sim", *arguments],
        cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    seen = ""
    while text not in seen:
        line = process.stdout.readline()
        assert line, f"ended after {seen!r}"
        seen += line
    return seen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_cleanly_on_a_signal(elf: Path, tmp_path: Path, number: signal.Signals) -> None:
    paths = tmp_path / "jtag", tmp_path / "side"
    with started("--elf", str(elf), "--unix", str(paths[0]), "--side-door", str(paths[1])) as process:
        until(process, "listening on")
        assert all(path.is_socket() for path in paths)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(paths[0]))
            client.sendall(b"R")
            assert client.recv(1) in b"01"
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert not any(path.exists() for path in paths)


def test_prints_and_writes_the_openocd_configuration_and_the_target(elf: Path, tmp_path: Path) -> None:
    files = tmp_path / "openocd.cfg", tmp_path / "rvtrace.toml"
    with started(
        "--elf", str(elf), "--port", "0", "--write-openocd", str(files[0]), "--write-target", str(files[1]),
        "--gdb-port", "3334", "--tcl-port", "6667", "--trace-size", "0x2000",
    ) as process:  # fmt: skip
        printed = until(process, "listening on")
        process.terminate()
        process.communicate(timeout=60)
    config = files[0].read_text()
    assert all(f"    {line}\n" in printed for line in config.splitlines())
    port = int(printed.rpartition("listening on 127.0.0.1:")[2].split(";")[0])
    for line in (
        "adapter driver remote_bitbang", "remote_bitbang host 127.0.0.1", f"remote_bitbang port {port}",
        "riscv set_enable_virt2phys off", "poll_period 5", "gdb_port 3334", "tcl_port 6667",
    ):  # fmt: skip
        assert line in config.splitlines()
    written = tomllib.loads(files[1].read_text())
    assert written.pop("memory")[:2] == [
        {"name": "main memory", "address": 0x8000_0000, "size": 128 << 20, "kind": "ram"},
        {"name": "CLINT", "address": 0x0200_0000, "size": 0xC000, "kind": "volatile"},
    ]
    assert written == {
        "target": {"name": f"{elf.stem} on the simulated target"},
        "openocd": {"host": "127.0.0.1", "tcl_port": 6667},
        "component": [
            {"name": "encoder0", "type": "encoder", "base": 0x2000_0000, "hart": 0, "to": ["ram0"]}
            | {
                "etrace": {
                    "iaddress_width": 64,
                    "ecause_width": 5,
                    "bpred_size": 6,
                    "cache_size": 5,
                    "return_stack_size": 5,
                    "f0s_width": 1,
                    "iret_ext": True,
                    "support": "standard",
                }
            },
            {"name": "ram0", "type": "ram_sink", "base": 0x2000_1000}
            | {"mode": "SMEM", "start": 0x3000_0000, "size": 0x2000},
        ],
    }


def test_a_program_that_runs_to_its_end(tmp_path: Path) -> None:
    source = tmp_path / "ends.c"
    source.write_text("int main(void) { return 7; }")
    program = compile_program(tmp_path, source, march="rv32imac_zicsr")
    with started("--elf", str(program), "--port", "0", "--run") as process:
        assert "RV32IMAFDC" in until(process, "program ended with status 7")
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line it says when it does not start."""
    parser = CommandParser()
    sim.add_arguments(parser)
    parsed = parser.parse_args(arguments)
    assert parsed.run(parsed) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_a_taken_port(elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}: Address already in use" in refused(capsys, "--elf", str(elf), "--port", str(port))


def test_bad_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str], elf: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    assert "is not an ELF file" in refused(capsys, "--elf", str(text), "--port", "0")
    assert "cannot be read" in refused(capsys, "--elf", str(tmp_path / "missing"), "--port", "0")
    assert "is not for RISC-V" in refused(capsys, "--elf", os.path.realpath("/bin/sh"), "--port", "0")
    cut = tmp_path / "cut"
    cut.write_bytes(elf.read_bytes()[:5000])
    assert "cut short" in refused(capsys, "--elf", str(cut), "--port", "0")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--isa", "IXQ", "--isa IXQ"),
        ("--isa", "IMD", "F if D is given"),
        ("--trace-size", "1000", "power of two"),
        ("--encoder-option", "hist-limit", "give NAME=VALUE; the names are btm, "),
        ("--encoder-option", "speed=1", "give NAME=VALUE; the names are btm, "),
        ("--encoder-option", "timestamps=on", "give NAME=VALUE; the names are btm, "),
        ("--encoder-option", "hist-limit=many", "hist-limit=many: it is a number"),
        ("--encoder-option", "hist-limit=1", "hist-limit must be at least 2, not 1"),
        ("--encoder-option", "empty-fields=perhaps", "empty-fields=perhaps: it is on or off"),
        ("--encoder-option", "hist-chunks=1,x", "hist-chunks=1,x: it is numbers with commas between them"),
        ("--encoder-option", "dialect=2.0", "dialect=2.0: it is one of 1.0, rc7, sifive"),
        ("--encoder-option", "sync-placement=never", "it is one of at-once, separate, next-branch"),
        ("--encoder-option", "icnt-full-sync=on", "icnt-full-sync: SYNC=4 for a full I-CNT is for btm only"),
        ("--formats", "etrace,etrace", "--formats etrace,etrace: give ntrace or etrace, or both with a comma between"),
        ("--formats", "nexus", "--formats nexus: give ntrace or etrace"),
        ("--etrace-option", "bpred-size", "give NAME=VALUE; the names are bpred-size, "),
        ("--etrace-option", "sync-mode=off", "give NAME=VALUE; the names are bpred-size, "),
        ("--etrace-option", "bpred-size=many", "bpred-size=many: it is a number"),
        ("--etrace-option", "data-trace=perhaps", "data-trace=perhaps: it is on or off"),
        ("--etrace-option", "support=own", "support=own: it is one of reference, standard, pulp, et20, pt10"),
        ("--etrace-option", "inst-mode=3", "--etrace-option: inst-mode is 6 or 7, not 3"),
        ("--etrace-option", "context-width=200", "--etrace-option: context-width is 0 to 64, not 200"),
        ("--ram", "0x1000", "does not fit: no RAM at 0x80000000"),
    ],
)
def test_bad_options(elf: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, said: str) -> None:
    assert said in refused(capsys, "--elf", str(elf), "--port", "0", option, value)


def test_files_that_cannot_be_written(elf: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    where = str(tmp_path / "missing" / "file")
    assert f"cannot write {where}" in refused(capsys, "--elf", str(elf), "--port", "0", "--write-target", where)


def test_what_goes_wrong_while_a_log_is_written_is_not_its_fault(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Too many open files"), sim._retired_log(str(tmp_path / "log")):
        raise OSError(errno.EMFILE, "Too many open files")
    full = pytest.raises(sim.SimError, match=r"^cannot write /dev/full: No space left on device$")
    with full, sim._retired_log("/dev/full") as write:
        write([BlockPart(HartBlock((0x1000,), (0x13,), 0x1004, lambda: 0x1004), 1)])


def arguments(*words: str) -> SimRequest:
    parser = CommandParser()
    sim.add_arguments(parser)
    return sim_request(parser.parse_args(["--elf", "x", *words]))


def test_how_the_encoder_is_built_can_be_said() -> None:
    options = {
        "icnt-limit": "0x80", "hist-chunks": "3,2", "full-at-once": "off", "dialect": "rc7",
        "linear-sync": "prog-trace-sync", "sync_placement": "next-branch", "icnt_full_sync": "on",
    }  # fmt: skip
    words = [word for name, value in options.items() for word in ("--encoder-option", f"{name}={value}")]
    assert encoder.built_with(arguments(*words).components.encoder) == EncoderOptions(
        icnt_limit=128, hist_chunks=(3, 2), full_at_once=False, dialect=RC7, linear_sync=Tcode.PROG_TRACE_SYNC,
        sync_placement=SyncPlacement.NEXT_BRANCH, icnt_full_sync=True,
    )  # fmt: skip
    assert encoder.built_with(arguments().components.encoder) == EncoderOptions()


def test_how_the_etrace_side_is_built_can_be_said() -> None:
    options = {
        "bpred-size": "0x3", "iret-ext": "off", "support": "reference", "hcontext_at": "16", "context-width": "30",
        "stop": "early", "data-trace": "off", "inst-mode": "6", "timestamp-sparse": "9",
    }  # fmt: skip
    words = [word for name, value in options.items() for word in ("--etrace-option", f"{name}={value}")]
    built = etrace.built(arguments(*words).components.encoder)
    assert (built.data_trace, built.inst_mode, built.timestamp_sparse) == (False, 6, 9)
    encoder = built.encoder
    assert (encoder.support, encoder.hcontext_at, encoder.stop) == (SupportLayout.REFERENCE, 16, EndReport.EARLY)
    parameters = encoder.parameters
    assert (parameters.bpred_size, parameters.iret_ext, parameters.context_width) == (3, False, 30)
    assert etrace.built(arguments().components.encoder) == ETraceBuild()


@pytest.mark.parametrize(("words", "formats"), [("ntrace,etrace", (1, 0)), ("etrace", (0,)), ("etrace,ntrace", (0, 1))])
def test_which_protocols_there_are_can_be_said(words: str, formats: tuple[int, ...]) -> None:
    assert encoder.formats(arguments("--formats", words).components.encoder) == formats
    assert encoder.formats(arguments().components.encoder) == (1, 0)


def test_fields_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    built = arguments("--without", "trTeContext", "--without", "trTsEnable").components.encoder
    assert built.absent == ("trTeContext", "trTsEnable")
    with pytest.raises(SystemExit):
        arguments("--without", "trTeEnable")
    assert "invalid choice: 'trTeEnable'" in capsys.readouterr().err
