"""The host-target interface: how test programs print and end (`tohost`, `fromhost`).

Source: riscv-isa-sim `fesvr` as of 1.1: a 64-bit command in `tohost` is device (bits 63:56), command (55:48), payload.
Device 0: an odd payload ends the program with status payload >> 1, an even one is the address of a system call block of
64-bit words [number, arguments...]. Device 1, command 1 prints a character. Every command but the end is answered at
once by a non-zero `fromhost` and a cleared `tohost`.
"""

from rvtrace_gdb.transport.simulated.bus import Bus, BusError

_SYS_WRITE, _SYS_EXIT = 64, 93
_ENOSYS = 38


class Htif:
    """Carries out commands. `output` collects what the program printed."""

    def __init__(self, bus: Bus, tohost: int, fromhost: int | None) -> None:
        self._bus = bus
        self._tohost = tohost
        self._fromhost = fromhost
        self.output = bytearray()

    def command(self) -> int | None:
        """Look at `tohost` after the program wrote it. Returns the exit status when the program ends."""
        command = self._bus.read(self._tohost, 8)
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
        self._answer()
        return status

    def _answer(self) -> None:
        self._bus.write(self._tohost, 8, 0)
        if self._fromhost is not None:
            self._bus.write(self._fromhost, 8, 1)

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
