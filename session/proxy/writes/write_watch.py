"""Notices in gdb's packets what it writes to the target, and where it resumes it, for `WriteLog`.

Nothing is asked of the stub besides, except what was in a place before it is written first, a CSR that was written (it
need not hold what was written), and the pc if gdb has not read it in this halt. Source: GDB manual, "Packets" (G, M, P,
X, c, s, vCont, vFlash, Z), "General Query Packets" (qRcmd); of F: "File-I/O Extension".
"""

import re
from contextlib import suppress

from rvtrace_gdb.decode.program.csrs import FCSR, FFLAGS, FRM, MIE, MIP, MSTATUS, SIE, SIP, SSTATUS, X
from rvtrace_gdb.session.proxy.clients.monitor_commands import Effect, effect_of_packet
from rvtrace_gdb.session.proxy.connection import Connection
from rvtrace_gdb.session.proxy.protocol.packets import canonical
from rvtrace_gdb.session.proxy.protocol.register_numbers import GDB_PC, PC, debug_number, numbered, pc_in, value_of
from rvtrace_gdb.session.proxy.protocol.target_xml import TargetXml, XmlRegister
from rvtrace_gdb.session.proxy.protocol.wire import unescape
from rvtrace_gdb.session.proxy.writes.write_log import StubHart
from rvtrace_gdb.support.extents import Extent

_SAME = {FFLAGS: FCSR, FRM: FCSR, SSTATUS: MSTATUS, SIE: MIE, SIP: MIP}
"""CSRs that are parts of others."""
_WRITE = re.compile(rb"([MX])([0-9a-fA-F]+),([0-9a-fA-F]+):(.*)$", re.S)
_AT = re.compile(rb"(?:[cs]|[CS][0-9a-fA-F]{2};)([0-9a-fA-F]+)$")
_KEPT_AT_ONCE = 1024  # bytes whose old content is read before they are written
_MEMORY = (b"M", b"X")
_RUN_CODE = (b"vFlash", b"qCRC:", b"QNonStop:1")
"""OpenOCD may run code on the hart for these."""
_VECTOR = re.compile(r"v\d+$")


class WriteWatch:
    """The writes of one gdb, which are noted in the log of the proxy's state."""

    def __init__(self, gdb: Connection) -> None:
        self._gdb, self._log = gdb, gdb.state.target.writes
        self._pcs: dict[StubHart, int] = {}  # as gdb has written them in this halt
        self._g: dict[StubHart, bytes] = {}  # what g was answered first in this halt
        self._numbered: tuple[TargetXml, dict[int, XmlRegister]] | None = None

    # Packets from gdb, and their answers

    def passes(self, body: bytes) -> None:
        """Note a packet that is about to be sent to the stub. Raises StubGone."""
        first = body[:1]
        if first in _MEMORY:
            self._note_memory(body)
        elif first == b"P" or first == b"G":
            if self._log.keeps:
                self._keep_registers(body)
        elif body.startswith(b"qRcmd,"):
            effect = effect_of_packet(body)
            if effect is not Effect.NONE:
                self._log.wrote_unknown(may_have_run=effect is Effect.ANY)
                self._forget_registers()
        elif body.startswith(_RUN_CODE):
            self._log.wrote_unknown(may_have_run=True)

    def refused(self, body: bytes) -> None:
        """Note that the stub did not do what a packet asks for: a part of it may be done."""
        if body[:1] in _MEMORY and (match := _WRITE.match(body)) and int(match[3], 16):
            self._log.wrote_unknown()

    def accepted(self, body: bytes) -> None:
        """Note that the stub has answered OK to P or G."""
        if body[:1] == b"P":
            number, _, value = body[1:].partition(b"=")
            with suppress(ValueError):
                self._note_register(int(number, 16), value)
                return
            self._log.wrote_unknown()
        elif body[:1] == b"G":
            self._all_registers(body[1:])

    def read_registers(self, answer: bytes) -> None:
        """Note the answer to g."""
        if answer[:1] != b"E":
            self._g.setdefault(self._gdb.hart, answer)

    def read_register(self, body: bytes, answer: bytes) -> None:
        """Note the answer to p."""
        if body.lower() == b"p%x" % GDB_PC:
            pc = value_of(answer)
            if pc is not None:
                self._pcs.setdefault(self._gdb.hart, pc)

    # Memory

    def _note_memory(self, body: bytes) -> None:
        match = _WRITE.match(body)
        content = None if match is None else _content(match)
        if match is None or content is None or len(content) != int(match[3], 16):
            self._log.wrote_unknown()
            return
        address = int(match[2], 16)
        if content and self._log.keeps:
            self._keep_memory(address, len(content))
        self._log.wrote_memory(address, content)

    def _keep_memory(self, address: int, size: int) -> None:
        old = b""
        if size <= _KEPT_AT_ONCE and self._gdb.live():
            with suppress(ValueError):
                old = bytes.fromhex(self._gdb.transact(b"m%x,%x" % (address, size)).decode())
        self._log.keep_memory(address, size, old)

    # Registers

    def _keep_registers(self, body: bytes) -> None:
        """Keep what registers hold that are about to be written."""
        gdb, hart = self._gdb, self._gdb.hart
        if not gdb.live():
            return
        if hart not in self._g:
            self.read_registers(gdb.transact(b"g"))
        description = gdb.descriptions.current()
        if not self._log.keeps_register(hart):
            values = description.values(self._g.get(hart, b""))
            self._log.keep_register(hart, PC, values.get("pc"))
            for number, register in self._registers_by_number().items():
                if register.name in values:
                    self._log.keep_register(hart, number, values[register.name])
        with suppress(ValueError):
            whole = self._whole_register(int(body[1:].partition(b"=")[0], 16))
            if whole is not None and not self._log.keeps_register(hart, whole[0]):
                self._log.keep_register(hart, whole[0], value_of(gdb.transact(b"p%x" % whole[1].number)))

    def _registers_by_number(self) -> dict[int, XmlRegister]:
        """Return the registers that gdb knows, by their numbers in the Debug Specification."""
        description = self._gdb.descriptions.current()
        if self._numbered is None or self._numbered[0] is not description:
            self._numbered = description, numbered(description)
        return self._numbered[1]

    def _whole_register(self, written: int) -> tuple[int, XmlRegister] | None:
        """Return the register that changes with one of gdb's, and its number in the Debug Specification."""
        register = self._gdb.descriptions.current().registers.get(written)
        number = None if register is None else debug_number(register)
        whole = None if number is None else _SAME.get(number, number)
        found = None if whole is None else self._registers_by_number().get(whole)
        return None if whole is None or found is None else (whole, found)

    def _note_register(self, written: int, value: bytes) -> None:
        """Note that a register was written."""
        gdb = self._gdb
        register = gdb.descriptions.current().registers.get(written)
        new = value_of(value)
        if register is None or new is None:
            self._log.wrote_unknown()
        elif written == GDB_PC:
            self._pcs[gdb.hart] = new
        elif (whole := self._whole_register(written)) is not None:
            if written:  # x0
                self._log.wrote_register(gdb.hart, whole[0], new)
        elif not _VECTOR.match(register.name):  # nobody computes with them
            self._log.wrote_unknown()

    def _all_registers(self, values: bytes) -> None:
        gdb = self._gdb
        try:
            found = gdb.descriptions.current().values(unescape(values))
        except ValueError:
            found = {}
        if "pc" not in found:
            self._log.wrote_unknown()
            return
        for register in gdb.descriptions.current().registers.values():
            if register.name in found:
                self._note_register(
                    register.number, found[register.name].to_bytes(register.size, "little").hex().encode()
                )

    def _forget_registers(self) -> None:
        self._pcs.clear()
        self._g.clear()

    # Halts

    def resumes(self, body: bytes) -> None:
        """Note that a packet is about to resume the target. Raises StubGone."""
        log, gdb = self._log, self._gdb
        if body[:1] == b"F":  # the stub puts the result of the call into the target
            log.wrote_unknown()
        hart, moved = gdb.threads.hart(gdb.threads.resuming or gdb.threads.current), _resumed(body)
        pcs: dict[StubHart, int] = {}
        if log.recording:
            self._read_back()
            harts = {hart, *self._g, *self._pcs}
            pcs = {it: pc for it in harts if (pc := self._pc(it, asks=it == hart)) is not None}
            if match := _AT.match(body):
                pcs[hart] = int(match[1], 16)
            if body[:1] == b"F":
                pcs.pop(hart, None)
        only = None if moved is None else frozenset(map(gdb.threads.hart, moved))
        self.inserted()
        log.resumed(pcs, only)
        self._forget_registers()

    def _pc(self, hart: StubHart, *, asks: bool) -> int | None:
        """Return where a hart is resumed. *asks*: ask the stub, if nothing else says it."""
        gdb = self._gdb
        if hart in self._pcs:
            return self._pcs[hart]
        if hart in self._g:
            return pc_in(gdb.descriptions.current(), self._g[hart])
        return gdb.live_pc() if asks and hart == gdb.hart and gdb.live() else None

    def _read_back(self) -> None:
        """Read the CSRs that gdb has written: they need not hold what was written."""
        gdb, log, hart = self._gdb, self._log, self._gdb.hart
        numbers = sorted(number for number in log.written_registers(hart) if number < X)
        if not numbers or not gdb.live():
            return
        answers = gdb.transact_all([b"p%x" % self._registers_by_number()[number].number for number in numbers])
        for number, answer in zip(numbers, answers, strict=True):
            value = value_of(answer)
            if value is None:
                log.wrote_unknown()
            else:
                log.wrote_register(hart, number, value)

    def inserted(self) -> None:
        """Note which breakpoints the stub has."""
        points = self._gdb.breakpoints.of_stub()
        self._log.inserted = tuple(sorted(Extent(it.address, it.size) for it in points if it.type == b"0"))


def _content(match: "re.Match[bytes]") -> bytes | None:
    try:
        return bytes.fromhex(match[4].decode()) if match[1] == b"M" else unescape(match[4].replace(b"*", b"}\n"))
    except ValueError:
        return None


def _resumed(body: bytes) -> list[str] | None:
    """Return the threads that a packet resumes, None: all, or it does not say which."""
    if not body.startswith(b"vCont;"):
        return None
    threads = [canonical(action.partition(b":")[2]) for action in body[len(b"vCont;") :].split(b";") if action]
    return None if None in threads else [it for it in threads if it is not None]
