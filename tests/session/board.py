"""A target for session tests: the simulated machine, reached without JTAG and OpenOCD, and broken on demand."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.gdb_transcripts import FOLDER

DEMO = FOLDER / "demo64.elf"
SMALL_RAM = MemoryMap(ram_size=1 << 20)
ENCODER, SINK, BUFFER = 0x2000_0000, 0x2000_1000, 0x3000_0000
CHUNK = 256


class CableOut(RvtraceError):
    """What a transport raises when the target is gone in the middle of a read."""

    def __init__(self) -> None:
        super().__init__("the cable is out")
        self.partial = b""
        self.requested = 0


class BoardLink:
    """The link to a `Board`; satisfies session.target.link.Link."""

    def __init__(self, board: "Board") -> None:
        self._board = board
        self.target: str | None = None
        self.targets = board.targets
        self.closed = False

    def read32(self, address: int) -> int:
        self._board.touch(address)
        return self._board.machine.bus.read(address, 4)

    def write32(self, address: int, value: int) -> None:
        self._board.touch(address)
        self._board.machine.bus.write(address, 4, value)
        self._board.writes.append(address)

    def write64(self, address: int, value: int) -> None:
        self._board.touch(address)
        self._board.machine.bus.write(address, 8, value)
        self._board.writes.append(address)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        data = bytearray()
        while len(data) < nbytes:
            size = min(CHUNK, nbytes - len(data))
            try:
                progress("reading memory", len(data), nbytes)
                self._board.touch(address + len(data))
            except Cancelled as error:
                error.partial = bytes(data)
                raise
            except CableOut as error:
                error.partial, error.requested = bytes(data), nbytes
                raise
            data += b"".join(self.word(address + len(data) + n) for n in range(0, size, 4))
        self._board.blocks.append((address, nbytes))
        return bytes(data)

    def word(self, address: int) -> bytes:
        return self._board.machine.bus.read(address, 4).to_bytes(4, "little")

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        return b"".join(self.read32(address).to_bytes(4, "little") for _ in range(words))

    def state(self) -> str:
        self._board.touch(0)
        return self._board.state or ("halted" if self._board.machine.halted else "running")

    def unpolled(self) -> AbstractContextManager[None]:
        return nullcontext()

    def command(self, tcl: str) -> str:
        raise OpenOcdRefused(tcl, "there is no OpenOCD here")

    def xlen(self) -> int | None:
        return self._board.machine.hart.xlen

    def close(self) -> None:
        self.closed = True


class LinkWithRegisters(BoardLink):
    """A link through which the hart's registers can be reached, too."""

    def csrs_of(self, hart: int) -> "BoardCsrs":
        return BoardCsrs(self._board)


class BoardCsrs:
    """A `CsrAccess` to the hart of a `Board`."""

    name = "board"

    def __init__(self, board: "Board") -> None:
        self._board = board
        self.xlen = board.machine.hart.xlen

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        self._board.touch(0)
        if not self._board.machine.halted:
            raise HartRuns
        self._board.asked += [register for register, _ in accesses]
        return [self._value(register) for register, _ in accesses]

    def _value(self, register: CsrName) -> int:
        hart = self._board.machine.hart
        if isinstance(register, str):
            return {"pc": hart.csr.debug.dpc, "priv": hart.csr.debug.dcsr & 3}[register]
        if register >= 0x1000:
            return [*hart.x, *hart.f][register - 0x1000]
        return hart.csr.read(register, debug=True)


@dataclass
class Board:
    """A machine halted at its start. *broken*: raises when the session touches an address it should not be able to.
    *registers*: whether links reach those of the hart.
    """

    machine: Machine
    elf: Path
    folder: Path
    targets: tuple[str, ...] = ("riscv.cpu0",)
    state: str = ""
    broken: Callable[[int], None] = lambda address: None
    links: list[BoardLink] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)  # read_block calls that succeeded
    writes: list[int] = field(default_factory=list)
    registers: bool = False
    asked: list[CsrName] = field(default_factory=list)  # registers of the hart that were read

    def connect(self, host: str, port: int) -> BoardLink:
        self.links.append(LinkWithRegisters(self) if self.registers else BoardLink(self))
        return self.links[-1]

    def touch(self, address: int) -> None:
        self.broken(address)

    def run(self, instructions: int) -> int:
        """Let the hart run, then halt it. Returns how many instructions retired."""
        before = self.machine.hart.instret
        control = self.machine._control
        if self.machine.halted:
            control.resume()
        self.machine.run_slice(instructions)
        if not self.machine.halted:
            control.halt(DebugCause.HALTREQ)
        return self.machine.hart.instret - before

    def describe(self, size: int = 0x1_0000, mode: str = "SMEM", extra: str = "") -> Context:
        """The context of requests, with a target description written for this board."""
        file = self.folder / "board.toml"
        buffer = f"start = {BUFFER}\nsize = {size}\n" if mode == "SMEM" else ""
        file.write_text(
            f'[target]\nname = "board"\n'
            f'[[component]]\nname = "encoder0"\ntype = "encoder"\nbase = {ENCODER}\n'
            f'[[component]]\nname = "ram0"\ntype = "ram_sink"\nbase = {SINK}\nmode = "{mode}"\n{buffer}{extra}'
        )
        return Context(str(self.elf), str(file))


def board(folder: Path, elf: Path = DEMO, formats: Sequence[int] = (TeFormat.N_TRACE,)) -> Board:
    """A board with a program loaded, halted before its first instruction. *formats*: those that its encoder has."""
    machine = build(elf, memory_map=SMALL_RAM, formats=formats)
    machine.halt_at_start()
    return Board(machine, elf, folder)


def executed(elf: Path = DEMO) -> Iterator[int]:
    """The addresses of all instructions the program retires, found by stepping another machine, without any trace."""
    hart = build(elf, memory_map=SMALL_RAM).hart
    while True:
        pc, before = hart.pc, hart.instret
        hart.step()
        if hart.instret != before:
            yield pc
