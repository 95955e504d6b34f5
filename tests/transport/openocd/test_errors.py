"""OpenOCD absent, not OpenOCD, refusing, dying, hanging: one line each, and usable again afterwards."""

import resource
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from rvtrace_gdb.console.bench.rig import held_port
from rvtrace_gdb.support.errors import Cancelled
from rvtrace_gdb.transport.openocd.errors import (
    NoSuchTarget,
    NotOpenOcd,
    OpenOcdAbsent,
    OpenOcdError,
    OpenOcdLost,
    OpenOcdRefused,
    OpenOcdTimeout,
)
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.transport.openocd.fake_server import Close, FakeOpenOcd, Silence

RAM = 0x8000_0000


@pytest.fixture
def fake() -> Iterator[FakeOpenOcd]:
    with FakeOpenOcd() as server:
        server.memory = {RAM + 4 * n: n * 0x0101_0101 & 0xFFFF_FFFF for n in range(8192)}
        yield server


@pytest.fixture
def openocd(fake: FakeOpenOcd) -> Iterator[OpenOcd]:
    with OpenOcd(port=fake.port, timeout=60) as client:
        yield client


def expected(words: range) -> bytes:
    return struct.pack(f"<{len(words)}I", *(n * 0x0101_0101 & 0xFFFF_FFFF for n in words))


def drop(fake: FakeOpenOcd, client: OpenOcd) -> None:
    """End the connection, and wait until that has come to the client."""
    connection = client._socket
    assert connection is not None
    fake.drop()
    assert select.select([connection], [], [], 60)[0]


def test_words_and_blocks(openocd: OpenOcd) -> None:
    openocd.write32(RAM, 0xDEAD_BEEF)
    assert openocd.read32(RAM) == 0xDEAD_BEEF
    assert openocd.read_block(RAM + 4, 0) == b""
    assert openocd.read_block(RAM + 4, 32764) == expected(range(1, 8192))
    assert (openocd.version, openocd.targets) == ("Open On-Chip Debugger 0.12.0", ("riscv.cpu0", "riscv.cpu1"))


def test_nobody_listens() -> None:
    with held_port() as port, pytest.raises(OpenOcdAbsent) as caught:
        OpenOcd(port=port).read32(RAM)
    assert str(caught.value) == (
        f"no OpenOCD at 127.0.0.1:{port} (Connection refused): start OpenOCD, or set the port of its Tcl server "
        "(tcl_port in its configuration, 6666 unless changed)"
    )


def test_openocd_is_started_later() -> None:
    with held_port() as port, OpenOcd(port=port) as openocd:
        with pytest.raises(OpenOcdAbsent):
            openocd.read32(RAM)
        with FakeOpenOcd() as fake:
            fake.memory[RAM] = 7
            openocd.port = fake.port
            assert openocd.read32(RAM) == 7
            openocd.close()


@pytest.mark.parametrize("banner", [b"+", b"Open On-Chip Debugger\r\n\r> "], ids=["gdb port", "telnet port"])
def test_another_server_speaks_first(banner: bytes) -> None:
    with FakeOpenOcd(banner=banner) as fake, pytest.raises(NotOpenOcd) as caught:
        OpenOcd(port=fake.port).read32(RAM)
    assert caught.value.answer.startswith(banner)
    text = str(caught.value)
    assert text.startswith(f"what listens at 127.0.0.1:{fake.port} is not OpenOCD's Tcl server (it answered '")
    assert text.endswith(
        "): set the port to OpenOCD's tcl_port (6666 unless changed; 3333 is for gdb, 4444 for telnet)"
    )


@pytest.mark.parametrize("greeting", ["HTTP/1.1 400 Bad Request", "rvtrac"])
def test_another_server_answers(greeting: str) -> None:
    with FakeOpenOcd(greeting=greeting) as fake, pytest.raises(NotOpenOcd, match="is not OpenOCD's Tcl server"):
        OpenOcd(port=fake.port).read32(RAM)


def test_another_server_hangs_up() -> None:
    class Rude(FakeOpenOcd):
        def _answer(self, request: str) -> str:
            raise Close

    with Rude() as fake, pytest.raises(NotOpenOcd, match="it closed the connection"):
        OpenOcd(port=fake.port).read32(RAM)


def test_another_server_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        openocd = OpenOcd(port=listener.getsockname()[1], timeout=0.3)
        with pytest.raises(OpenOcdTimeout):  # accepted by the kernel, and nobody is there
            openocd.read32(RAM)


def test_openocd_that_ends_the_connection_on_exit_codes() -> None:
    with FakeOpenOcd(exits=True) as fake, OpenOcd(port=fake.port) as openocd:
        fake.memory[RAM] = 7
        assert openocd.read32(RAM) == 7
        drop(fake, openocd)
        assert openocd.read32(RAM) == 7
        assert fake.connections == 3
        openocd.close()


def test_unknown_target(fake: FakeOpenOcd) -> None:
    with OpenOcd(port=fake.port, target="riscv.cpu2") as openocd, pytest.raises(NoSuchTarget) as caught:
        openocd.read32(RAM)
    assert str(caught.value) == (
        "OpenOCD has no target 'riscv.cpu2', it has riscv.cpu0, riscv.cpu1: correct the target description"
    )


def test_commands_go_to_the_named_target(fake: FakeOpenOcd) -> None:
    with OpenOcd(port=fake.port, target="riscv.cpu1") as openocd:
        openocd.read32(RAM)
        openocd.write32(RAM, 1)
        openocd.state()
    assert fake.commands == [
        "riscv.cpu1 read_memory 0x80000000 32 1 phys",
        "riscv.cpu1 write_memory 0x80000000 32 {0x1} phys",
        "riscv.cpu1 curstate",
    ]


def test_refused_access(openocd: OpenOcd) -> None:
    with pytest.raises(OpenOcdRefused) as caught:
        openocd.read32(0x7000_0000)
    assert caught.value.address == 0x7000_0000
    assert str(caught.value) == (
        "OpenOCD cannot access address 0x70000000: read_memory: failed to read memory; its log may say more"
    )
    assert openocd.read32(RAM + 4) == 0x0101_0101


def test_a_block_that_is_refused_half_way(openocd: OpenOcd, fake: FakeOpenOcd) -> None:
    with pytest.raises(OpenOcdRefused) as caught:
        openocd.read_block(RAM, 40000)
    kept = caught.value.partial
    assert 0 < len(kept) <= 32768 and kept == expected(range(len(kept) // 4))
    assert str(caught.value).endswith(f"({len(kept)} of 40000 bytes were read and are kept)")
    assert fake.connections == 1


@pytest.mark.parametrize("answer", ["", "0x1", "0x1 0x2 0x3", "0x1 fish"])
def test_an_answer_that_is_not_words(openocd: OpenOcd, fake: FakeOpenOcd, answer: str) -> None:
    fake._execute = lambda command: answer  # type: ignore[method-assign]
    with pytest.raises(OpenOcdRefused, match="instead of 2 words"):
        openocd.read_block(RAM, 8)


def test_dies_half_way(openocd: OpenOcd, fake: FakeOpenOcd) -> None:
    def die(command: str) -> None:
        if len(fake.commands) == 4:
            raise Close

    fake.before = die
    with pytest.raises(OpenOcdLost) as caught:
        openocd.read_block(RAM, 32768)
    kept = caught.value.partial
    assert kept and kept == expected(range(len(kept) // 4))
    assert str(caught.value) == (
        f"OpenOCD at 127.0.0.1:{fake.port} ended the connection: see its log, start it again and repeat the command "
        f"({len(kept)} of 32768 bytes were read and are kept)"
    )
    assert openocd.read_block(RAM, 32768) == expected(range(8192))
    assert fake.connections == 2


def test_restarted_between_two_commands(openocd: OpenOcd, fake: FakeOpenOcd) -> None:
    assert openocd.read32(RAM + 8) == 0x0202_0202
    drop(fake, openocd)
    assert openocd.read32(RAM + 8) == 0x0202_0202
    assert fake.connections == 2


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(openocd: OpenOcd, fake: FakeOpenOcd) -> None:
    def hang(command: str) -> None:
        fake.before = lambda command: None
        raise Silence

    openocd.read32(RAM)
    fake.before, openocd.timeout = hang, 0.2
    with pytest.raises(OpenOcdTimeout, match=r"did not answer within 0.2 s: is it busy, or its adapter unplugged"):
        openocd.read32(RAM)
    openocd.timeout = 60
    assert openocd.read32(RAM + 4) == 0x0101_0101
    assert fake.connections == 2


def test_cancelled_between_chunks(openocd: OpenOcd, fake: FakeOpenOcd) -> None:
    seen: list[tuple[int, int | None]] = []

    def watch(label: str, done: int, total: int | None = None) -> None:
        seen.append((done, total))
        if len(seen) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        openocd.read_block(RAM, 32768, watch)
    assert seen[0] == (0, 32768) and seen[2][0] > seen[1][0] > 0
    assert openocd.read32(RAM + 4) == 0x0101_0101
    assert fake.connections == 1


def test_progress_ends_at_the_total(openocd: OpenOcd) -> None:
    seen: list[tuple[int, int | None]] = []
    openocd.read_block(RAM, 4096, lambda label, done, total=None: seen.append((done, total)))
    assert seen[-1] == (4096, 4096) and seen == sorted(seen)


def test_data_port(openocd: OpenOcd, fake: FakeOpenOcd) -> None:
    port = 0x2000_1040
    fake.memory = {port: 100}
    assert openocd.read_data_port(port, 1000) == struct.pack("<1000I", *range(100, 1100))
    assert len(fake.commands) < 100  # a loop in OpenOCD, not a round trip per word; shorter ones on slow machines
    fake.memory = {port: 0, port + 4: 700}
    with pytest.raises(OpenOcdRefused) as caught:
        openocd.read_data_port(port, 1000)
    assert caught.value.partial == struct.pack("<700I", *range(700))
    assert caught.value.address == port


def test_every_error_is_one_line() -> None:
    for error in [
        OpenOcdAbsent("h", 1, "r"),
        NotOpenOcd("h", 1, b"a\nb" * 40),
        NoSuchTarget("t", ()),
        OpenOcdRefused("c", "Error: a\n in b\n", None),
        OpenOcdLost("h", 1),
        OpenOcdTimeout("h", 1, 0.5),
    ]:
        assert isinstance(error, OpenOcdError)
        assert "\n" not in str(error) and len(str(error)) < 250


def test_a_limit_of_this_process_is_not_taken_for_an_absent_openocd(fake: FakeOpenOcd) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            OpenOcd("127.0.0.1", fake.port).read32(RAM)
        with pytest.raises(OSError, match="Too many open files"):
            socket.create_connection(("127.0.0.1", fake.port))  # as the system says it
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
