"""A debug transport and a debug module that take their time, and one that has programs where others have commands.

Ref: RISC-V Debug Specification 1.0: 6.1.5 (dmi: busy is sticky, what is scanned meanwhile is ignored, the access under
way ends all the same), 3.7 (abstract commands: cmderr is sticky, accesses while one is done make it 1), 3.8 (program
buffer), 3.10 (system bus access: sbbusyerror), registers in 3.14; RISC-V Instruction Set Manual I for the instructions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rvtrace_gdb.transport.simulated.debug.jtag import (
    ABITS,
    DMI_LENGTH,
    IDCODE,
    IR_DMI,
    IR_DTMCS,
    IR_IDCODE,
    DebugModuleInterface,
    Tap,
)

DATA0, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND, PROGBUF0 = 0x04, 0x10, 0x11, 0x16, 0x17, 0x20
SBCS, SBADDRESS0, SBDATA0 = 0x38, 0x39, 0x3C
NOT_SUPPORTED, EXCEPTION, HALT_RESUME = 2, 3, 4


class SlowDtm:
    """What `Tap` wants of a DTM. An access takes *latency* clocks of TCK; *idle*: what dtmcs says of that."""

    def __init__(self, dmi: DebugModuleInterface, latency: int, idle: int = 0) -> None:
        self._dmi, self._latency = dmi, latency
        self.dtmcs = idle << 12 | ABITS << 4 | 1
        self.now: Callable[[], int] = lambda: 0
        self.done: list[tuple[int, int, int]] = []  # op, address, value
        self.busy_seen = 0
        self._over_at, self._sticky, self._result = 0, 0, 0
        self.fails: set[int] = set()  # registers whose access fails

    def capture(self, ir: int) -> tuple[int, int]:
        if ir == IR_DMI:
            if self.now() < self._over_at:
                self._sticky = 3
                self.busy_seen += 1
            elif self._result & 3:
                self._sticky = self._sticky or self._result & 3
            return self._result & ~3 | self._sticky, DMI_LENGTH
        if ir == IR_DTMCS:
            return self.dtmcs | self._sticky << 10, 32
        return (IDCODE, 32) if ir == IR_IDCODE else (0, 1)

    def update(self, ir: int, value: int) -> None:
        if ir == IR_DTMCS and value >> 16 & 1:
            self._sticky = 0
            self._result &= ~3
        elif ir == IR_DMI and not self._sticky and value & 3 in (1, 2):
            op, address, data = value & 3, value >> 34, value >> 2 & 0xFFFFFFFF
            self.done.append((op, address, data))
            self._over_at = self.now() + self._latency
            if op == 1:
                data = self._dmi.read(address)
            else:
                self._dmi.write(address, data)
            self._result = address << 34 | data << 2 | (2 if address in self.fails else 0)


class CountingTap(Tap):
    """Knows how many clocks there were."""

    def __init__(self, dtm: SlowDtm) -> None:
        self.clocks = 0
        super().__init__(dtm)  # type: ignore[arg-type]
        dtm.now = lambda: self.clocks

    def rise(self, tms: int, tdi: int) -> None:
        self.clocks += 1
        super().rise(tms, tdi)


@dataclass
class Chip:
    """A hart of 32 or 64 bits and its debug module.

    *command_busy*, *bus_busy*: for how many DMI accesses an abstract command, or a bus access, is under way;
    *bus_clocks*: for how many clocks of TCK, which `now` counts.
    *csrs_by_command*, *memory_by_command*: what abstract commands can do. *progbufsize*, *impebreak*, *has_bus*.
    *port*: an address whose every read takes a word out of *fifo*; *hole*: addresses from here on do not exist.
    """

    xlen: int = 32
    command_busy: int = 0
    bus_busy: int = 0
    bus_clocks: int = 0
    now: Callable[[], int] = lambda: 0
    csrs_by_command: bool = True
    memory_by_command: bool = False
    progbufsize: int = 2
    impebreak: bool = False
    has_bus: bool = False
    halted: bool = True
    x: list[int] = field(default_factory=lambda: [0x100 + n for n in range(32)])
    csrs: dict[int, int] = field(default_factory=lambda: {0x340: 7, 0x7B0: 3, 0x7B1: 0x8000_0000})
    words: dict[int, int] = field(default_factory=dict)
    port: int = 0x5000_0000
    hole: int = 0x9000_0000
    fifo: Iterator[int] = field(default_factory=lambda: iter(range(1000, 2000)))
    accesses: int = 0  # of the bus
    commands: int = 0
    _data: list[int] = field(default_factory=lambda: [0] * 4)
    _program: list[int] = field(default_factory=lambda: [0] * 2)
    _active: int = 0
    _cmderr: int = 0
    _busy: int = 0
    _sb_busy: int = 0
    _sb_over_at: int = 0
    _sb_control: int = 0
    _sb_error: int = 0
    _sb_busyerror: int = 0
    _sb_address: int = 0
    _sb_data: int = 0

    # Memory.

    def load(self, address: int) -> int:
        """Raises LookupError."""
        self.accesses += 1
        if address >= self.hole:
            raise LookupError
        return next(self.fifo) if address == self.port else self.words.get(address, address ^ 0x5A5A5A5A)

    def store(self, address: int, value: int) -> None:
        self.accesses += 1
        if address >= self.hole:
            raise LookupError
        self.words[address] = value

    # The DMI.

    def read(self, address: int) -> int:
        busy, sb_busy = self._pass()
        if address == DMCONTROL:
            return self._active
        if address == DMSTATUS:
            return self._dmstatus()
        if address == ABSTRACTCS:
            return self.progbufsize << 24 | (1 if busy else 0) << 12 | self._cmderr << 8 | 4
        if address in range(DATA0, DATA0 + 4):
            return 0xDEAD_BEEF if self._disturbed(busy) else self._data[address - DATA0]
        if address == SBCS and self.has_bus:
            return self._sbcs(sb_busy)
        if address == SBDATA0 and self.has_bus:
            return self._sbdata(sb_busy)
        return 0

    def write(self, address: int, value: int) -> None:
        busy, sb_busy = self._pass()
        if address == DMCONTROL:
            self._write_dmcontrol(value)
        elif address == ABSTRACTCS:
            if not self._disturbed(busy):
                self._cmderr &= ~(value >> 8 & 7)
        elif address == COMMAND:
            if not self._disturbed(busy) and not self._cmderr:
                self._execute(value)
        elif address in range(DATA0, DATA0 + 4):
            if not self._disturbed(busy):
                self._data[address - DATA0] = value
        elif address in range(PROGBUF0, PROGBUF0 + self.progbufsize):
            if not self._disturbed(busy):
                self._program[address - PROGBUF0] = value
        elif self.has_bus:
            self._write_bus(address, value, sb_busy)

    def _pass(self) -> tuple[bool, bool]:
        """A DMI access: whether a command and a bus access were still under way."""
        before = self._busy > 0, self._sb_busy > 0 or self.now() < self._sb_over_at
        self._busy, self._sb_busy = max(self._busy - 1, 0), max(self._sb_busy - 1, 0)
        return before

    def _dmstatus(self) -> int:
        if self._active >> 16 & 0x3FF:
            return 3 << 14 | 1 << 7 | 3
        state = 3 << 8 if self.halted else 3 << 10
        return self.impebreak << 22 | 3 << 16 | state | 1 << 7 | 3

    def _write_dmcontrol(self, value: int) -> None:
        self._active = value & (1 << 16 | 1)
        if value >> 31:
            self.halted = True
        elif value >> 30 & 1:
            self.halted = bool(self.csrs[0x7B0] >> 2 & 1)
            self.csrs[0x7B1] += 4

    # Abstract commands.

    def _disturbed(self, busy: bool) -> bool:
        if busy and not self._cmderr:
            self._cmderr = 1
        return busy

    def _execute(self, command: int) -> None:
        self._busy = self.command_busy
        self.commands += 1
        if not self.halted:
            self._cmderr = HALT_RESUME
        elif command >> 24 == 0:
            self._register(command)
        elif command >> 24 == 2 and self.memory_by_command:
            self._memory(command)
        else:
            self._cmderr = NOT_SUPPORTED

    def _register(self, command: int) -> None:
        regno, bits = command & 0xFFFF, 8 << (command >> 20 & 7)
        general = regno in range(0x1000, 0x1020)
        if command >> 17 & 1:
            if bits > self.xlen or not (general or self.csrs_by_command):
                self._cmderr = NOT_SUPPORTED
                return
            if not general and regno not in self.csrs:
                self._cmderr = EXCEPTION
                return
            self._move(regno, bits, write=bool(command >> 16 & 1))
        if command >> 18 & 1:
            self._run_program()

    def _move(self, regno: int, bits: int, write: bool) -> None:
        where = self.x if regno >= 0x1000 else self.csrs
        place = regno & 0xFFF
        if write:
            where[place] = (self._data[0] | self._data[1] << 32) & (1 << bits) - 1
        else:
            self._data[0] = where[place] & 0xFFFFFFFF
            if bits == 64:
                self._data[1] = where[place] >> 32

    def _memory(self, command: int) -> None:
        at = self.xlen // 32
        address = self._data[at] | (self._data[at + 1] << 32 if self.xlen == 64 else 0)
        try:
            if command >> 16 & 1:
                self.store(address, self._data[0])
            else:
                self._data[0] = self.load(address)
        except LookupError:
            self._cmderr = 5

    def _run_program(self) -> None:
        for instruction in [*self._program[: self.progbufsize], *[0x0010_0073] * self.impebreak]:
            if instruction == 0x0010_0073:  # ebreak
                return
            try:
                self._instruction(instruction)
            except LookupError:
                self._cmderr = EXCEPTION
                return
        raise AssertionError("ran over the end of the program buffer")

    def _instruction(self, word: int) -> None:
        rd, funct3, rs1, rs2 = word >> 7 & 31, word >> 12 & 7, word >> 15 & 31, word >> 20 & 31
        if word & 0x7F == 0x73 and funct3 in (1, 2):
            csr = word >> 20
            old = self.csrs[csr]
            if funct3 == 1 or rs1:
                self.csrs[csr] = self.x[rs1] if funct3 == 1 else old | self.x[rs1]
            if rd:
                self.x[rd] = old
        elif word & 0x7F == 0x03 and funct3 == 2 and word >> 20 == 0:
            value = self.load(self.x[rs1])
            self.x[rd] = (value ^ 0x8000_0000) - 0x8000_0000 & (1 << self.xlen) - 1
        elif word & 0x7F == 0x23 and funct3 == 2 and not (rd or word >> 25):
            self.store(self.x[rs1], self.x[rs2] & 0xFFFFFFFF)
        else:
            raise AssertionError(f"{word:08x} is no instruction that is needed here")

    # System bus access.

    def _sbcs(self, busy: bool) -> int:
        head = 1 << 29 | self._sb_busyerror << 22 | busy << 21 | self._sb_control | self._sb_error << 12
        return head | self.xlen << 5 | 1 << 2

    def _sbdata(self, busy: bool) -> int:
        if busy:
            self._sb_busyerror = 1
        if busy or self._sb_busyerror or self._sb_error:
            return 0xDEAD_BEEF if busy else self._sb_data
        value = self._sb_data
        if self._sb_control >> 15 & 1:
            self._bus_read()
        return value

    def _write_bus(self, address: int, value: int, busy: bool) -> None:
        if address == SBCS:
            assert not busy, "a debugger must not write sbcs while sbbusy (0.13)"
            self._sb_busyerror &= ~(value >> 22 & 1)
            self._sb_error &= ~(value >> 12 & 7)
            self._sb_control = value & 0x001F_8000
            return
        if busy:
            self._sb_busyerror = 1
        if busy or self._sb_busyerror or self._sb_error:
            return
        if address == SBADDRESS0:
            self._sb_address = value
            if self._sb_control >> 20 & 1:
                self._bus_read()
        elif address == SBDATA0:
            self._bus(lambda: self.store(self._sb_address, value))

    def _bus_read(self) -> None:
        def read() -> None:
            self._sb_data = self.load(self._sb_address)

        self._bus(read)

    def _bus(self, access: Callable[[], None]) -> None:
        assert self._sb_control >> 17 & 7 == 2, "32 bits"
        self._sb_busy, self._sb_over_at = self.bus_busy, self.now() + self.bus_clocks
        try:
            access()
        except LookupError:
            self._sb_error = 2
        else:
            self._sb_address += 4 if self._sb_control >> 16 & 1 else 0
