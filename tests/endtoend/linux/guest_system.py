"""A boot of Linux in QEMU that is traced, and what came out of it.

The guest is guest/init.c with two processes. What the kernel knows of itself it writes to its disk; what ran is written
down by a plugin of QEMU of its own, guest/executed.c, instruction by instruction; which tasks ran, by the kernel.
"""

import lzma
import os
import re
import subprocess
from array import array
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.helpers.cross_compiler import HOME
from tests.helpers.qemu10 import QEMU10
from tests.helpers.started_python import rvtrace

LINUX = HOME / ".tools" / "linux" / "tree"
FIRMWARE = Path("/usr/share/qemu/opensbi-riscv64-generic-fw_dynamic.elf")
GUEST = Path(__file__).with_name("guest")
MODULES = ("virtio_blk", "virtio_mmio")
_NAMES, _SWITCHES, _TEXT, _DISK = 24 << 20, 28 << 20, 32 << 20, 128 << 20  # as guest/init.c has them
_TEXT_SIZE, _MODULE_SIZE = 16 << 20, 64 << 10
IMAGE_AT, _TEXT_AT = 0xFFFFFFFF80000000, 0xFFFFFFFF80002000
_SAVED = (
    "0xffffffff81a00000-0xffffffff81e80000", "0xff60000000080000-0xff60000000200000",
    "0xff60000000e00000-0xff60000001200000", "0xff60000002000000-0xff60000005400000",
)  # fmt: skip
"""Memory that rvtrace saves where the trace ends: the variables of the kernel, and what it allocates, in the map of all
RAM (in Sv57: Documentation/arch/riscv/vm-layout.rst): between the firmware and its image, where its code for the start
has been, and behind it. Tasks are in any of them. More than 64 MiB rvtrace does not save.
"""
_RAM = "84M"  # with 80 OpenSBI 1.0 does not come to Linux on two harts
_COMPILER = "riscv64-unknown-elf-gcc -O1 -g -nostdlib -static -march=rv64gc -mabi=lp64d -mcmodel=medany"
_LINKED = "-Wl,-z,max-page-size=4096 -Wl,--build-id=none"
_KERNEL_OPTIONS = "console=ttyS0 quiet cryptomgr.notests"
"""Its messages, through a device, and tests of its cryptography would take most of the boot."""
_SCRIPT = """
timeout 300s
break traced_begins
break traced_ends
break all_written
run
start -context -format {format}
run
gdb tbreak *$stvec
run
gdb set scheduler-locking step
gdb stepi 100
gdb set trace save-memory {memory}
stop
save
run
"""


class KernelTask(NamedTuple):
    """A task as the kernel itself names it."""

    name: str
    pid: int


class Booted(NamedTuple):
    """format    of the trace: "ntrace", "etrace"
    capture   what rvtrace has recorded
    executed  of each hart the addresses of the instructions that retired; of the one on which init runs, from the first
              one that was traced on
    kallsyms  a copy of it
    memory    pieces of the kernel's memory, FILE@ADDRESS: its text, and its modules
    programs  the guest's, by name
    switches  the kernel's own events of them, from before the trace on
    """

    format: str
    capture: Path
    executed: list["array[int]"]
    kallsyms: Path
    memory: list[str]
    programs: dict[str, Path]
    switches: str


def boot(folder: Path, format: str, harts: int = 1) -> Booted:
    programs = _programs(folder)
    kernel = next(LINUX.glob("boot/vmlinux-*"))
    plugin, log, disk, capture = (folder / name for name in ("executed.so", "executed", "disk", "linux.rvt"))
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(GUEST / "executed.c")]
    subprocess.run(command, check=True)
    with disk.open("wb") as file:
        os.truncate(file.fileno(), _DISK)
    begin, end = (_address(programs["init"], name) for name in ("traced_begins", "traced_ends"))
    qemu = (
        f"{QEMU10} -M virt -smp {harts} -accel tcg -cpu rv64,sstc=off -m {_RAM}"
        f" -bios {FIRMWARE} -display none -serial file:{folder}/console -kernel {kernel}"
        f" -initrd {_initramfs(folder, programs)} -append '{_KERNEL_OPTIONS}'"
        f" -drive if=none,file={disk},format=raw,id=disk -device virtio-blk-pci,drive=disk"
        f" -plugin {plugin},out={log},from={begin:#x},to={end:#x}"
    )
    (folder / "boot.rvts").write_text(_SCRIPT.format(format=format, memory=" ".join(_SAVED)))
    words = ["--elf", programs["init"], "-o", capture, "--qemu", qemu]
    done = rvtrace("run", str(folder / "boot.rvts"), *map(str, words))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed:" not in (folder / "console").read_text(errors="replace")
    kallsyms, memory = _copies(folder, disk)
    executed = [retired(log.with_name(f"{log.name}.{hart}")) for hart in range(harts)]
    switches = disk.read_bytes()[_SWITCHES:_TEXT].rstrip(b"\0").decode()
    return Booted(format, capture, executed, kallsyms, memory, programs, switches)


def tasks_that_ran(booted: Booted) -> list[KernelTask]:
    """The tasks that the events of the only hart name (Documentation/trace/events.rst), from the first one that was
    traced on: guest/init.c writes a mark between them, which is found among what was executed, too.
    """
    before, _, after = booted.switches.partition("tracing_mark_write: begins")
    switch, mark = (kernel_address(booted.kallsyms, name) for name in ("__switch_to", "tracing_mark_write"))
    [executed] = booted.executed
    traced = executed[: executed.index(mark)].count(switch)
    found = [*_events(before)[len(_events(before)) - traced :], *_events(after)]
    assert found and all(before[1].pid == after[0].pid for before, after in pairwise(found))
    return [found[0][0], *(after for _, after in found)]


def tasks_of_hart(booted: Booted, hart: int) -> list[KernelTask]:
    """The tasks that the events of a hart name, from before the trace on."""
    found = _events("\n".join(line for line in booted.switches.splitlines() if f" [{hart:03}] " in line))
    assert found and all(before[1].pid == after[0].pid for before, after in pairwise(found))
    return [found[0][0], *(after for _, after in found)]


def _events(written: str) -> list[list[KernelTask]]:
    """The events of switches: who ran before, and who runs then."""
    pattern = re.compile(r"(?:prev|next)_comm=(.*?) (?:prev|next)_pid=(\d+)")
    lines = (line for line in written.splitlines() if "sched_switch:" in line)
    return [[KernelTask(name, int(pid)) for name, pid in pattern.findall(line)] for line in lines]


def retired(log: Path) -> "array[int]":
    """What retired: an instruction that raised an exception did not."""
    words = array("Q", log.read_bytes())
    found, at = array("Q"), 0
    while at < len(words):
        if words[at] != 1:
            found.append(words[at])
            at += 1
            continue
        if found and found[-1] == words[at + 1]:
            found.pop()
        at += 2
    return found


def kernel_address(kallsyms: Path, name: str) -> int:
    """Where the kernel has a name, as its own list says."""
    found = re.search(rf"^([0-9a-f]+) \w {name}$", kallsyms.read_text(), re.M)
    assert found is not None
    return int(found[1], 16)


def btf(booted: Booted, folder: Path) -> str:
    """The types of the kernel as /sys/kernel/btf/vmlinux has them, FILE@ADDRESS: they are in its file as in memory."""
    begin, end = (kernel_address(booted.kallsyms, name) - IMAGE_AT for name in ("__start_BTF", "__stop_BTF"))
    file = folder / "vmlinux.btf"
    file.write_bytes(next(LINUX.glob("boot/vmlinux-*")).read_bytes()[begin:end])
    return f"{file}@{begin + IMAGE_AT:#x}"


def _programs(folder: Path) -> dict[str, Path]:
    own = {
        "init": f"-Wl,-Ttext-segment=0x200000 {GUEST}/init.c",
        "one": f"-DSTEP=1 -DROUNDS=24 {GUEST}/process.c",
        "two": f"-DSTEP=2 -DROUNDS=20 {GUEST}/process.c",
    }
    for name, words in own.items():
        subprocess.run([*f"{_COMPILER} {_LINKED} {words} -o".split(), folder / name], check=True)
    return {name: folder / name for name in own}


def _address(program: Path, name: str) -> int:
    listed = subprocess.run(["riscv64-unknown-elf-nm", program], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[0], 16) for line in listed.splitlines() if line.split()[2] == name)


def _initramfs(folder: Path, programs: dict[str, Path]) -> Path:
    """An archive in cpio's "newc" form (the kernel's Documentation/driver-api/early-userspace/buffer-format.rst)."""
    parts = [_member("dev", b"", 0o40755), _member("dev/console", b"", 0o20600, (5, 1)), _member("proc", b"", 0o40755)]
    parts.append(_member("t", b"", 0o40755))
    parts += [_member(name, program.read_bytes(), 0o100755) for name, program in programs.items()]
    for name in MODULES:
        [module] = LINUX.rglob(f"{name}.ko.xz")
        parts.append(_member(f"{name}.ko", lzma.decompress(module.read_bytes()), 0o100644))
    archive = folder / "initramfs"
    archive.write_bytes(b"".join(parts) + _member("TRAILER!!!", b"", 0))
    return archive


def _member(name: str, content: bytes, mode: int, device: tuple[int, int] = (0, 0)) -> bytes:
    named = name.encode() + b"\0"
    fields = (hash(name) & 0xFFFFFF, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(named), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields) + named
    padded = header + bytes(-len(header) % 4) + content
    return padded + bytes(-len(content) % 4)


def _copies(folder: Path, disk: Path) -> tuple[Path, list[str]]:
    """What the guest has written: the names, and the memory of the kernel and its modules."""
    content = disk.read_bytes()
    kallsyms = folder / "kallsyms"
    kallsyms.write_bytes(content[:_NAMES].rstrip(b"\0"))
    modules = content[_NAMES:_SWITCHES].rstrip(b"\0").decode().splitlines()
    assert sorted(line.split()[0] for line in modules) == sorted(MODULES)
    text, memory = folder / "text", []
    text.write_bytes(content[_TEXT : _TEXT + _TEXT_SIZE])
    memory.append(f"{text}@{_TEXT_AT:#x}")
    for number, line in enumerate(modules):
        at, copied = _TEXT + _TEXT_SIZE + number * _MODULE_SIZE, folder / line.split()[0]
        copied.write_bytes(content[at : at + _MODULE_SIZE])
        memory.append(f"{copied}@{line.split()[-1]}")
    return kallsyms, memory
