"""The state of a halted hart, read beside gdb: a fake stub, which has its own registers and 0x11 in all memory."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import StopState
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.live_stop import LiveStop, ThroughGdb, ThroughLink
from rvtrace_gdb.session.proxy import calls
from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.writes.write_log import KeptWrites
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.target_state import SavedTarget, SaveRequest
from rvtrace_gdb.support.extents import Extent
from tests.session.board import DEMO
from tests.session.proxy.conftest import Between
from tests.session.proxy.fakes import CPU, packet
from tests.session.target.test_target_state import Target

RAMS = [Extent(0x8000_0000, 0x3800), Extent(0x9000_0000, 0x10_0000)]
CSRS = (
    b'<reg name="mstatus" bitsize="64" regnum="0x341"/><reg name="mcycle" bitsize="64" regnum="0xb41"/>'
    b'<reg name="ft1" bitsize="64" regnum="34"/><reg name="satp" bitsize="64" regnum="0x1c1"/>'
)


class Stopped:
    """gdb at a stop of a trace, and what reads beside it."""

    def __init__(self, between: Between) -> None:
        self.stub, self.between = between.stub, between
        cpu = CPU.replace(b"</feature>", CSRS + b"</feature>")
        self.stub.answers |= {
            b"qXfer:features:read:cpu.xml:0,ffb": b"l" + cpu, b"p341": b"8018000000000000", b"p22": b"05" + b"00" * 7,
            b"p1c1": b"00" * 8,
        }  # fmt: skip
        self.client = between.client()
        self.client.ask(b"qfThreadInfo")
        self.debugger = ProxyDebugger(Session(environ={}), Context())
        self.debugger._proxy, self.debugger.writes = between.proxy, between.proxy._state.target.writes
        self.debugger.writes.begin(is_running=False)
        self.client.ask(b"vCont;c")

    def stop(self, hart: int = 0, *, alone: bool = False) -> LiveStop:
        return LiveStop(ThroughGdb(self.debugger, hart, alone=alone), RAMS)

    def state(self, hart: int = 0) -> StopState:
        found = self.stop(hart).state()
        assert found is not None
        return found


@pytest.fixture
def stopped() -> Iterator[Stopped]:
    with ExitStack() as ends:
        yield Stopped(Between(ends))


def test_registers_and_memory(stopped: Stopped) -> None:
    state = stopped.state()
    assert (state.pc, state.x, state.csrs) == (0x1010, list(range(32)), {0x300: 0x1880, 0x180: 0})
    assert state.f == [None, 5, *[None] * 30], "the stub has one"
    before = len(stopped.stub.got)
    assert state.memory(0x8000_0FFE, 4) == b"\x11" * 4
    reads = [b"m%x,400" % (0x8000_0000 + 0x400 * n) for n in range(8)]
    assert [it for it in stopped.stub.got[before:] if it[:1] == b"m"] == reads
    assert state.memory(0x8000_0000, 0x2000) == b"\x11" * 0x2000
    assert stopped.stub.got[before:] == reads, "each page once"


def test_what_gdb_has_written_is_not_what_the_program_left(stopped: Stopped) -> None:
    stopped.client.ask(b"M80000002,2:aabb")
    stopped.client.ask(b"Pa=7700000000000000")
    stopped.client.ask(b"P20=0000000000000000")
    stopped.client.ask(b"Z0,80000008,2")
    stopped.stub.answers |= {b"m80000000,400": b"1111aabb" + b"11" * 0x3FC}
    state = stopped.state()
    assert (state.pc, state.x[10]) == (0x1010, 10)
    assert state.memory(0x8000_0000, 16) == b"\x11" * 8, "and up to the breakpoint"
    assert state.memory(0x8000_000A, 4) == b"\x11" * 4


def test_gdbs_own_hart_stays_selected(stopped: Stopped) -> None:
    stopped.client.ask(b"Hgp1.1")
    stopped.stub.answers[b"g"] = b"00" * 8 * 32 + b"0030000000000000" + b"0000"
    assert stopped.state(1).pc == 0x3000
    before = len(stopped.stub.got)
    assert b"Hgp1.2" in stopped.stub.got
    stopped.client.ask(b"g")
    assert stopped.stub.got[before:] == [b"Hgp1.1", b"g"]
    assert stopped.stop(7).state() is None, "gdb has no such hart"


def test_while_gdb_reads(stopped: Stopped) -> None:
    """Both get what they asked for."""
    stop, found = stopped.stop(), list[bytes]()
    state = stop.state()
    assert state is not None
    reader = threading.Thread(target=lambda: found.append(state.memory(0x9000_0000, 0x4_0000)))
    reader.start()
    answers = [stopped.client.ask(b"m0,%x" % size) for size in range(1, 200)]
    reader.join()
    assert answers == [b"11" * size for size in range(1, 200)] and found == [b"\x11" * 0x4_0000]


class Lock:
    """A lock that makes its contexts."""

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make, self._entered = make, list[AbstractContextManager[None]]()

    def __enter__(self) -> None:
        self._entered.append(self._make())
        self._entered[-1].__enter__()

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(None, None, None)


def test_a_proxy_that_waits_for_the_caller(stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the session's lock, which the caller has: nothing is known then, and is asked for again later."""
    monkeypatch.setattr(calls, "_SOON", 0.05)
    state, lock = stopped.state(), stopped.between.lock
    waits = threading.Event()

    @contextmanager
    def told() -> Iterator[None]:
        waits.set()
        with lock:
            yield

    with lock:
        proxied = stopped.between.proxy._state
        monkeypatch.setattr(proxied, "setup", proxied.setup._replace(lock=Lock(told)))
        stopped.client.socket.sendall(packet(b"bs"))
        assert waits.wait(60)
        assert state.memory(0x8000_0000, 4) == b""
    stopped.client.answer()
    assert state.memory(0x8000_0000, 4) == b"\x11" * 4


class Asks:
    """An extension that needs the state in the proxy's own thread, as the past does."""

    prefixes = (b"qAsks",)
    stopped: Stopped

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        return self.stopped.state().memory(0x8000_0000, 4).hex().encode()


def test_in_the_proxys_own_thread() -> None:
    with ExitStack() as ends:
        between, asks = Between(ends), Asks()
        between.proxy = Proxy(between.setup(extensions=[asks]))
        asks.stopped = Stopped(between)
        assert asks.stopped.client.ask(b"qAsks") == b"11111111"


def test_through_the_link() -> None:
    target = Target(0, 1, pc=0x1010, readable=(0x8000_0000, bytes(range(256)) * 16))
    state = SavedTarget(target, [0], Image.from_elf(DEMO), (), SaveRequest())
    stands = True
    stop = LiveStop(ThroughLink(state, 0, lambda: stands), RAMS)
    found = stop.state()
    assert found is not None and found.pc == 0x1010 and found.memory(0x8000_0001, 3) == b"\1\2\3"
    state.kept = lambda hart: KeptWrites({0x100A: 9, 0x1009: None, -1: 0x99}, {0x8000_0002: 7, 0x8000_0005: None})
    again = LiveStop(ThroughLink(state, 0, lambda: stands), RAMS)
    found = again.state()
    assert found is not None and (found.pc, found.x[10], found.x[9]) == (0x99, 9, None)
    assert found.memory(0x8000_0001, 8) == b"\1\7\3\4"
    stands = False
    assert found.memory(0x8000_0001, 8) == b"\1\7\3\4" and found.memory(0x8000_1000, 8) == b"" and stop.state() is None
