"""CSRs through gdb: its registers by name, or packets of its remote protocol by number.

Packets also access CSRs that the stub does not name to gdb. A stub numbers its CSRs consecutively (QEMU from 66 on, or
98 with vector registers, OpenOCD from 65); its target description shows where they begin, whichever of them it has. `P`
may be answered OK and have no effect. Source: GDB manual, "Packets" (p, P), "RISC-V Features".

The module also has the names of CSRs by number, and the configuration with which OpenOCD exposes them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAccess, CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.decode.program.csrs import CSRS, X
from rvtrace_gdb.session.errors import ErrorsHidden, NoNumbers, NoWay
from rvtrace_gdb.session.proxy.backend import (
    BARRIER,
    HART,
    RUNS,
    ExtensionContext,
    batch,
    is_refusal,
    memory_read,
    replies,
)
from rvtrace_gdb.session.proxy.protocol.target_xml import READ, TARGET, TargetXml, in_hex
from rvtrace_gdb.session.proxy.protocol.wire import unescape
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.rpc.protocol import PROTOCOL, BadRequest, CannotAsk, ClientFailed
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target import saved_registers
from rvtrace_gdb.session.target.access_reader import WithMemory
from rvtrace_gdb.support.errors import Progress, silent

NAMES = {csr.number: csr.name for version in VERSIONS.values() for csr in version.csrs}
_OTHERS = {0x30C: "mstateen0", 0x31C: "mstateen0h", CSRS["dcsr"]: "dcsr", **saved_registers.NAMES}
"""Other registers that are read: debuggers always know these by name."""
_DEFAULT = "1.0"


def names(number: int) -> Sequence[str]:
    """Return the names that a register may have in a debugger; none for an unknown one."""
    name = NAMES.get(number) or _OTHERS.get(number)
    return [name] if name else []


def spellings(number: int) -> list[str]:
    """Return the names, and OpenOCD's spellings of them for gdb."""
    return [*names(number), *(f"csr_{name}" for name in names(number)), f"csr{number}"]


def numbers(version: str | None) -> list[int]:
    """Return the CSRs of a version; None means those of all versions."""
    chosen = VERSIONS.values() if version is None else (VERSIONS[version],)
    return sorted({csr.number for one in chosen for csr in one.csrs})


def expose_csrs(version: str | None) -> str:
    """Return the line of OpenOCD's configuration, with decimal numbers, which it requires."""
    known = numbers(version or _DEFAULT)
    return "riscv expose_csrs " + ",".join(f"{number}={NAMES[number]}" for number in known)


NOWHERE = ("utvt", "uintstatus")
"""Registers of an abandoned extension: OpenOCD has them for every hart, and no hart does."""


class GdbCsrs:
    """gdb, which executes requests for the thread of *hart* (None: the selected one).

    *connection*: the number of gdb's connection that is meant, None: any. If gdb waits for the proxy (an IDE goes back
    without rvtrace's commands), `own_connection` is the connection to the stub.
    """

    def __init__(self, session: Session, hart: int | None, connection: int | None = None) -> None:
        self._session, self.hart, self._connection = session, hart, connection

    def registers(self, accesses: list[list[Any]]) -> tuple[int, list[CsrAnswer]]:
        """Return XLEN, and the values of registers by name. Raises as `_do`."""
        found = self._do("registers", accesses=accesses)
        if isinstance(found, dict):
            xlen, answers = found.get("xlen"), found.get("answers")
            if xlen in (32, 64) and isinstance(answers, list) and all(isinstance(one, int | str) for one in answers):
                return xlen, answers
        raise _no_answer("registers", found)

    def packets(self, packets: Sequence[str], *, stop: bool) -> list[str]:
        """Return the replies to packets; *stop*: up to the first error. Raises as `_do`."""
        found = self._do("packets", packets=packets, stop=stop)
        if isinstance(found, list) and all(isinstance(one, str) for one in found) and (found or stop):
            return found
        raise _no_answer("packets", found)

    def monitor(self, command: str) -> str:
        """Return the output of a command. Raises as `_do`."""
        found = self._do("monitor", command=command)
        if isinstance(found, str):
            return found
        raise _no_answer("monitor", found)

    def _do(self, what: str, **params: Any) -> Any:
        """Let gdb execute a request. Raises HartRuns, NoWay, CannotAsk, Cancelled; BadRequest for an invalid answer."""
        if self._session.ask is None:
            raise CannotAsk
        try:
            return self._session.ask({"do": what, "hart": self.hart, "connection": self._connection, **params})
        except ClientFailed as error:
            if error.kind == "HartRuns":
                raise HartRuns from error
            raise NoWay(str(error)) from error

    @property
    def through_proxy(self) -> bool:
        debugger = self._session.debugger
        return debugger is not None and debugger.connected

    @property
    def own_connection(self) -> ExtensionContext | None:
        """The proxy's connection, if this is its thread. Raises HartRuns if its target runs."""
        debugger = self._session.debugger
        own_connection = debugger.own_connection if isinstance(debugger, ProxyDebugger) else None
        if own_connection is not None and not own_connection.live():
            raise HartRuns
        return own_connection


class NamedAccess:
    """A `CsrAccess`. *instead*: used when gdb cannot be asked. *openocd*: OpenOCD is gdb's stub.

    Also raises ErrorsHidden.
    """

    name = "gdb's registers"

    def __init__(self, gdb: GdbCsrs, instead: CsrAccess, *, openocd: bool = False) -> None:
        self._gdb, self._instead, self._unchecked = gdb, instead, openocd
        self._xlen = 0

    @property
    def xlen(self) -> int:
        if not self._xlen:
            if self._gdb.own_connection is not None:
                return self._instead.xlen
            self.run([])
        return self._xlen

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        progress("reading CSRs", 0)
        if self._gdb.own_connection is not None:
            return self._instead.run(accesses, progress)
        if self._unchecked:
            self._check_honest()
        return self._do([[_names(register), value] for register, value in accesses])

    def read_memory(self, address: int, size: int) -> bytes:
        """Return the bytes from an address on, as many as can be read."""
        return self._instead.read_memory(address, size) if isinstance(self._instead, WithMemory) else b""

    def _do(self, requests: list[list[Any]]) -> list[CsrAnswer]:
        self._xlen, answers = self._gdb.registers(requests)
        return answers

    def _check_honest(self) -> None:
        """Read a register that cannot exist: this must fail."""
        if not any(isinstance(answer, str) for name in NOWHERE for answer in self._do([[[name], None]])):
            raise ErrorsHidden
        self._unchecked = False


def _no_answer(what: str, answer: object) -> BadRequest:
    return BadRequest(f"{what}: the answer is {answer!r:.60}, which is not what protocol {PROTOCOL} says")


def _names(register: int | str) -> list[str]:
    return [register] if isinstance(register, str) else spellings(register)


# CSRs that stubs name, and their numbers; more than one, because none of them is always there.
_KNOWN = {"mstatus": 0x300, "misa": 0x301, "mtvec": 0x305, "mepc": 0x341, "mcause": 0x342, "mhartid": 0xF14}
_SELECTS = (0x150, 0x250, 0x350)
"""siselect, vsiselect, miselect: writing them only selects, so that it need not wait for earlier accesses."""
_ABSENT = "the stub has no such register"
_PIECE = 0xF00  # bytes of a description: less than the smallest PacketSize of OpenOCD and QEMU
_AT_ONCE = 128  # accesses in one packet of ours


class Numbers(NamedTuple):
    """*base*: the number of CSR 0; *sizes*: of registers by number, in bytes; *by_name*: registers that the stub names.

    *base* is None for OpenOCD, which closes the connection when it is asked for a register that it does not name.
    """

    base: int | None
    xlen: int
    by_name: dict[str, int]
    sizes: dict[int, int]

    def number_of(self, register: CsrName) -> int | None:
        """Return a register's number in the protocol."""
        if isinstance(register, str):
            return self.by_name.get(register)
        named = next((self.by_name[name] for name in spellings(register) if name in self.by_name), None)
        return self.base + register if named is None and self.base is not None and register < X else named

    def size(self, number: int) -> int:
        return self.sizes.get(number, self.xlen // 8)


class PacketAccess:
    """A `CsrAccess`. *openocd*: OpenOCD is gdb's stub. Also raises NoNumbers, ErrorsHidden."""

    name = "gdb's register packets"

    def __init__(self, gdb: GdbCsrs, *, openocd: bool = False) -> None:
        self._gdb, self._openocd = gdb, openocd
        self._numbers: Numbers | None = None

    @property
    def xlen(self) -> int:
        return self._opened().xlen

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        numbers = self._opened()
        answers: list[CsrAnswer] = []
        for at in range(0, len(accesses), _AT_ONCE):
            progress("reading CSRs (registers)", at, len(accesses))
            part = accesses[at : at + _AT_ONCE]
            answers += self._run_part(numbers, part)
            if len(answers) < at + len(part) or (answers and isinstance(answers[-1], str)):
                break
        return answers

    def read_memory(self, address: int, size: int) -> bytes:
        """Return the bytes from an address on, as many as the stub reads."""
        return memory_read(self._send(f"m{address:x},{size:x}").encode("latin-1"))

    def _run_part(self, numbers: Numbers, accesses: Sequence[CsrRequest]) -> list[CsrAnswer]:
        packets: list[str] = []
        known: list[CsrRequest] = []
        for register, value in accesses:
            number = numbers.number_of(register)
            if number is None:
                break
            known.append((register, value))
            packets.append(_packet(number, numbers.size(number), value))
        replied = self._exchange_packets(known, packets) if packets else []
        answers = [_csr_answer(access, reply) for access, reply in zip(known, replied, strict=False)]
        if len(known) < len(accesses) and not any(isinstance(answer, str) for answer in answers):
            answers.append("OpenOCD does not expose it (`riscv expose_csrs`)" if self._openocd else _ABSENT)
        return answers

    def _exchange_packets(self, accesses: Sequence[CsrRequest], packets: Sequence[str]) -> list[str]:
        """Return the replies up to the first error."""
        own = self._gdb.own_connection
        if own is None and not self._gdb.through_proxy:
            return self._gdb.packets(packets, stop=True)
        parts = [BARRIER * _waits(access) + packet for access, packet in zip(accesses, packets, strict=True)]
        hart = "" if self._gdb.hart is None else f"{self._gdb.hart}"
        reply = self._send(f"{batch(parts)}{HART}{hart}")
        if reply == RUNS.decode():
            raise HartRuns
        if not reply and own is None:  # gdb has left the proxy, which has not noticed yet, for the stub
            return self._gdb.packets(packets, stop=True)
        return replies(reply)

    def _send(self, packet: str) -> str:
        """Return the reply to one packet, from gdb or from the proxy."""
        own_connection = self._gdb.own_connection
        if own_connection is None:
            return self._gdb.packets([packet], stop=False)[0]
        body = packet.encode("latin-1")
        own = own_connection.extended(body)
        return (own_connection.transact(body) if own is None else own).decode("latin-1")

    def _opened(self) -> Numbers:
        if self._numbers is None:
            description = TargetXml.from_document(self._document(TARGET), self._document)
            numbers = _csr_numbers(description)
            if self._openocd:
                numbers = numbers._replace(base=None)
                self._check_honest(numbers)
            self._numbers = numbers
        return self._numbers

    def _check_honest(self, numbers: Numbers) -> None:
        """Read a register that cannot exist: this must fail."""
        absent = [numbers.by_name[name] for name in NOWHERE if name in numbers.by_name]
        if absent and not any(is_refusal(self._send(f"p{number:x}")) for number in absent):
            raise ErrorsHidden

    def _document(self, annex: bytes) -> bytes:
        """Return a document of the stub."""
        parts: list[bytes] = []
        at = 0
        while True:
            packet = f"{READ.decode()}{annex.decode()}:{at:x},{_PIECE:x}"
            reply = _unescaped(self._send(packet).encode("latin-1"))
            if reply[:1] not in (b"l", b"m"):
                return b"".join(parts)
            parts.append(reply[1:])
            at += len(reply) - 1
            if reply[:1] == b"l" or len(reply) == 1:
                return b"".join(parts)


def _csr_numbers(description: TargetXml) -> Numbers:
    """Return the numbers of CSRs. Raises NoNumbers if no CSR is named, or they are not consecutive."""
    by_name = {name: register.number for name, register in description.by_name.items()}
    bases = {by_name[name] - number for name, number in _KNOWN.items() if name in by_name}
    if len(bases) != 1:
        raise NoNumbers
    sizes = {number: register.size for number, register in description.registers.items()}
    return Numbers(bases.pop(), 8 * sizes[by_name["pc"]] if "pc" in by_name else 64, by_name, sizes)


def _waits(access: CsrRequest) -> bool:
    """Return whether the access must be done only if all earlier ones succeeded."""
    register, value = access
    return value is not None and register not in _SELECTS


def _packet(number: int, size: int, value: int | None) -> str:
    return f"p{number:x}" if value is None else f"P{number:x}={in_hex(value, size).decode()}"


def _csr_answer(access: CsrRequest, reply: str) -> CsrAnswer:
    if access[1] is not None and reply == "OK":
        return 0
    if not reply:
        return _ABSENT
    if is_refusal(reply):
        return f"refused by the stub ({reply})"
    try:
        return int.from_bytes(bytes.fromhex(reply), "little")
    except ValueError:
        return f"the stub does not know its value ({reply[:20]})"


def _unescaped(reply: bytes) -> bytes:
    try:
        return unescape(reply)
    except ValueError:
        return b""
