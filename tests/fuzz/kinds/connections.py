"""What comes over sockets: gdb and stubs at both ends of the proxy, debuggers at the simulated target's JTAG port."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from typing import Any

from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.transport.simulated.machine import build
from rvtrace_gdb.transport.simulated.server import Server, listen_tcp
from tests.fuzz.damage import containers, lldb_packets, mutations
from tests.fuzz.exercise import Exercise, Input
from tests.session.board import DEMO, SMALL_RAM
from tests.session.proxy.conftest import CODE, PCS
from tests.session.proxy.fakes import FakeStub, packet
from tests.session.proxy.listed_past import ListedPast
from tests.transport.simulated.debug.dmi import JtagProbe

_PATIENCE = 60.0  # seconds; whoever takes that long does not end
_MOST_MEMORY = 1 << 16  # that a stub reads at once
_GDB = (
    ["qSupported:multiprocess+;swbreak+;vContSupported+;multi-wp-addr+", "QStartNoAckMode", "?",
     "qXfer:features:read:target.xml:0,fff", "g", "bs", "bs", "g", "bc", "p20", "p4000", "m1000,8", "c"],
    ["qSupported:swbreak+", "Hg1", "qfThreadInfo", "qsThreadInfo", "bs", "Z0,1004,2", "bc", "z0,1004,2", "vCont;c"],
    ["bs", "vCont?", "vCont;s:p1.1", "Z2,2000,4", "bc", "z2,2000,4", "vCont;r1000,1008:1", "D"],
    ["QStartNoAckMode", "Hc0", "bs", "P20=0010000000000000", "G00", "M1000,2:0102", "X1000,0:", "x1000,4", "qC"],
    ["qXfer:btrace:read:all:0,fff", "Qbtrace:bts", "qXfer:btrace-conf:read::0,fff", "Qbtrace:off", "qRcmd,68656c70"],
    ["QThreadSuffixSupported", "qHostInfo", "qProcessInfo", "?", "jThreadsInfo", "p2", "g", "Z2,2000,4", "bc",
     "x1000,4", "m1000,200", "vCont;s:1", "bs", "jThreadExtendedInfo:", "QListThreadsInStopReply", "bc"],
    ["qXfer:threads:read::0,fff", "T1", "qAttached", "qOffsets", "vMustReplyEmpty", "bc", "s", "c1004", "k"],
)  # fmt: skip
_LLDB = (  # what LLDB 23 sent, without what it repeats
    ["QStartNoAckMode", "qSupported:xmlRegisters=i386,arm,mips,arc;multiprocess+;fork-events+;vfork-events+",
     "QThreadSuffixSupported", "QListThreadsInStopReply", "QEnableErrorStrings", "qHostInfo", "vCont?",
     "qVAttachOrWaitSupported", "qProcessInfo", "qC", "?", "qXfer:features:read:target.xml:0,3fff", "qfThreadInfo",
     "qsThreadInfo", "Hg1", "p2", "qOffsets", "qSymbol::", "qStructuredDataPlugins", "p20", "qThreadStopInfo2",
     "jThreadsInfo", "x0,0", "m1000,200", "Z0,1004,2", "vCont;s:1", "bc", "z0,1004,2", "vCont;c", "D"],
    ["QThreadSuffixSupported", "?", "Hc1", "bs", "bs", "vCont;s:1", "qThreadStopInfo1", "Z2,2000,4", "Hc1", "bc", "bs",
     "vCont;s:1", "Hc01", "bc", "qMemoryRegionInfo:2000", "k"],
)  # fmt: skip
_ANSWERS: dict[str, Any] = {"g": None, "qRcmd,68656c70": "4f4b", "qC": "QC1", "qXfer:threads:read::0,fff": "l<x/>"}


class ProxyConnection(Exercise):
    """Packets of gdb, and what the stub answers; a list of packets may be noise in hexadecimal, after a ~."""

    def __init__(self) -> None:
        super().__init__()
        for packets in (*_GDB, *_LLDB):
            for variant in ("stub", "offline"):
                self.seeds.append(Input(variant, json.dumps({"gdb": packets, "stub": _ANSWERS}).encode()))

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        made = json.loads(data)
        if rng.random() < 0.4:
            begin = rng.randrange(len(made["gdb"]) + 1)
            made["gdb"][begin : begin + rng.randrange(4)] = lldb_packets.packets(rng, rng.randrange(1, 12))
            return json.dumps(made).encode()
        if rng.random() < 0.3:
            noise = mutations.mutated(rng, packet(rng.choice(made["gdb"]).encode()))
            made["gdb"].insert(rng.randrange(len(made["gdb"]) + 1), f"~{noise.hex()}")
            return json.dumps(made).encode()
        return containers.mutated_json(rng, data)

    def run(self, variant: str, data: bytes) -> None:
        try:
            asked = json.loads(data)
            sent = b"+" + b"".join(_sent(str(one)) for one in list(asked["gdb"])[:64])
            answers = {_bytes(str(key)): _answer(value) for key, value in dict(asked["stub"]).items()}
        except (ValueError, RecursionError, TypeError, KeyError):
            return
        if variant == "offline":
            _converse(Proxy(ProxySetup(_past(), threading.RLock(), None, line_before=_line_before)), sent)
            return
        stub = _Stub()
        stub.answers = {key: value for key, value in answers.items() if value is not None}
        try:
            address = StubAddress("127.0.0.1", stub.port)
            _converse(Proxy(ProxySetup(_past(), threading.RLock(), address, line_before=_line_before)), sent)
        finally:
            stub.close()


class _Stub(FakeStub):
    """Refuses what it does not understand."""

    def _answer(self, body: bytes) -> bytes | list[bytes] | None:
        try:
            if body[:1] == b"m" and int(body.partition(b",")[2], 16) > _MOST_MEMORY:
                return b"E01"
            return super()._answer(body)
        except ValueError:
            return b"E01"


def _line_before(hart: int | None, position: int | None, breakpoints: frozenset[int], progress: Progress) -> int:
    """Two instructions are a line."""
    if position is not None and position < 2:
        raise RvtraceError("nothing is before this")
    return len(PCS) - 3 if position is None else position - 2


def _past() -> ListedPast:
    return ListedPast(lambda hart: PCS, CODE)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1", errors="replace")


def _sent(one: str) -> bytes:
    if one.startswith("~"):
        return bytes.fromhex(one[1:])
    return b"\x03" if one == "\x03" else packet(_bytes(one))


def _answer(value: Any) -> bytes | list[bytes] | None:
    if isinstance(value, list):
        return [_bytes(str(one)) for one in value]
    return None if value is None else _bytes(str(value))


def _converse(proxy: Proxy, sent: bytes) -> None:
    """All of it at once, as the worst gdb would. Whatever it is, the proxy ends with gdb, and takes the next one."""
    proxy.start()
    try:
        for one in (sent, b"+" + packet(b"qSupported")):
            with socket.create_connection(("127.0.0.1", proxy.port), _PATIENCE) as gdb:
                gdb.settimeout(_PATIENCE)
                _all(gdb, one)
        internal = [line for line in proxy.take_lines() if "internal error" in line]
        assert not internal, internal
    finally:
        proxy.close()
    thread = proxy._thread
    assert thread is None or not thread.is_alive(), "the proxy does not end"


def _all(gdb: socket.socket, data: bytes) -> None:
    try:
        gdb.sendall(data)
        gdb.shutdown(socket.SHUT_WR)
        while gdb.recv(1 << 16):
            pass
    except (ConnectionResetError, BrokenPipeError):  # it has had enough
        pass


class JtagConnection(Exercise):
    """Characters of remote_bitbang: as they are, or made of accesses to the debug module.

    Of these an input is eight bytes each: what to do, the address, two bytes of the time in between, the value.
    """

    def __init__(self) -> None:
        super().__init__()
        pins = build(DEMO, memory_map=SMALL_RAM).pins(fast=False)
        probe = JtagProbe(pins)
        probe.reset()
        probe.ir(0x01)
        probe.dr(0, 32)
        probe.ir(0x10)
        probe.dr(0, 32)
        for access in _ACCESSES[:6]:
            probe.ir(0x11)
            probe.dr(access[1] << 34 | access[3] << 2 | access[0], 41)
        self.seeds = [Input("pins", probe.sent + b"rstuBbRQ")]
        for begin in range(0, len(_ACCESSES), 6):
            some = (*_ACCESSES[:2], *_ACCESSES[begin : begin + 12])
            self.seeds += [Input("accesses", b"".join(struct.pack("<BBHI", *one) for one in some))] * 2

    def run(self, variant: str, data: bytes) -> None:
        characters = data if variant == "pins" else _scans(data)
        mine, its = socket.socketpair()
        with mine, its, listen_tcp(0) as listener:
            mine.settimeout(_PATIENCE)
            server = Server(build(DEMO, memory_map=SMALL_RAM), listener)
            server._client, server._pins = its, server._machine.pins()
            thread = threading.Thread(target=server.serve, daemon=True)
            thread.start()
            _talk(mine, characters)
            server.stop()
            thread.join(_PATIENCE)
            assert not thread.is_alive(), "the server does not end"


def _talk(mine: socket.socket, characters: bytes) -> None:
    asked = characters.partition(b"Q")[0].count(b"R")
    try:
        mine.sendall(characters)
        while asked > 0 and (data := mine.recv(1 << 16)):
            asked -= len(data)
    except (ConnectionResetError, BrokenPipeError):
        return


class _Sink:
    def feed(self, data: bytes) -> bytes:
        return b"0" * data.count(b"R")


def _scans(data: bytes) -> bytes:
    """The characters that make these accesses."""
    probe = JtagProbe(_Sink())
    probe.reset()
    probe.ir(0x11)
    for what, address, idle, value in struct.iter_unpack("<BBHI", data[: len(data) // 8 * 8][: 8 * 64]):
        probe.dr((address & 0x7F) << 34 | value << 2 | what & 3, 41)
        probe.tms("0" * (idle & 15))
    return probe.sent


_READ, _WRITE = 1, 2
_DMCONTROL, _DMSTATUS, _COMMAND, _DATA0, _SBCS, _SBADDRESS, _SBDATA = 0x10, 0x11, 0x17, 0x04, 0x38, 0x39, 0x3C
_ACCESSES: tuple[tuple[int, int, int, int], ...] = (
    (_WRITE, _DMCONTROL, 0, 1), (_WRITE, _DMCONTROL, 0, 1 << 31 | 1), (_READ, _DMSTATUS, 0, 0),
    (_WRITE, _COMMAND, 1, 0x0032_1008), (_READ, _DATA0, 0, 0), (_WRITE, _COMMAND, 1, 0x0033_07B1),
    (_WRITE, _SBCS, 0, 1 << 20 | 2 << 17), (_WRITE, _SBADDRESS, 0, 0x2000_0000), (_READ, _SBDATA, 0, 0),
    (_WRITE, _SBADDRESS, 0, 0x2000_0000), (_WRITE, _SBDATA, 0, 1), (_WRITE, _SBDATA, 0, 0x0134_006F),
    (_WRITE, _SBADDRESS, 0, 0x2000_1000), (_WRITE, _SBDATA, 0, 3), (_WRITE, _SBADDRESS, 0, 0x2000_1010),
    (_WRITE, _SBDATA, 0, 0x3000_0000), (_WRITE, _SBADDRESS, 0, 0x2000_1018), (_WRITE, _SBDATA, 0, 0x3000_0FFC),
    (_WRITE, 0x20, 0, 0x0000_0013), (_WRITE, 0x21, 0, 0x0010_0073), (_WRITE, _COMMAND, 3, 1 << 18),
    (_WRITE, 0x18, 0, 1), (_WRITE, _DMCONTROL, 9, 1 << 30 | 1), (_READ, 0x16, 0, 0), (_WRITE, 0x16, 0, 0x700),
    (_WRITE, _DATA0, 0, 0x8000_0000), (_WRITE, _COMMAND, 0, 0x0220_0000), (_WRITE, 0x05, 0, 0), (_READ, 0x12, 0, 0),
    (_WRITE, _DMCONTROL, 0, 1 << 30 | 1), (_READ, 0x40, 15, 0), (_WRITE, _DMCONTROL, 0, 3), (_WRITE, _DMCONTROL, 0, 0),
)  # fmt: skip
