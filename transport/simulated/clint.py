"""The core-local interruptor (CLINT) of one or of several harts, and the host-target interface (HTIF).

CLINT: software interrupt and timer. Layout as in SiFive's CLINT (FU540-C000 manual, chapter 9) and the RISC-V ACLINT
specification 1.0, for hart i: msip at 0x0000 + 4 * i, mtimecmp at 0x4000 + 8 * i; there is one mtime, at 0xBFF8. Time
is deterministic: mtime advances by one with every retired instruction, and jumps to mtimecmp when the hart waits for
the timer in WFI. As in Spike, mtimecmp resets to 0, so the timer interrupt is pending until a program writes mtimecmp.

Several harts take turns, and time passes for a hart as it retires instructions: in the middle of a round some are ahead
of others. At the end of the round (`align`) the harts that were slower, slept or were halted catch up, so that mtime
advances as fast as the fastest hart. When all sleep it jumps to where the first of them wakes up (`skip_to_timer`).

HTIF: how test programs print and end (`tohost`, `fromhost`). A 64-bit command in `tohost` is device (bits 63:56),
command (55:48), payload. Device 0: an odd payload ends the program with status payload >> 1, an even one is the address
of a system call block of 64-bit words [number, arguments...]. Device 1, command 1 prints a character. Every command but
the end is answered at once by a non-zero `fromhost` and a cleared `tohost`. Source: riscv-isa-sim `fesvr` as of 1.1.
"""

from collections.abc import Sequence
from typing import Protocol

from rvtrace_gdb.transport.simulated.bus import Bus, BusError

MSI, MTI, MEI = 3, 7, 11  # interrupt numbers: machine software, timer, external

MSIP, MTIMECMP, MTIME, SIZE = 0x0000, 0x4000, 0xBFF8, 0xC000
_TIMER_MASK = (1 << 64) - 1
# A wake-up this far away means "never": programs switch the timer off by writing all ones, or as good as all ones.
_NEVER = 1 << 62


class TimedHart(Protocol):
    """The part of a hart that the CLINT uses."""

    clint: "Clint | None"

    @property
    def now(self) -> int:
        """Return the number of instructions retired so far, exact even in the middle of a compiled block."""

    def set_interrupt(self, number: int, level: bool) -> None:
        """Drive interrupt line *number* of mip."""

    def timer_changed(self) -> None:
        """React to a change of `Clint.due`."""


class Clint:
    """The CLINT of one hart. `due` is the count of retired instructions at which mtime reaches mtimecmp, `idle` the
    time slept so far.

    *bus* None: the owner carries out the accesses to its registers, with `read` and `write`.
    """

    def __init__(self, hart: TimedHart, bus: Bus | None, base: int = 0x0200_0000) -> None:
        self._hart = hart
        self._skew = 0
        self._compare = 0
        self._msip = 0
        self.due = 0
        self.idle = 0
        hart.clint = self
        if bus is not None:
            bus.add(base, SIZE, self.read, self.write)

    @property
    def mtime(self) -> int:
        return (self._hart.now + self._skew) & _TIMER_MASK

    @property
    def mtimecmp(self) -> int:
        return self._compare

    @property
    def can_wake(self) -> bool:
        """Whether the timer will ever expire."""
        return self.due - self._hart.now < _NEVER

    def reset(self) -> None:
        self._skew = -self._hart.now
        self._msip = 0
        self._set_compare(0)
        self._hart.set_interrupt(MSI, False)

    def skip_to_timer(self) -> None:
        """Let the time pass that the hart sleeps in the WFI it is executing: once it retires, mtime >= mtimecmp."""
        self._sleep(max(0, self.due - self._hart.now - 1))

    def _sleep(self, ticks: int) -> None:
        self._skew += ticks
        self.idle += ticks
        self._reschedule()

    def _set_compare(self, value: int) -> None:
        self._compare = value
        self._reschedule()

    def _reschedule(self) -> None:
        self.due = self._compare - self._skew
        self._hart.timer_changed()

    def read(self, offset: int, nbytes: int) -> int:
        value, start = self._register_at(offset, nbytes)
        return value >> 8 * (offset - start) & ((1 << 8 * nbytes) - 1)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        old, start = self._register_at(offset, nbytes)
        shift = 8 * (offset - start)
        new = old & ~(((1 << 8 * nbytes) - 1) << shift) | value << shift
        if start == MSIP:
            self._msip = new & 1
            self._hart.set_interrupt(MSI, bool(self._msip))
        elif start == MTIMECMP:
            self._set_compare(new)
        elif start == MTIME:
            self._skew += new - self.mtime
            self._reschedule()

    def _register_at(self, offset: int, nbytes: int) -> tuple[int, int]:
        """Return value and offset of the register at *offset*; an address without a register reads as zero, as in
        Spike.
        """
        for start, size, value in ((MSIP, 4, self._msip), (MTIMECMP, 8, self._compare), (MTIME, 8, self.mtime)):
            if start <= offset < start + size:
                if offset + nbytes > start + size:
                    raise BusError(offset, nbytes)
                return value, start
        return 0, offset


_MSIP_SIZE, _MTIMECMP_SIZE = 4, 8


class SleepingHart(TimedHart, Protocol):
    """The part that the CLINT uses of a hart that may sleep while others run."""

    def situation_changed(self) -> None:
        """React to a jump of the hart's time."""


class HartClint(Clint):
    """The part of a shared CLINT that belongs to one hart."""

    def __init__(self, hart: SleepingHart) -> None:
        super().__init__(hart, None)
        self._sleeper = hart

    @property
    def can_wake(self) -> bool:
        """False: one hart cannot decide that time jumps, so its WFI sleeps."""
        return False

    @property
    def wakes_after(self) -> int | None:
        """The time until the timer expires; None: never."""
        return max(0, self.due - self._sleeper.now) if super().can_wake else None

    @property
    def elapsed(self) -> int:
        return self._sleeper.now + self.idle

    def catch_up(self, elapsed: int) -> None:
        if elapsed > self.elapsed:
            self._sleep(elapsed - self.elapsed)
            self._sleeper.situation_changed()

    def shift(self, ticks: int) -> None:
        """Follow a write of mtime, which moved it by *ticks*."""
        self._skew += ticks
        self._reschedule()

    def reset(self) -> None:
        """Do nothing: resetting a hart by itself does not reset the CLINT."""

    def restart(self) -> None:
        """Reset everything."""
        super().reset()


class SharedClint:
    """The CLINT of several harts. `reading` is the part of the hart that executes, whose time mtime shows."""

    def __init__(self, harts: Sequence[SleepingHart], bus: Bus, base: int) -> None:
        self.parts = tuple(HartClint(hart) for hart in harts)
        self.reading = self.parts[0]
        bus.add(base, SIZE, self._read_part, self._write_part)

    def align(self) -> None:
        """Let harts whose time is less than others' catch up."""
        elapsed = max(part.elapsed for part in self.parts)
        for part in self.parts:
            part.catch_up(elapsed)

    def skip_to_timer(self, waiting: Sequence[HartClint]) -> None:
        """Let the time pass until the first timer of *waiting* expires. All parts must be aligned."""
        times = [after for part in waiting if (after := part.wakes_after) is not None]
        if times:
            for part in self.parts:
                part.catch_up(part.elapsed + min(times))

    def reset(self) -> None:
        self.align()
        for part in self.parts:
            part.restart()

    def _read_part(self, offset: int, nbytes: int) -> int:
        part, inside = self._hart_part(offset)
        return part.read(inside, nbytes) if part is not None else 0

    def _write_part(self, offset: int, nbytes: int, value: int) -> None:
        part, inside = self._hart_part(offset)
        if part is None:
            return
        before = part.mtime
        part.write(inside, nbytes, value)
        for other in self.parts:
            if other is not part:
                other.shift(part.mtime - before)

    def _hart_part(self, offset: int) -> tuple[HartClint | None, int]:
        """Return the part of the hart whose register is at *offset*, and where the register would be if the CLINT were
        this hart's only.
        """
        if offset >= MTIME:
            return self.reading, offset
        first, size = (MTIMECMP, _MTIMECMP_SIZE) if offset >= MTIMECMP else (MSIP, _MSIP_SIZE)
        index, rest = divmod(offset - first, size)
        return (self.parts[index] if index < len(self.parts) else None), first + rest


_SYS_WRITE, _SYS_EXIT = 64, 93
_ENOSYS = 38


class Htif:
    """Executes HTIF commands. `output` collects what the program printed."""

    def __init__(self, bus: Bus, tohost: int, fromhost: int | None) -> None:
        self._bus = bus
        self.tohost, self.fromhost = tohost, fromhost
        self.output = bytearray()

    def command(self) -> int | None:
        """Examine `tohost` after the program wrote it. Return the exit status when the program ends."""
        command = self._bus.read(self.tohost, 8)
        device, payload = command >> 56, command & (1 << 48) - 1
        if command == 0:
            return None
        if device == 0 and payload & 1:
            return payload >> 1
        status = None
        if device == 0:
            status = self._system_call(payload)
        elif device == 1 and command >> 48 & 0xFF == 1:
            self.output.append(payload & 0xFF)
        self._answer_host()
        return status

    def _answer_host(self) -> None:
        self._bus.write(self.tohost, 8, 0)
        if self.fromhost is not None:
            self._bus.write(self.fromhost, 8, 1)

    def _system_call(self, block: int) -> int | None:
        try:
            number, _, buffer, size = (self._bus.read(block + 8 * i, 8) for i in range(4))
            if number == _SYS_EXIT:
                return self._bus.read(block + 8, 8)
            result = -_ENOSYS
            if number == _SYS_WRITE:
                self.output += self._bus.read_bytes(buffer, size)
                result = size
            self._bus.write(block, 8, result)
        except BusError:
            pass  # the program handed over a wild address; it gets no answer in its block, as with a real host
        return None
