"""Boards for `rvtrace init`: components at addresses of their own, bus errors elsewhere."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.openocd.errors import OpenOcdAbsent

IMPL = {"encoder": 0x0001_0101, "funnel": 0x801, "sram": 0x1901, "smem": 0x2901, "both": 0x3901, "pib": 0xA01}
"""tr??Impl of Trace Control Interface 1.0: version 1.0, the type, and for a RAM sink bits 12 (SRAM) and 13 (SMEM)."""


class BusError(RvtraceError):
    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__("bus error")


class Hung(RvtraceError):
    """The target is lost."""


@dataclass
class Silicon:
    """*components*: tr??Impl by address; all are in reset, and then say nothing, except for *awake*.

    *memory*: what can be read besides. *hangs*: an address that hangs the chip. *accesses*: every address touched.
    """

    components: dict[int, int]
    awake: set[int] = field(default_factory=set)
    memory: Collection[int] = range(0x5000_0000, 0x5004_0000)
    hangs: int | None = None
    targets: tuple[str, ...] = ("cpu0", "cpu1")
    states: Mapping[str, str] = field(default_factory=dict)
    width: int | None = 64
    absent: bool = False
    target: str | None = None
    accesses: set[int] = field(default_factory=set)
    writes: list[tuple[int, int]] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def connect(self, host: str, port: int) -> "Silicon":
        self.places.append((host, port))
        return self

    def close(self) -> None:
        pass

    def read32(self, address: int) -> int:
        base = self._component(address)
        if base is None:
            return 0
        on = base in self.awake
        return {0: 0x8 | on, 4: self.components[base] if on else 0}.get(address - base, 0)

    def write32(self, address: int, value: int) -> None:
        base = self._component(address)
        self.writes.append((address, value))
        if base == address:
            (self.awake.add if value & 1 else self.awake.discard)(base)

    def _component(self, address: int) -> int | None:
        self.accesses.add(address)
        if self.hangs is not None and address & ~0xFFF == self.hangs:
            raise Hung("OpenOCD did not answer within 10 s")
        base = address & ~0xFFF
        if base not in self.components and address not in self.memory:
            raise BusError(address)
        return base if base in self.components else None

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        raise AssertionError("words are read one by one")

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        raise AssertionError("no trace is read")

    def state(self) -> str:
        if self.absent:
            raise OpenOcdAbsent("127.0.0.1", 6666, "Connection refused")
        return self.states.get(self.target or "", "running")

    def xlen(self) -> int | None:
        return self.width

    def command(self, tcl: str) -> str:
        """Answer a script for a register, as OpenOCD does."""
        if "lappend _rvtrace_out $_rvtrace_said" not in tcl:
            return "mvendorid mvendorid {0x489}\nmarchid marchid {0x7}\nmimpid mimpid {0x1}"
        return "0x489" if "{mvendorid -}" in tcl else "0x7" if "{marchid -}" in tcl else "!not there"

    def unpolled(self) -> AbstractContextManager[None]:
        return nullcontext()


def cluster(storage: str = "both") -> Silicon:
    """Two encoders, a funnel and a RAM sink."""
    kinds = {0x4A00_0000: "encoder", 0x4A00_1000: "encoder", 0x4A00_4000: "funnel", 0x4A00_6000: storage}
    return Silicon({base: IMPL[kind] for base, kind in kinds.items()})
