"""A plain client of gdb's remote protocol (registers by number, breakpoints, running), for tests that must not use
rvtrace's own client.

Source: GDB manual, "GDB Remote Serial Protocol"; the numbers of CSRs from the target description ("Target
Descriptions", "RISC-V Features").
"""

import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType


class Refused(Exception):
    """The stub answered with an error."""


def _packet(text: str) -> bytes:
    return f"${text}#{sum(text.encode()) % 256:02x}".encode()


def _value(number: int, answer: str) -> int:
    if answer.startswith("E") or not answer:
        raise Refused(f"p{number:x}: {answer}")
    return int.from_bytes(bytes.fromhex(answer), "little")


def _written(number: int, answer: str) -> None:
    if answer != "OK":
        raise Refused(f"P{number:x}: {answer}")


class Rsp:
    """One connection. The hart is stopped, except during `go`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self.ask("qSupported:swbreak+;hwbreak+")
        self.ask("?")
        self.csr_base = self._csr_base()
        self.bytes = len(self.ask("p20")) // 2
        """Of a register: the pc's."""

    def __enter__(self) -> "Rsp":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._socket.close()

    def ask(self, packet: str) -> str:
        self._socket.sendall(_packet(packet))
        return self._answer()

    def ask_all(self, packets: Sequence[str]) -> list[str]:
        """As `ask` for each of them, without waiting in between: a stub takes the next packet for an acknowledgement.

        For so few packets that they and their answers have room on the way.
        """
        self._socket.sendall(b"".join(_packet(text) for text in packets))
        return [self._answer() for _ in packets]

    def _answer(self) -> str:
        while (found := re.search(rb"\$([^#]*)#..", self._received)) is None:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the stub went away")
            self._received += data
        self._received = self._received[found.end() :]
        self._socket.sendall(b"+")
        answer = re.sub(rb"\}(.)", lambda escaped: bytes([escaped[1][0] ^ 0x20]), found[1], flags=re.DOTALL)
        return re.sub(rb"(.)\*(.)", lambda run: run[1] * (run[2][0] - 28), answer, flags=re.DOTALL).decode("latin-1")

    def _csr_base(self) -> int:
        """Number of CSR 0, by mstatus in the description."""
        text, part = "", "m"
        while part.startswith("m"):
            part = self.ask(f"qXfer:features:read:riscv-csr.xml:{len(text):x},800")
            text += part[1:]
        number = None
        for register in re.findall(r"<reg [^>]*>", text):
            given = re.search(r'regnum="(\d+)"', register)
            number = int(given[1]) if given else (number or 0) + 1
            if 'name="mstatus"' in register:
                return number - 0x300
        raise LookupError("the stub's description has no mstatus")

    # Registers

    def read(self, number: int) -> int:
        return _value(number, self.ask(f"p{number:x}"))

    def write(self, number: int, value: int) -> None:
        _written(number, self.ask(self._writing(number, value)))

    def _writing(self, number: int, value: int) -> str:
        return f"P{number:x}={value.to_bytes(self.bytes, 'little').hex()}"

    def csr(self, number: int) -> int:
        return self.read(self.csr_base + number)

    def set_csr(self, number: int, value: int) -> None:
        self.write(self.csr_base + number, value)

    def selected(self, select: int, value: int, numbers: Sequence[int]) -> list[int]:
        """Write *value* to a CSR, and read others."""
        first = self._writing(self.csr_base + select, value)
        written, *read = self.ask_all([first, *(f"p{self.csr_base + number:x}" for number in numbers)])
        _written(self.csr_base + select, written)
        return [_value(self.csr_base + number, answer) for number, answer in zip(numbers, read, strict=True)]

    @property
    def pc(self) -> int:
        return self.read(32)

    @property
    def mode(self) -> int:
        """The pseudo register `priv`, which comes before the CSRs."""
        return self.read(self.csr_base - 1)

    @mode.setter
    def mode(self, mode: int) -> None:
        self.write(self.csr_base - 1, mode)

    # Running

    def go(self, *addresses: int) -> int:
        """Runs to the first of *addresses* (not that it stands at); where it stopped."""
        for address in addresses:
            self.ask(f"Z0,{address:x},2")
        self.ask("c")
        for address in addresses:
            self.ask(f"z0,{address:x},2")
        return self.pc
