"""Systems of tasks that the tests run, and what the trace hooks of their kernels noted (tests/programs/systems)."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from rvtrace_gdb.transport.simulated.machine import Machine
from tests.helpers.cross_compiler import EXAMPLES, HOME, compile_program, symbol_address, symbol_size

FOLDER = HOME / "tests" / "programs" / "systems"
KERNEL = HOME / ".tools" / "freertos" / "tree"
"""FreeRTOS V9.0.0, as scripts/setup-freertos unpacks it."""


class What(IntEnum):
    """What a hook noted, as in notes.h."""

    CREATED = 1
    DELETED = 2
    SWITCHED_IN = 3
    OVERFLOWED = 4


@dataclass(frozen=True)
class Note:
    """What a hook noted. *when*: how many instructions its hart had retired. *task*: the address of what the kernel
    knows it by; *number*: the kernel's own.
    """

    what: What
    when: int
    hart: int
    task: int
    number: int
    name: str


def freertos(folder: Path, *options: str, march: str = "rv64imac_zicsr") -> Path:
    """Return a program with the real FreeRTOS; FreeRTOSConfig.h and main.c have the options."""
    ours = FOLDER / "freertos"
    sources = [ours / name for name in ("main.c", "port.c", "portASM.S", "memory.c")]
    sources += [KERNEL / name for name in ("tasks.c", "list.c", "queue.c", "portable/MemMang/heap_4.c")]
    included = [f"-I{path}" for path in (FOLDER, ours, KERNEL / "include")]
    return compile_program(folder, *sources, FOLDER / "notes.c", march=march, options=(*included, *options))


def small(folder: Path, system: str, *options: str, march: str = "rv64imac_zicsr", harts: int = 1) -> Path:
    """Return a program with a small kernel that has the structures of *system*: "zephyr", "rtthread" or "linux"."""
    sources = [FOLDER / "small" / "main.c", FOLDER / "small" / "scheduling.c", FOLDER / "notes.c"]
    sources += sorted((FOLDER / system).glob("*.[cS]"))
    included = (f"-I{FOLDER}", f"-I{FOLDER / 'small'}", f"-DHARTS={harts}", "-fno-tree-loop-distribute-patterns")
    start = EXAMPLES / ("start.S" if harts == 1 else "two_harts/start.S")
    return compile_program(folder, *sources, march=march, options=(*included, *options), start=start)


def notes(machine: Machine, elf: Path) -> list[Note]:
    """Return what the hooks noted in the memory of a machine, in its order."""
    return list(_notes(machine, elf))


def _notes(machine: Machine, elf: Path) -> Iterator[Note]:
    word = machine.hart.xlen // 8
    size = 5 * word + 16
    noted = int.from_bytes(_memory(machine, symbol_address(elf, "noted"), word), "little")
    count = min(noted, symbol_size(elf, "notes") // size)
    data = _memory(machine, symbol_address(elf, "notes"), count * size)
    for begin in range(0, count * size, size):
        words = range(begin, begin + 5 * word, word)
        what, when, hart, task, number = (int.from_bytes(data[at : at + word], "little") for at in words)
        name = data[begin + 5 * word : begin + size].split(b"\0")[0].decode()
        yield Note(What(what), when, hart, task, number, name)


def _memory(machine: Machine, address: int, size: int) -> bytes:
    return b"".join(machine.bus.read(address + at, 4).to_bytes(4, "little") for at in range(0, size, 4))
