"""`rvtrace qemu` as a command: without a compiler, what it refuses, the target description."""

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import Busy
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.qemu import launch, recorder
from rvtrace_gdb.transport.qemu.recorder import QemuError, QemuGone, Ring
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.helpers.started_python import python_stub, rvtrace
from tests.helpers.wait import until
from tests.support.foreign_owner import given_away
from tests.transport.qemu.machine import arguments, histories, logged, recorded, same, ticks


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ticks(tmp_path_factory.mktemp("elf"), "rv64imac_zicsr", "-DQUIET", "-DROUNDS=3")


def test_without_a_compiler_the_log_is_taken_and_that_is_said(elf: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"  # all that QEMU's wrapper needs, and no compiler
    tools.mkdir()
    for name in ("sh", "dirname", "readlink", "find", "head"):
        (tools / name).symlink_to(shutil.which(name) or name)
    file = tmp_path / "all.rvt"
    done = rvtrace(
        "qemu", "-o", str(file), "--elf", str(elf), "--", *arguments(elf),
        environ={**os.environ, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("rvtrace qemu: there is no C compiler")]
    assert said == [
        "rvtrace qemu: there is no C compiler (gcc): what runs is taken from QEMU's log, which is far slower"
    ]
    assert file.exists() and not (tmp_path / "cache").exists()


def test_the_plugin_is_compiled_once(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    first = launch.compiled_plugin(environ)
    when = first.stat().st_mtime_ns
    assert first.parent == tmp_path / "rvtrace"
    assert launch.compiled_plugin({**environ, "PATH": ""}) == first and first.stat().st_mtime_ns == when
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_the_plugin_has_no_warnings(tmp_path: Path) -> None:
    gcc = shutil.which("gcc")
    assert gcc
    command = [gcc, "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    sources = [str(path) for path in launch.SOURCES if path.suffix == ".c"]
    subprocess.run([*command, "-o", str(tmp_path / "plugin.so"), *sources], check=True)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    fake = tmp_path / "gcc"
    fake.write_text("#!/bin/sh\necho 'plugin.c:1: error: no such thing' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(launch.NoPlugin, match=r"cannot compile it: plugin\.c:1: error: no such thing"):
        launch.compiled_plugin({"PATH": f"{tmp_path}:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")})


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """$PATH with a compiler that is done at once: what it makes is always the same."""
    fake = tmp_path / "bin" / "gcc"
    fake.parent.mkdir()
    made = 'while [ "$1" != -o ]; do shift; done; echo made > "$2"'
    fake.write_text(f"#!/bin/sh\n{made}\n")
    fake.chmod(0o755)
    return f"{fake.parent}:/bin"


def test_no_plugin_is_loaded_from_a_folder_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    """Without a home the cache is in the common temporary folder, where anybody can have made it before us."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = launch.compiled_plugin({"PATH": compiler})
    assert found.parent == tmp_path / f"rvtrace-{os.geteuid()}"
    given_away(found.parent, monkeypatch)
    squatted = tmp_path / f"rvtrace-{os.geteuid()}"
    found.parent.rename(squatted)
    with pytest.raises(launch.NoPlugin, match=rf"{squatted} belongs to somebody else .*nothing is loaded from it"):
        launch.compiled_plugin({"PATH": compiler})


def test_a_plugin_that_others_could_have_written_is_compiled_again(tmp_path: Path, compiler: str) -> None:
    environ = {"PATH": compiler, "XDG_CACHE_HOME": str(tmp_path)}
    plugin = launch.compiled_plugin(environ)
    content = plugin.read_bytes()
    plugin.write_bytes(b"not ours")
    plugin.chmod(0o666)
    assert launch.compiled_plugin(environ).read_bytes() == content == b"made\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give QEMU's arguments after --"),
        (["-o", "x.rvt", "--", "-M", "virt"], "-o needs --elf"),
        (["-o", "x.rvt", "--", "-M", "virt", "-kernel", "/no/such.elf"], "/no/such.elf: cannot be read"),
        (["--", "-D", "x.log"], "-D: cannot be used with a recorder"),
        (["--", "-d", "in_asm"], "-d: cannot be used with a recorder"),
        (["--program", "/no/such/qemu", "--", "-M", "virt"], "/no/such/qemu: there is no such program"),
        (["--ring", "1000", "--", "-M", "virt"], "is not a power of two"),
        (["--ring", "16G", "--", "-M", "virt", "-smp", "512"], "make the rings smaller (--ring)"),
        (["--write-target", "/no/such/t.toml", "--", "-M", "virt"], "/no/such/t.toml: there is no folder /no/such"),
    ],
)
def test_what_is_refused_is_one_line(words: list[str], said: str) -> None:
    done = rvtrace("qemu", *words)
    assert done.returncode in (1, 2)
    assert said in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_qemu_says_itself_what_it_does_not_like(tmp_path: Path, elf: Path) -> None:
    program = arguments(elf)[0]
    done = rvtrace("qemu", "--write-target", str(tmp_path / "t.toml"), "--", program, "-M", "no-such-machine")
    assert done.returncode == 1 and "no-such-machine" in done.stderr
    assert not (tmp_path / "t.toml").exists()


@pytest.mark.parametrize(
    ("smp", "harts"), [("4", 4), ("cpus=2,maxcpus=4", 2), ("3,sockets=3", 3), ("sockets=2,cores=2", 4)]
)
def test_how_many_harts(smp: str, harts: int) -> None:
    assert launch.hart_count(["-M", "virt", "-smp", smp]) == harts
    assert launch.hart_count(["-M", "virt"]) == 1


@pytest.mark.parametrize(
    ("words", "size", "written"),
    [
        ("-M virt", 128 << 20, False),
        ("-machine virt,aclint=on -m 2G -bios none", 2 << 30, False),
        ("-M virt -m size=64k,slots=1", 64 << 10, False),
        ("-M type=virt -m 1 -drive file=x", 1 << 20, True),
        ("-M virt -semihosting-config enable=on", 128 << 20, True),
        ("-M sifive_u", None, False),
        ("-M virt -m much", None, False),
        ("", None, False),
    ],
)
def test_main_memory(words: str, size: int | None, written: bool) -> None:
    """As QEMU's manual and hw/riscv/virt.c have it."""
    found = launch.main_memory(words.split())
    assert found == (None if size is None else (0x8000_0000, size, written))


def test_the_program_is_the_one_for_the_elf(elf: Path) -> None:
    with pytest.raises(QemuError, match="no-such-qemu"):
        launch.find_qemu("no-such-qemu", [])
    named, options = launch.split_arguments(["qemu-system-riscv32", "-M", "virt"])
    assert named == "qemu-system-riscv32" and options == ["-M", "virt"]
    assert launch.find_qemu(None, ["-kernel", str(elf)]).path.endswith("qemu-system-riscv64")


def test_a_description_of_qemu() -> None:
    found = parse('[target]\nxlen = 64\n[qemu]\nfolder = "/dev/shm/x"\n', "t.toml")
    assert (found.qemu, found.xlen, found.components) == ("/dev/shm/x", 64, ())
    for text, said in (
        ('[qemu]\nfolder = "/x"\n[[component]]\nname = "a"\n', "remove either"),
        ("[qemu]\n", "folder"),
        ('[qemu]\nfolder = "/x"\nport = 3\n', "port"),
    ):
        with pytest.raises(DescriptionError, match=said):
            parse(text, "t.toml")


def test_a_qemu_that_is_gone(elf: Path, tmp_path: Path) -> None:
    target = tmp_path / "t.toml"
    target.write_text(f'[qemu]\nfolder = "{tmp_path}/gone"\n')
    session = Session()
    with pytest.raises(QemuGone, match="start it again with `rvtrace qemu`"):
        session.start(Context(elf=str(elf), target_file=str(target)))
    assert session.live is None and not isinstance(session.live, Busy)


def test_an_old_qemu_is_read_by_its_log(elf: Path, tmp_path: Path) -> None:
    """Debian 12's own QEMU 7.2 has no such plugins."""
    old = shutil.which("qemu-system-riscv64")
    assert old
    file = tmp_path / "old.rvt"
    done = rvtrace("qemu", "-o", str(file), "--elf", str(elf), "--", old, *arguments(elf)[1:])
    assert done.returncode == 0, done.stderr
    assert "is taken from QEMU's log" in done.stderr
    found, _ = recorded(elf, tmp_path)
    (expected,) = logged(elf)
    same(found.histories[0], expected, to=symbol_address(elf, "finish"))


@contextmanager
def running(tmp_path: Path, *options: str) -> "Iterator[tuple[subprocess.Popen[str], dict[str, object]]]":
    """`rvtrace qemu` with a program that does not finish, and what it has said of it. Waits for its end."""
    endless = ticks(tmp_path, "rv64imac_zicsr", "-DROUNDS=4000000000u", "-DQUIET")
    command = [python_stub(), "-m", "rvtrace_gdb", "qemu", "--json", *options, "--elf", str(endless)]
    with subprocess.Popen(
        [*command, "--", *arguments(endless)], cwd=HOME, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            assert child.stdout
            yield child, json.loads(child.stdout.readline())
        except BaseException:
            child.kill()  # else it would be waited for without end
            raise


def test_what_was_killed_leaves_nothing_that_runs_or_stays(tmp_path: Path, elf: Path) -> None:
    with running(tmp_path, "-o", str(tmp_path / "all.rvt")) as (child, up):
        child.kill()
    assert isinstance(up["process"], int)
    qemu, folder = up["process"], Path(str(up["folder"]))
    until(lambda: state(qemu) in ENDED, "QEMU ends, and does not wait for a reader that is gone")
    recorded(elf, tmp_path, "--source", "log")  # the next one tidies up
    until(lambda: not folder.exists(), "it does, or that of another test, which may still be about it")


@pytest.mark.parametrize("source", ["plugin", "log"])
def test_what_is_ended_keeps_what_it_has(tmp_path: Path, source: str) -> None:
    file = tmp_path / "all.rvt"
    with running(tmp_path, "--source", source, "-o", str(file)) as (child, up):
        assert (up["source"], up["harts"], up["target"]) == (source, 1, None)
        ring = Ring.open(Path(str(up["folder"])))
        until(lambda: ring.written(0) or child.poll() is not None, "something is recorded")
        child.send_signal(signal.SIGINT if source == "log" else signal.SIGTERM)
        assert child.stdout
        ended = json.loads(child.stdout.readline())
    assert child.returncode == 0
    assert_whole(file, ended)


def assert_whole(file: Path, ended: dict[str, object]) -> None:
    """The capture has what was said in the end."""
    found = histories(file).histories
    assert sum(len(history) for history in found.values()) == ended["instructions"]
    assert not any(history.gaps for history in found.values())


ENDED = ("Z", "gone")


def state(process: int) -> str:
    """A letter, as ps has it; none: it is gone."""
    try:
        return Path("/proc", str(process), "stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def interrupted(child: "subprocess.Popen[str]") -> bool:
    """Send a signal, and leave it the time to arrive: of two that are sent at once one may be seen."""
    child.send_signal(signal.SIGINT)
    time.sleep(0.1)
    return True


def test_a_qemu_that_does_nothing_is_ended_in_the_end(tmp_path: Path) -> None:
    """By the third signal; what was captured is there, and the status is a shell's."""
    file = tmp_path / "all.rvt"
    with running(tmp_path, "-o", str(file)) as (child, up):
        assert isinstance(up["process"], int)
        process, ring = up["process"], Ring.open(Path(str(up["folder"])))
        until(lambda: ring.written(0) or child.poll() is not None, "something is recorded")
        os.kill(process, signal.SIGSTOP)
        until(lambda: interrupted(child) and state(process) in ENDED, "the third signal ends it")
        assert child.stdout
        ended = json.loads(child.stdout.readline())
    assert child.returncode == 128 + signal.SIGKILL
    assert_whole(file, ended)


def test_signals_are_for_qemus_main_thread(tmp_path: Path) -> None:
    """One that another handles would interrupt the reading of what a session says to the recorder."""
    with running(tmp_path, "-o", str(tmp_path / "all.rvt")) as (child, up):
        recorder.set_recording(Path(str(up["folder"])), True)  # its thread is there
        tasks = [it for it in Path("/proc", str(up["process"]), "task").iterdir() if it.name != str(up["process"])]
        masks = [blocked(task) for task in tasks]
        child.send_signal(signal.SIGTERM)
    assert len(masks) > 1
    assert all(mask >> number - 1 & 1 for mask in masks for number in (signal.SIGCONT, signal.SIGTERM))


def blocked(task: Path) -> int:
    """A bit for each signal, from 1; of a thread that is gone, all."""
    try:
        rows = (task / "status").read_text().splitlines()
    except OSError:
        return -1
    return next(int(row.split()[1], 16) for row in rows if row.startswith("SigBlk:"))


def test_a_recorder_without_room_ends_it_and_that_is_said(tmp_path: Path) -> None:
    """The recorder says so in the ring (see fail in plugin.c)."""
    file = tmp_path / "all.rvt"
    with running(tmp_path, "-o", str(file)) as (child, up):
        ring = Ring.open(Path(str(up["folder"])))
        until(lambda: ring.written(0) or child.poll() is not None, "something is recorded")
        ring.fail(errno.ENOSPC)
        assert child.stdout and child.stderr
        ended = json.loads(child.stdout.readline())
        said = child.stderr.read()
    assert child.returncode == 1 and "code or traps are missing" in said and "No space left on device" in said
    assert_whole(file, ended)


NO_INSTRUCTION = """
__attribute__((naked)) void handler(void) { __asm__("li t0, 0x5555\\n li t1, 0x100000\\n sw t0, 0(t1)\\n 1: j 1b"); }
volatile int sum;
int main(void) {
    __asm__ volatile("csrw mtvec, %0" :: "r"(handler));
    for (int i = 0; i < 9; i++) sum += i;
    __asm__ volatile(".half 0xffff");
}
"""


@pytest.mark.parametrize("source", ["plugin", "log"])
def test_what_ran_before_qemus_log_hangs_is_kept(tmp_path: Path, source: str) -> None:
    """At a halfword that its disassembler does not know."""
    (tmp_path / "none.c").write_text(NO_INSTRUCTION)
    elf = compile_program(tmp_path, tmp_path / "none.c", march="rv64imac_zicsr")
    file = tmp_path / "all.rvt"
    done = rvtrace("qemu", "--source", source, "-o", str(file), "--elf", str(elf), "--", *arguments(elf))
    history = histories(file).histories[0]
    assert not history.gaps
    pcs = [history.pc(i) for i in range(len(history))]
    assert pcs.count(symbol_address(elf, "main")) == 1
    if source == "log":
        assert done.returncode == 1 and "use --source plugin" in done.stderr and "SIGKILL" not in done.stderr
        assert symbol_address(elf, "handler") not in pcs
    else:
        assert done.returncode == 0, done.stderr
        assert symbol_address(elf, "handler") in pcs
