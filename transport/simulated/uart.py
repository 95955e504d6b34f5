"""A UART that prints: what a program sends is what the simulated target prints, at once. It receives nothing.

The registers are those of a 16550, a byte each, where QEMU's `virt` board has its own (docs/simulated-target.md).
Source: PC16550D data sheet, section 8 (registers); QEMU's hw/riscv/virt.c, `VIRT_UART0`.
"""

THR, IER, IIR, LCR, LSR = 0, 1, 2, 3, 5
SIZE = 8
DLAB = 0x80
"""LCR: THR and IER are the divisor latch."""
EMPTY = 0x60
"""LSR: the transmitter has room, and is idle."""
NO_INTERRUPT = 0x01
"""IIR: nothing is pending."""


class Uart:
    """The registers of a UART. *output*: what was sent and is not printed yet."""

    def __init__(self) -> None:
        self.output = bytearray()
        self._registers = bytearray(SIZE)
        self._divisor = bytearray(2)

    def read(self, offset: int, nbytes: int) -> int:
        """Return a register. Nothing was received: RBR reads 0."""
        if offset <= IER and self._registers[LCR] & DLAB:
            return self._divisor[offset]
        return {THR: 0, IIR: NO_INTERRUPT, LSR: EMPTY}.get(offset, self._registers[offset])

    def write(self, offset: int, nbytes: int, value: int) -> None:
        """Send a byte, or set a register, of which an access of several bytes has the lowest byte."""
        if offset <= IER and self._registers[LCR] & DLAB:
            self._divisor[offset] = value & 0xFF
        elif offset == THR:
            self.output.append(value & 0xFF)
        elif offset not in (IIR, LSR):
            self._registers[offset] = value & 0xFF
