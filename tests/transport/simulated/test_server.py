"""The remote_bitbang server over real sockets: clients that come, go, stutter and die."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from rvtrace_gdb.transport.simulated.server import LARGEST, Backdoor, ListenError, Server, listen_tcp, listen_unix
from tests.helpers.amounts import some_of
from tests.helpers.cross_compiler import compile_program
from tests.helpers.wait import until
from tests.transport.simulated.debug.dmi import Dmi, JtagProbe

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "sim_debug.c"
SMALL = MemoryMap(ram_size=1 << 20)
DMCONTROL, DMSTATUS, SBCS, SBADDRESS0, SBDATA0 = 0x10, 0x11, 0x38, 0x39, 0x3C
HALTED = 3 << 8


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("server"), PROGRAM)


@contextmanager
def served(machine: Machine, listener: socket.socket, side_door: Backdoor | None = None) -> Iterator[Server]:
    server = Server(machine, listener, side_door)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)
        listener.close()
        assert not thread.is_alive()


def test_stopping_a_server_that_has_just_ended_by_itself(elf: Path) -> None:
    """A server that runs the hart may see that it is to stop, and end, before it is woken."""
    with listen_tcp(0) as listener:
        server = Server(build(elf, memory_map=SMALL), listener)
        server.stop()
        server.serve()
        server.stop()


def test_a_signal_that_comes_just_before_a_wait_ends_the_server_after_it(elf: Path) -> None:
    """Python runs the handler of such a signal when the wait has ended, and nothing wakes the server before."""
    machine = build(elf, memory_map=SMALL)
    machine.halt_at_start()
    with listen_tcp(0) as listener:
        server = Server(machine, listener)
        ready, waits = server._ready, threading.Event()

        def interrupted(timeout: int) -> list[int]:
            waits.set()
            found = ready(timeout)
            server._stopping = True
            return found

        server._ready = interrupted  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        assert waits.wait(60)
        thread.join(20)
        ended = not thread.is_alive()
        server.stop()
    assert ended


class Wire:
    """The `feed` of Pins, over a socket, in pieces as *cut* makes them."""

    def __init__(self, connection: socket.socket, cut: Callable[[bytes], list[bytes]] = lambda data: [data]) -> None:
        self.connection = connection
        self.cut = cut

    def feed(self, characters: bytes) -> bytes:
        for piece in self.cut(characters):
            self.connection.sendall(piece)
        wanted = characters.count(b"R")
        reply = b""
        while len(reply) < wanted:
            reply += received(self.connection, wanted - len(reply))
        return reply


def received(connection: socket.socket, most: int) -> bytes:
    """What comes next, a byte at least."""
    data = connection.recv(most)
    assert data, "the server closed the connection"
    return data


def connect(listener: socket.socket) -> socket.socket:
    client = socket.socket(listener.family)
    client.settimeout(60)
    client.connect(listener.getsockname())
    return client


def debugger(connection: socket.socket) -> Dmi:
    dmi = Dmi(JtagProbe(Wire(connection)))
    dmi.write(DMCONTROL, 1)
    return dmi


def test_one_client_after_another_finds_the_hart_as_it_was_left(elf: Path) -> None:
    listener = listen_tcp(0)
    with served(build(elf, memory_map=SMALL), listener):
        with connect(listener) as first:
            dmi = debugger(first)
            dmi.write(DMCONTROL, 1 << 31 | 1)
            assert dmi.read(DMSTATUS) & HALTED
        with connect(listener) as second:
            assert debugger(second).read(DMSTATUS) & HALTED
            second.sendall(b"Q")
            assert second.recv(1) == b"", "Q ends the connection"
        with connect(listener) as third:
            assert debugger(third).read(DMSTATUS) & HALTED


def test_a_client_that_dies_in_the_middle_of_a_scan(elf: Path) -> None:
    listener = listen_tcp(0)
    with served(build(elf, memory_map=SMALL), listener):
        for cut in (1, 17, 60, 130):
            with connect(listener) as client:
                client.sendall((b"26" * 5 + b"04" + b"260404" + b"0R4" * 40)[:cut])
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by reset
        with connect(listener) as client:
            assert debugger(client).read(DMSTATUS) & 0xF == 3


def test_a_second_client_waits_for_the_first(elf: Path) -> None:
    listener = listen_tcp(0)
    with served(build(elf, memory_map=SMALL), listener), connect(listener) as first:
        assert debugger(first).read(DMSTATUS) & 0xF == 3
        with connect(listener) as second:
            second.sendall(b"R")
            assert debugger(first).read(DMSTATUS) & 0xF == 3
            first.close()
            assert second.recv(1) in b"01"


@pytest.fixture(scope="module")
def conversation(elf: Path) -> tuple[bytes, bytes]:
    """What a debugger sends to read four words of a halted target, and the answers, without any socket."""
    machine = build(elf, memory_map=SMALL)
    machine.halt_at_start()
    probe = JtagProbe(machine.pins(fast=False))
    dmi = Dmi(probe)
    dmi.write(DMCONTROL, 1)
    dmi.write(SBCS, 1 << 20 | 2 << 17 | 1 << 16 | 1 << 15)
    dmi.write(SBADDRESS0, 0x8000_0000)
    assert [dmi.read(SBDATA0) for _ in range(4)] == [machine.bus.read(0x8000_0000 + 4 * n, 4) for n in range(4)]
    return probe.sent, probe.received


@settings(max_examples=some_of(25), deadline=None)
@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=10))
def test_any_chunking_over_the_socket(elf: Path, conversation: tuple[bytes, bytes], sizes: list[int]) -> None:
    machine = build(elf, memory_map=SMALL)
    machine.halt_at_start()
    listener = listen_tcp(0)

    def cut(data: bytes) -> list[bytes]:
        pieces, at, turn = [], 0, 0
        while at < len(data):
            size = sizes[turn % len(sizes)]
            pieces.append(data[at : at + size])
            at, turn = at + size, turn + 1
        return pieces

    with served(machine, listener), connect(listener) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent, expected = conversation
        assert Wire(client, cut).feed(sent) == expected


def test_the_hart_runs_without_a_client_and_under_constant_traffic(elf: Path) -> None:
    machine = build(elf, memory_map=SMALL)
    listener = listen_tcp(0)
    with served(machine, listener):
        until(lambda: machine.hart.instret > 10_000)
        with connect(listener) as client:
            dmi = debugger(client)
            before, deadline = machine.hart.instret, time.monotonic() + 60
            while machine.hart.instret < before + 2000:
                dmi.read(DMSTATUS)
                assert time.monotonic() < deadline, "the debugger starves the hart"


def test_a_sleeping_hart_is_woken_through_the_system_bus(tmp_path: Path) -> None:
    """WFI with only the software interrupt enabled: nothing happens until the debugger writes msip."""
    source = tmp_path / "sleeps.c"
    source.write_text(
        """
        #define MSIP (*(volatile unsigned *)0x2000000)
        void __attribute__((interrupt, aligned(4))) on_trap(void) { MSIP = 0; }
        int main(void)
        {
            __asm__ volatile("csrw mtvec, %0; csrs mie, %1; csrs mstatus, %1; wfi" :: "r"(on_trap), "r"(8));
            return 3;
        }
        """
    )
    machine = build(compile_program(tmp_path, source), memory_map=SMALL)
    ended: list[int] = []
    machine.exited = ended.append
    listener = listen_tcp(0)
    with served(machine, listener), connect(listener) as client:
        dmi = debugger(client)
        until(lambda: machine.idle)
        assert ended == []
        dmi.write(SBCS, 2 << 17)
        dmi.write(SBADDRESS0, 0x0200_0000)
        dmi.write(SBDATA0, 1)
        until(lambda: ended == [3])


def test_an_ended_program_runs_again_after_a_reset(tmp_path: Path) -> None:
    source = tmp_path / "ends.c"
    source.write_text("int main(void) { return 5; }")
    machine = build(compile_program(tmp_path, source), memory_map=SMALL)
    ended: list[int] = []
    machine.exited = ended.append
    dm = machine.debug_module
    dm.write(DMCONTROL, 1)
    for _ in range(2):
        while not machine.idle:
            machine.run_slice(1000)
        dm.write(DMCONTROL, 3)
        dm.write(DMCONTROL, 1)
    assert ended == [5, 5]


def test_the_hart_does_not_run_a_slice_for_each_scan(elf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it to, reading 64 KiB of a running target would take half a minute. Only one that starves gets a slice."""
    machine = build(elf, memory_map=SMALL)
    run_slice, slices = machine.run_slice, 0

    def counted(instructions: int) -> None:
        nonlocal slices
        slices += 1
        run_slice(instructions)

    monkeypatch.setattr(machine, "run_slice", counted)
    starving = 0.5
    # A busy machine may delay this client.
    monkeypatch.setattr("rvtrace_gdb.transport.simulated.server._HEAD_START", 60)
    monkeypatch.setattr("rvtrace_gdb.transport.simulated.server._STARVING", starving)
    listener = listen_tcp(0)
    with served(machine, listener), connect(listener) as client:
        debugger(client)
        scan = b"2604040" + b"1R5" + b"0R4" * 39 + b"2R626040"  # some DMI read; what it reads does not matter
        before, began = slices, time.monotonic()
        for _ in range(1000):
            Wire(client).feed(scan)
        assert slices - before <= (time.monotonic() - began) / starving + 2
    assert not machine.halted


def test_a_port_that_is_taken_is_named() -> None:
    with listen_tcp(0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ListenError, match=f"127.0.0.1:{port}: Address already in use; choose another port"):
            listen_tcp(port)
    with pytest.raises(ListenError, match="choose another port"):
        listen_tcp(70_000)


def test_a_stale_socket_file_is_replaced_and_one_in_use_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listen_unix(path), pytest.raises(ListenError, match="Address already in use"):
        listen_unix(path)
    assert path.exists()
    listen_unix(path).close()
    with pytest.raises(ListenError, match="choose another path"):
        listen_unix(tmp_path / "missing" / "s")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ListenError, match="Address already in use"):
        listen_unix(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


class TestSideDoor:
    @pytest.fixture
    def door(self, elf: Path, tmp_path: Path) -> Iterator[tuple[Machine, socket.socket]]:
        machine = build(elf, memory_map=SMALL)
        machine.halt_at_start()
        machine.bus.write_bytes(0x3000_0000, bytes(n * 7 & 0xFF for n in range(0x1_0000)))
        listener, side = listen_tcp(0), listen_unix(tmp_path / "side")
        with side, served(machine, listener, Backdoor(machine.bus, side)), connect(side) as client:
            yield machine, client

    @staticmethod
    def ask(client: socket.socket, line: str) -> tuple[str, bytes]:
        client.sendall(line.encode() + b"\n")
        return TestSideDoor.answer(client)

    @staticmethod
    def answer(client: socket.socket) -> tuple[str, bytes]:
        reply = b""
        while b"\n" not in reply:
            reply += received(client, 1)
        line = reply.decode().strip()
        data = b""
        if line.startswith("OK"):
            while len(data) < int(line.split()[1]):
                data += received(client, int(line.split()[1]) - len(data))
        return line, data

    def test_the_bytes_are_those_of_the_system_bus(self, door: tuple[Machine, socket.socket]) -> None:
        machine, client = door
        line, data = self.ask(client, "READ 0x30000000 0x10000")
        assert line == "OK 65536"
        dm = machine.debug_module
        dm.write(DMCONTROL, 1)
        dm.write(SBCS, 1 << 20 | 2 << 17 | 1 << 16 | 1 << 15)
        dm.write(SBADDRESS0, 0x3000_0000)
        assert data == b"".join(dm.read(SBDATA0).to_bytes(4, "little") for _ in range(0x4000))

    @pytest.mark.parametrize(
        "line", ["READ 0x20000000 4", "READ 0x3000fffd 4", "READ", "WRITE 0 0", "READ x 4", "READ 0 -1", "\xff", ""]
    )
    def test_what_cannot_be_is_one_line(self, door: tuple[Machine, socket.socket], line: str) -> None:
        _, client = door
        assert self.ask(client, line)[0].startswith("ERROR ")
        assert self.ask(client, "READ 805306368 2") == ("OK 2", b"\0\x07")

    def test_a_request_that_is_too_big(self, door: tuple[Machine, socket.socket]) -> None:
        assert self.ask(door[1], f"READ 0x80000000 {LARGEST + 1}")[0].startswith("ERROR ")

    def test_requests_in_pieces_and_many_at_once(self, door: tuple[Machine, socket.socket]) -> None:
        _, client = door
        client.sendall(b"READ 0x300")
        time.sleep(0.02)
        client.sendall(b"00000 1\nREAD 0x30000001 1\n")
        assert [self.answer(client) for _ in range(2)] == [("OK 1", b"\0"), ("OK 1", b"\x07")]

    def test_a_line_without_end_ends_the_connection(self, door: tuple[Machine, socket.socket]) -> None:
        _, client = door
        client.sendall(b"x" * 1000)
        assert client.recv(1) == b""
