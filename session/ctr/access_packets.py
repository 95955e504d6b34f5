"""CSRs through packets of gdb's remote protocol, by number: also those that the stub does not name to gdb.

A stub numbers its CSRs one behind the other (QEMU from 66 on, or 98 where there are vector registers, OpenOCD from 65);
where they begin, the description of its target says, whichever of them it has. `P` may be answered OK and do nothing.

Source: GDB manual, "Packets" (p, P), "RISC-V Features".
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.controlregs.csr_access import Access, Answer, Register
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.session.ctr.access_errors import ErrorsHidden, NoNumbers
from rvtrace_gdb.session.ctr.access_gdb import NOWHERE, Gdb
from rvtrace_gdb.session.ctr.csr_names import spellings
from rvtrace_gdb.session.proxy.csrs import BARRIER, HART, RUNS, batch, refuses, replies
from rvtrace_gdb.session.proxy.description import Description, in_hex
from rvtrace_gdb.session.proxy.descriptions import READ, TARGET
from rvtrace_gdb.session.proxy.packets import unescape
from rvtrace_gdb.support.progress import Progress, silent

# CSRs that stubs name, and their numbers; more than one, because none of them is always there.
_KNOWN = {"mstatus": 0x300, "misa": 0x301, "mtvec": 0x305, "mepc": 0x341, "mcause": 0x342, "mhartid": 0xF14}
_SELECTS = (0x150, 0x250, 0x350)
"""siselect, vsiselect, miselect: writing them does nothing but choose, so that it need not wait for what is before."""
_ABSENT = "the stub has no such register"
_PIECE = 0xF00  # bytes of a description: less than the smallest PacketSize of OpenOCD and QEMU
_AT_ONCE = 128  # accesses in one packet of ours


class Numbers(NamedTuple):
    """*base*: that of CSR 0; *sizes*: of registers by number, in bytes; *by_name*: those the stub names.

    *base* is None for OpenOCD, which closes the connection when it is asked for a register it does not name.
    """

    base: int | None
    xlen: int
    by_name: dict[str, int]
    sizes: dict[int, int]

    def of(self, register: Register) -> int | None:
        """A register's number in the protocol."""
        if isinstance(register, str):
            return self.by_name.get(register)
        named = next((self.by_name[name] for name in spellings(register) if name in self.by_name), None)
        return self.base + register if named is None and self.base is not None else named

    def size(self, number: int) -> int:
        return self.sizes.get(number, self.xlen // 8)


class PacketAccess:
    """A `CsrAccess`. *openocd*: it is OpenOCD that is behind gdb. Raises besides NoNumbers, ErrorsHidden."""

    name = "gdb's register packets"

    def __init__(self, gdb: Gdb, *, openocd: bool = False) -> None:
        self._gdb, self._openocd = gdb, openocd
        self._numbers: Numbers | None = None

    @property
    def xlen(self) -> int:
        return self._opened().xlen

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        numbers = self._opened()
        answers: list[Answer] = []
        for at in range(0, len(accesses), _AT_ONCE):
            progress("reading CSRs (registers)", at, len(accesses))
            part = accesses[at : at + _AT_ONCE]
            answers += self._part(numbers, part)
            if len(answers) < at + len(part) or (answers and isinstance(answers[-1], str)):
                break
        return answers

    def _part(self, numbers: Numbers, accesses: Sequence[Access]) -> list[Answer]:
        packets: list[str] = []
        known: list[Access] = []
        for register, value in accesses:
            number = numbers.of(register)
            if number is None:
                break
            known.append((register, value))
            packets.append(_packet(number, numbers.size(number), value))
        replied = self._exchange(known, packets) if packets else []
        answers = [_answer(access, reply) for access, reply in zip(known, replied, strict=False)]
        if len(known) < len(accesses) and not any(isinstance(answer, str) for answer in answers):
            answers.append("OpenOCD does not expose it (`riscv expose_csrs`)" if self._openocd else _ABSENT)
        return answers

    def _exchange(self, accesses: Sequence[Access], packets: Sequence[str]) -> list[str]:
        """The replies up to and with the first that refuses."""
        if self._gdb.asking is None and not self._gdb.through_proxy:
            return self._gdb.packets(packets, stop=True)
        parts = [BARRIER * _waits(access) + packet for access, packet in zip(accesses, packets, strict=True)]
        hart = "" if self._gdb.hart is None else f"{self._gdb.hart}"
        reply = self._send(f"{batch(parts)}{HART}{hart}")
        if reply == RUNS.decode():
            raise HartRuns
        return replies(reply)

    def _send(self, packet: str) -> str:
        """The reply to one packet, as gdb or the proxy gets it."""
        asking = self._gdb.asking
        if asking is None:
            return self._gdb.packets([packet], stop=False)[0]
        body = packet.encode("latin-1")
        own = asking.extended(body)
        return (asking.transact(body) if own is None else own).decode("latin-1")

    def _opened(self) -> Numbers:
        if self._numbers is None:
            description = Description.of(self._document(TARGET), self._document)
            numbers = _numbers(description)
            if self._openocd:
                numbers = numbers._replace(base=None)
                self._check_honest(numbers)
            self._numbers = numbers
        return self._numbers

    def _check_honest(self, numbers: Numbers) -> None:
        """Reads what cannot be there: it must be refused."""
        absent = [numbers.by_name[name] for name in NOWHERE if name in numbers.by_name]
        if absent and not any(refuses(self._send(f"p{number:x}")) for number in absent):
            raise ErrorsHidden

    def _document(self, annex: bytes) -> bytes:
        """A document of the stub."""
        parts: list[bytes] = []
        at = 0
        while True:
            packet = f"{READ.decode()}{annex.decode()}:{at:x},{_PIECE:x}"
            reply = _plain(self._send(packet).encode("latin-1"))
            if reply[:1] not in (b"l", b"m"):
                return b"".join(parts)
            parts.append(reply[1:])
            at += len(reply) - 1
            if reply[:1] == b"l" or len(reply) == 1:
                return b"".join(parts)


def _numbers(description: Description) -> Numbers:
    """Raises NoNumbers where no CSR is named, or they do not follow one another."""
    by_name = {name: register.number for name, register in description.by_name.items()}
    bases = {by_name[name] - number for name, number in _KNOWN.items() if name in by_name}
    if len(bases) != 1:
        raise NoNumbers
    sizes = {number: register.size for number, register in description.registers.items()}
    return Numbers(bases.pop(), 8 * sizes[by_name["pc"]] if "pc" in by_name else 64, by_name, sizes)


def _waits(access: Access) -> bool:
    """Whether it must not be done unless all that is before it was."""
    register, value = access
    return value is not None and register not in _SELECTS


def _packet(number: int, size: int, value: int | None) -> str:
    return f"p{number:x}" if value is None else f"P{number:x}={in_hex(value, size).decode()}"


def _answer(access: Access, reply: str) -> Answer:
    if access[1] is not None and reply == "OK":
        return 0
    if not reply:
        return _ABSENT
    if refuses(reply):
        return f"refused by the stub ({reply})"
    try:
        return int.from_bytes(bytes.fromhex(reply), "little")
    except ValueError:
        return f"the stub does not know its value ({reply[:20]})"


def _plain(reply: bytes) -> bytes:
    try:
        return unescape(reply)
    except ValueError:
        return b""
