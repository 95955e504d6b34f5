"""The target description that gdb reads: the stub's registers, with one more register, trace_pos.

trace_pos is -1 in the present, else the number of the instruction that runs next as `trace history` prints it. It is
put among the CSRs, because these are all that gdb leaves out of `info registers`, whatever group a description gives
its registers (riscv_register_reggroup_p); a second feature of that name does not hide the stub's.

`TargetDescriptions` reads the descriptions of one gdb's stub and keeps them by process (in QEMU, harts of different
kinds).

Source: GDB manual, "Target Descriptions" (Target Description Format, Predefined Target Types), "General Query Packets"
(qXfer); QEMU includes its features by xi:include without declaring the prefix, so that an XML parser would refuse this.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Self

from rvtrace_gdb.session.past.past import TracedRegisters
from rvtrace_gdb.session.proxy.protocol.packets import Threads
from rvtrace_gdb.session.proxy.protocol.wire import escaped_within, unescape
from rvtrace_gdb.session.proxy.proxy_state import ProxyState

NAME = "trace_pos"
_LOWEST = 0x4000  # of trace_pos: above all CSRs and vendors' registers
_BYTES = 8
_INCLUDE = re.compile(rb"<xi:include\s+[^>]*href\s*=\s*[\"']([^\"']+)[\"'][^>]*/?>")
_REGISTER = re.compile(rb"<reg\s+([^>]*?)/?>")
_ATTRIBUTE = re.compile(rb"([\w-]+)\s*=\s*[\"']([^\"']*)[\"']")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)
_FEATURE = (
    '<feature name="org.gnu.gdb.riscv.csr"><reg name="trace_pos" bitsize="64" type="int64" regnum="{}"'
    ' group="rvtrace" save-restore="no"/></feature>\n'
)
_END = b"</target>"
_DEEPEST = 8  # inclusions
_IN_FLOAT = ' group="float"'

_ABI = """zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7
s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 pc"""
_FLOATS = """ft0 ft1 ft2 ft3 ft4 ft5 ft6 ft7 fs0 fs1 fa0 fa1 fa2 fa3 fa4 fa5 fa6 fa7
fs2 fs3 fs4 fs5 fs6 fs7 fs8 fs9 fs10 fs11 ft8 ft9 ft10 ft11"""
_FIRST_FLOAT = 33
_FLOAT_CONTROL = {"fflags": 66, "frm": 67, "fcsr": 68}
_FIRST_CSR, _PRIVILEGE = 65, 4161  # gdb's own numbers (riscv-tdep.h)
_POINTERS = {"ra": "code_ptr", "pc": "code_ptr", "sp": "data_ptr", "gp": "data_ptr", "tp": "data_ptr", "fp": "data_ptr"}


class XmlRegister(NamedTuple):
    """A register: name, *size* in bytes."""

    name: str
    number: int
    size: int


class TargetXml:
    """All registers by number, and the document, which includes trace_pos. *ours*: its number, None if there was no
    room.
    """

    def __init__(self, document: bytes, registers: dict[int, XmlRegister], ours: int | None) -> None:
        self.document, self.registers, self.ours = document, registers, ours
        self.by_name = {register.name: register for register in registers.values()}

    @classmethod
    def from_document(cls, document: bytes, annex: Callable[[bytes], bytes]) -> Self:
        """Return the description for the stub's target.xml. *annex* reads another document; its exceptions are passed
        on.
        """
        registers = _xml_registers(_with_includes(document, annex, _DEEPEST))
        head, end, tail = document.rpartition(_END)
        if not end or not registers:
            return cls(document, registers, None)
        ours = max(_LOWEST, max(registers) + 1)
        return cls(head + _FEATURE.format(ours).encode() + end + tail, registers, ours)

    @classmethod
    def of_hart(cls, xlen: int, traced: TracedRegisters | None = None) -> Self:
        """Return the description without a stub. *traced*: which registers the trace has.

        It names no operating system: a gdb for programs of GNU/Linux steps those with breakpoints, which
        needs registers. If the trace has no registers, those for floating point are the widest that a program's ABI may
        need: gdb refuses a program whose ABI needs wider ones than the target has.
        """
        cpu = _register_rows(
            (name, xlen, _POINTERS.get(name, "int"), number) for number, name in enumerate(_ABI.split())
        )
        flen = 64 if traced is None else traced.flen
        kind = "ieee_double" if flen == 64 else "ieee_single"
        floats = _register_rows((name, flen, kind, number) for number, name in enumerate(_FLOATS.split(), _FIRST_FLOAT))
        control = _register_rows((name, 32, "int", number) for name, number in _FLOAT_CONTROL.items())
        features = [("cpu", cpu), *([("fpu", floats + control)] if flen else [])]
        if traced is not None:
            others = sorted((number, name) for name, number in traced.csrs.items() if name not in _FLOAT_CONTROL)
            features.append(
                ("csr", _register_rows((name, xlen, "int", _FIRST_CSR + number) for number, name in others))
            )
            features.append(("virtual", _register_rows([("priv", xlen, "int", _PRIVILEGE)])))
        text = (
            '<?xml version="1.0"?>\n<!DOCTYPE target SYSTEM "gdb-target.dtd">\n<target version="1.0">\n'
            f"<architecture>riscv:rv{xlen}</architecture>\n<osabi>none</osabi>\n"
            + "".join(f'<feature name="org.gnu.gdb.riscv.{name}">\n{rows}</feature>\n' for name, rows in features)
            + "</target>\n"
        )
        return cls.from_document(text.encode(), lambda _: b"")

    def value(self, number: int, values: Mapping[str, int]) -> bytes | None:
        """Return a register in hexadecimal, x for unknown digits; None if there is no such register."""
        register = self.registers.get(number)
        if register is None:
            return None
        known = values.get(register.name)
        return b"xx" * register.size if known is None else in_hex(known, register.size)

    def all_values(self, size: int, values: Mapping[str, int]) -> bytes:
        """Return the answer to g, of *size* bytes: registers in the order of their numbers, as far as they fit."""
        parts: list[bytes] = []
        for number in sorted(self.registers):
            size -= self.registers[number].size
            if size < 0:
                break
            parts.append(self.value(number, values) or b"")
        return b"".join(parts)

    def values(self, g: bytes) -> dict[str, int]:
        """Return the registers that an answer to g has values for."""
        found: dict[str, int] = {}
        at = 0
        for number in sorted(self.registers):
            name, size = self.registers[number].name, self.registers[number].size
            with contextlib.suppress(ValueError):
                data = bytes.fromhex(g[at : at + 2 * size].decode(errors="replace"))
                if len(data) == size:
                    found[name] = int.from_bytes(data, "little")
            at += 2 * size
        return found


def _register_rows(registers: Iterable[tuple[str, int, str, int]]) -> str:
    """Write registers given as name, size in bits, type and number."""
    return "".join(
        f'<reg name="{name}" bitsize="{size}" type="{kind}" regnum="{number}"'
        f"{_IN_FLOAT if kind.startswith('ieee') else ''}/>\n"
        for name, size, kind, number in registers
    )


def in_hex(value: int, size: int = _BYTES) -> bytes:
    """Write a register's value in hexadecimal, in the target's byte order, which is little endian."""
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little").hex().encode()


def _with_includes(document: bytes, annex: Callable[[bytes], bytes], deepest: int) -> bytes:
    if deepest == 0:
        return b""
    plain = _COMMENT.sub(b"", document)
    return _INCLUDE.sub(lambda match: _with_includes(annex(match[1]), annex, deepest - 1), plain)


def _xml_registers(document: bytes) -> dict[int, XmlRegister]:
    """Return the registers of a document. One without a number follows the one before."""
    registers: dict[int, XmlRegister] = {}
    number = -1
    for match in _REGISTER.finditer(document):
        attributes = {name: value.decode(errors="replace") for name, value in _ATTRIBUTE.findall(match[1])}
        try:
            number = int(attributes.get(b"regnum", str(number + 1)), 0)
            size = int(attributes[b"bitsize"], 0) // 8
        except (KeyError, ValueError):
            continue
        registers[number] = XmlRegister(attributes.get(b"name", ""), number, max(size, 1))
    return registers


READ = b"qXfer:features:read:"
TARGET = b"target.xml"
_PIECE = 0xFFB  # bytes: a little less than the smallest PacketSize of OpenOCD and QEMU


class TargetDescriptions:
    """The descriptions of one gdb, and the registers that its target returned last.

    *transact* returns the stub's answer to a packet, and raises StubGone. *announced*: gdb has read a description with
    trace_pos, so that stop replies may contain it.
    """

    def __init__(self, state: ProxyState, threads: Threads, transact: Callable[[bytes], bytes]) -> None:
        self._state, self._threads, self._transact = state, threads, transact
        self._by_process: dict[str, TargetXml] = {}
        self._g_sizes: dict[str, int] = {}
        self._live: dict[str | None, bytes] = {}  # what g was answered last in the present, by thread
        self._last: TargetXml | None = None
        self.announced = False

    def current(self) -> TargetXml:
        """Return the description of gdb's current thread. Raises StubGone."""
        found = self._by_process.get(self._process())
        if found is None:
            found = self._by_process[self._process()] = self._read_description() or self._assumed()
        return found

    def ours(self) -> int | None:
        """Return the number of trace_pos, None if it is not known."""
        found = self._by_process.get(self._process()) or self._last
        return found.ours if found else None

    def part(self, body: bytes) -> bytes | None:
        """Return the answer to a read of a part of target.xml; None: the stub is to answer. Raises StubGone."""
        if not body.startswith(READ + TARGET + b":"):
            return None
        try:
            offset, size = (int(number, 16) for number in body[len(READ + TARGET) + 1 :].split(b","))
        except ValueError:
            return None
        if offset == 0 or self._last is None:
            found = self._read_description()
            if found is None:
                return None
            self._last = self._by_process[self._process()] = found
        document = self._last.document
        escaped, length = escaped_within(document[offset:], size)
        is_last = offset + length >= len(document)
        self.announced = self.announced or (is_last and self._last.ours is not None)
        return (b"l" if is_last else b"m") + escaped

    def note_g(self, body: bytes) -> bool:
        """Note the registers in the stub's answer to g. False: it is an error, or malformed."""
        try:
            registers = b"" if body[:1] == b"E" else unescape(body)
        except ValueError:
            return False
        if registers:
            self._state.target.registers_read(readable=True)
            self._live[self._threads.current] = registers
            self._g_sizes[self._process()] = len(registers) // 2
        return bool(registers)

    def remember_live(self) -> bool:
        """Read the current thread's registers from the target, and remember them. Raises StubGone.

        False: the target does not return them.
        """
        known = self.note_g(self._transact(b"g"))
        if not known:
            self._state.target.registers_read(readable=False)
        return known

    def forget_live(self) -> None:
        """Forget the remembered registers: the target's have changed."""
        self._live.clear()

    def live_g(self) -> bytes:
        """Return the last answer to g of the current thread in the present, b"" if it is unknown."""
        return self._live.get(self._threads.current, b"")

    def live_values(self) -> dict[str, int]:
        """Return the current thread's last known registers in the present, by name."""
        return self.current().values(self.live_g())

    def g_size(self) -> int:
        """Return the number of bytes in the stub's answer to g; if that is unknown, up to pc. Raises StubGone."""
        if self._process() not in self._g_sizes and self._state.target.is_halted():
            self.note_g(self._transact(b"g"))
        if self._process() in self._g_sizes:
            return self._g_sizes[self._process()]
        registers, pc = self.current().registers.values(), self.current().by_name.get("pc")
        return sum(register.size for register in registers if pc is None or register.number <= pc.number)

    def _process(self) -> str:
        return (self._threads.current or "").rpartition(".")[0]

    def _assumed(self) -> TargetXml:
        """Return the description that gdb assumes if the stub has none, or that of a capture alone."""
        if not self._state.target.has_stub():
            return self._of_trace()
        xlen = self._state.xlen
        if self._state.target.is_halted():
            answer = self._transact(b"g")
            xlen = 32 if len(answer) // 2 in (33 * 4, 33 * 4 + 32 * 8) else 64
        usual = TargetXml.of_hart(xlen)
        return TargetXml(b"", {n: register for n, register in usual.registers.items() if n != usual.ours}, None)

    def _read_description(self) -> TargetXml | None:
        if not self._state.target.has_stub():
            return self._by_process.get(self._process()) or self._last or self._of_trace()
        document = self._document(TARGET)
        if self._state.setup.tell is not None and b"<osabi>" not in document:  # else gdb's Python sees to it
            document = document.replace(b"</architecture>", b"</architecture><osabi>none</osabi>", 1)
        return TargetXml.from_document(document, self._document) if document else None

    def _of_trace(self) -> TargetXml:
        """Return the description of a capture alone."""
        with self._state.setup.lock:
            traced = self._state.setup.past.traced_registers(self._threads.hart(self._threads.current))
        return TargetXml.of_hart(self._state.xlen, traced)

    def _document(self, annex: bytes) -> bytes:
        """Return a whole document of the stub, b"" if it has none."""
        parts: list[bytes] = []
        length = 0
        while True:
            answer = self._transact(READ + annex + b":%x,%x" % (length, _PIECE))
            if answer[:1] not in (b"l", b"m"):
                return b""
            parts.append(answer[1:])
            length += len(answer) - 1
            if answer[:1] == b"l" or len(answer) == 1:
                return b"".join(parts)
