"""Starting QEMU: its command line, and the plugin it loads.

The command line consists of the user's words, and of the options that a recorder needs. The plugin is compiled once, by
any C compiler that is installed, and kept in the user's cache.
"""

import ctypes
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.support import files
from rvtrace_gdb.support.text import is_number
from rvtrace_gdb.transport.qemu.recorder import LOG, QMP, QemuError

SOURCES = sorted(Path(__file__).with_name("plugin").glob("*.[ch]"))
_COMPILERS = ("gcc", "cc", "clang")
_OPTIONS = ("-O2", "-shared", "-fPIC", "-pthread")
_COMPILE_PATIENCE = 120  # seconds


class NoPlugin(QemuError):
    """The plugin cannot be compiled."""


def compiled_plugin(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the compiled plugin. Raises NoPlugin."""
    parts = [part for path in SOURCES for part in (path.name.encode(), path.read_bytes())]
    parts += map(str.encode, (*_OPTIONS, platform.machine()))
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()
    name = f"qemu-plugin-{key[:20]}.so"
    folder = files.cache_folder(environ)
    compiler = None if files.is_ours(folder / name) else _compiler(environ)
    try:
        files.private_folder(folder)
        if compiler is not None:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch, name)
                _compile(compiler, made, environ)
                made.replace(folder / name)
    except files.NotPrivate as error:
        raise NoPlugin(f"{error}, so nothing is loaded from it (XDG_CACHE_HOME may name another folder)") from None
    except OSError as error:
        raise NoPlugin(f"{error.filename or folder}: {error.strerror}") from None
    return folder / name


def _compiler(environ: Mapping[str, str]) -> str:
    found = next((found for it in _COMPILERS if (found := shutil.which(it, path=environ.get("PATH")))), None)
    if found is None:
        raise NoPlugin("there is no C compiler (gcc)")
    return found


def _compile(compiler: str, folder: Path, environ: Mapping[str, str]) -> None:
    command = [compiler, *_OPTIONS, "-o", str(folder), *(str(path) for path in SOURCES if path.suffix == ".c")]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMPILE_PATIENCE,
            env=dict(environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoPlugin(f"{compiler} does not finish") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it does not say why"]
        said = next((line for line in lines if "error" in line), lines[0])
        raise NoPlugin(f"{compiler} cannot compile it: {said.strip()}")


PLUGIN_SINCE = (9, 1)
"""The first QEMU with version 3 of the plugin interface."""
_PATIENCE = 60  # seconds
_PR_SET_PDEATHSIG = 1  # Linux, prctl(2)
_OURS = {
    "-d": "the recorder uses the log",
    "-D": "the recorder uses the log",
    "-daemonize": "rvtrace qemu ends with QEMU; let the shell put it into the background",
}
_ELF_MAGIC, _ELF_CLASS, _ELF32 = b"\x7fELF", 4, 1


@dataclass(frozen=True)
class Qemu:
    """A QEMU program. *version*: (major, minor). *plugins*: whether it supports plugins."""

    path: str
    version: tuple[int, int]
    plugins: bool

    @property
    def xlen(self) -> int:
        return 32 if Path(self.path).name.endswith("riscv32") else 64


def split_arguments(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the program, if the words begin with one, and its options. Raises QemuError for options that cannot be
    used.
    """
    program = words[0] if words and "qemu-system" in Path(words[0]).name else None
    options = list(words if program is None else words[1:])
    for word in options:
        why = _OURS.get("-" + word.lstrip("-") if word.startswith("-") else word)
        if why is not None:
            raise QemuError(f"{word}: cannot be used with a recorder: {why}")
    return program, options


def find_qemu(named: str | None, options: Sequence[str]) -> Qemu:
    """Return the program *named*, or the one for the machine code in -kernel or -bios. Raises QemuError."""
    name = named or f"qemu-system-riscv{_xlen(options)}"
    path = shutil.which(name)
    if path is None:
        what = "install Debian's qemu-system-riscv64, or name it (--program)"
        raise QemuError(f"{name}: there is no such program: {what}")
    found = re.search(r"version (\d+)\.(\d+)", _printed(path, "--version"))
    if found is None:
        raise QemuError(f"{path}: does not say which version of QEMU it is")
    return Qemu(path, (int(found[1]), int(found[2])), "-plugin" in _printed(path, "-help"))


def hart_count(options: Sequence[str]) -> int:
    """Return the number of harts that -smp sets."""
    said = _option_value(options, "-smp") or "1"
    named = dict(part.split("=", 1) for part in said.split(",") if "=" in part)
    if is_number(named.get("cpus", "")):
        return int(named["cpus"])
    first = said.split(",")[0]
    if is_number(first):
        return int(first)
    return _product(named)


class MainMemory(NamedTuple):
    """The main memory of a machine. *written*: something besides the harts may write it."""

    address: int
    size: int
    written: bool


_VIRT, _VIRT_SIZE = 0x8000_0000, 128 << 20  # hw/riscv/virt.c: VIRT_DRAM; the default of -m
_WRITING = (
    "device", "drive", "netdev", "nic", "net", "fsdev", "virtfs", "blockdev", "usb", "cdrom", "hda", "hdb", "hdc",
    "hdd", "sd", "pflash", "mtdblock", "incoming", "loadvm",
)  # fmt: skip
"""Options that begin so may bring devices that write to memory, or memory from elsewhere; so does semihosting."""
_UNITS = {"": 1 << 20, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "b": 1}


def main_memory(options: Sequence[str]) -> MainMemory | None:
    """Return the memory of the machine `virt`, None for another one, or if its size is not known."""
    machine = next((value for it in ("-M", "-machine") if (value := _option_value(options, it))), "")
    parts = [part.removeprefix("type=") for part in machine.split(",")]
    said = (_option_value(options, "-m") or str(_VIRT_SIZE >> 20)).split(",")
    size = re.fullmatch(r"(?:size=)?(\d{1,9})([kmgtb]?)", said[0].lower())
    if "virt" not in parts or size is None or not int(size[1]):
        return None
    words = [word.lstrip("-") for word in options if word.startswith("-")]
    written = any(word in _WRITING or word.startswith("semihosting") for word in words)
    return MainMemory(_VIRT, int(size[1]) * _UNITS[size[2]], written)


def has_debugger(options: Sequence[str]) -> bool:
    """Return whether a debugger may come, and change anything at any time."""
    return any(word.lstrip("-") in ("s", "gdb") for word in options if word.startswith("-"))


def is_stopped_at_reset(options: Sequence[str]) -> bool:
    """Return whether QEMU waits until it is told to run."""
    return any(word in ("-S", "--S") for word in options)


def start_qemu(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start QEMU so that it ends when this process does, even if that is killed. Raises QemuError."""
    control = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def bind() -> None:
        control(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    try:
        return subprocess.Popen(command, preexec_fn=bind)
    except OSError as error:
        raise QemuError(f"{command[0]}: cannot be run: {error.strerror}") from None


def plugin_command(
    qemu: Qemu, options: Sequence[str], plugin: Path, folder: Path, *, words: int, stalling: bool
) -> list[str]:
    """Return the command line with which *plugin* records into *folder*, into rings of *words* words.

    *stalling*: it records from the start, and harts wait for the reader.
    """
    switches = ",stall=on,record=on" if stalling else ""
    own = ["-plugin", f"{plugin},dir={folder},words={words}{switches}", "-d", "int", "-D", str(folder / LOG)]
    return [qemu.path, *options, *own, *_qmp(folder)]


def log_command(qemu: Qemu, options: Sequence[str], folder: Path) -> list[str]:
    """Return the command line with which QEMU logs the executed code into the pipe *folder*/log."""
    own = ["-d", "exec,nochain,int,in_asm", "-D", str(folder / LOG)]
    return [qemu.path, *options, *own, *_qmp(folder)]


def _qmp(folder: Path) -> list[str]:
    return ["-qmp", f"unix:{folder / QMP},server=on,wait=off"]


def _xlen(options: Sequence[str]) -> int:
    """Return the XLEN of the program that is loaded; 64 where that cannot be determined."""
    for option in ("-kernel", "-bios"):
        file = _option_value(options, option)
        try:
            with open(file or "", "rb") as opened:
                head = opened.read(_ELF_CLASS + 1)
        except OSError:
            continue
        if head.startswith(_ELF_MAGIC):
            return 32 if head[_ELF_CLASS] == _ELF32 else 64
    return 64


def _option_value(options: Sequence[str], option: str) -> str | None:
    """Return the word after the last occurrence of an option; None if there is none."""
    at = [i for i, word in enumerate(options) if word in (option, f"-{option}")]
    return options[at[-1] + 1] if at and at[-1] + 1 < len(options) else None


def _product(named: dict[str, str]) -> int:
    found = 1
    for key in ("sockets", "clusters", "cores", "threads"):
        found *= int(named[key]) if is_number(named.get(key, "")) else 1
    return found


def _printed(path: str, option: str) -> str:
    try:
        done = subprocess.run(
            [path, option], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise QemuError(f"{path}: cannot be run: {error}") from None
    return done.stdout.decode(errors="replace")
