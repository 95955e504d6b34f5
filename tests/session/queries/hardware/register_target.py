"""A target of which only registers are known, for `trace regs` and `trace info`: nothing else happens in it."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


class Refused(RvtraceError):
    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__("bus error")


class Unplugged(RvtraceError):
    def __init__(self) -> None:
        super().__init__("the cable is out")


@dataclass
class Registers:
    """Words by address; what is not there reads 0. *broken*: addresses that are refused. *reads_left*: then it is gone.

    *writable*: the bits of a word that can be written, none unless they are here.
    """

    words: dict[int, int]
    broken: Collection[int] = ()
    targets: tuple[str, ...] = ("cpu0",)
    states: Mapping[str, str] = field(default_factory=dict)
    reads_left: int | None = None
    writable: Mapping[int, int] = field(default_factory=dict)
    target: str | None = None
    reads: list[int] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    open: int = 0

    def connect(self, host: str, port: int) -> "Registers":
        self.open += 1
        return self

    def close(self) -> None:
        self.open -= 1

    def read32(self, address: int) -> int:
        if self.reads_left is not None:
            if not self.reads_left:
                raise Unplugged
            self.reads_left -= 1
        if address in self.broken:
            raise Refused(address)
        self.reads.append(address)
        return self.words.get(address, 0)

    def write32(self, address: int, value: int) -> None:
        if address in self.broken:
            raise Refused(address)
        self.writes.append((address, value))
        mask = self.writable.get(address, 0)
        self.words[address] = self.words.get(address, 0) & ~mask | value & mask

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        raise AssertionError("registers are read one by one")

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        raise AssertionError("no trace is read for a look")

    def state(self) -> str:
        return self.states.get(self.target or "", "halted")

    def xlen(self) -> int | None:
        return 64

    def command(self, tcl: str) -> str:
        raise AssertionError(f"nothing is to be asked for a look but memory and states: {tcl}")

    def unpolled(self) -> AbstractContextManager[None]:
        return nullcontext()


def absent(host: str, port: int) -> Registers:
    """An OpenOCD that is not there."""
    raise Unplugged


def described(folder: Path, *components: str, name: str = "it") -> Context:
    """The context of requests, with a description of these components: "type name base more=..."."""
    file = folder / f"{name}.toml"
    tables = []
    for component in components:
        kind, called, base, *more = component.split()
        lines = [f'name = "{called}"', f'type = "{kind}"', *([] if base == "-" else [f"base = {base}"])]
        tables.append("\n".join(["[[component]]", *lines, *(f"{it.replace('=', ' = ', 1)}" for it in more)]))
    file.write_text(f'[target]\nname = "{name}"\n' + "\n".join(tables) + "\n")
    return Context(target_file=str(file))


Connect = Callable[[str, int], Registers]
