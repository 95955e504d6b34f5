"""What leaves a simulated chip, over pins or an Arm trace bus, to a file or a socket: it is what memory got."""

import socket
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.devices.sinks import FileStream, SocketStream, StreamError
from rvtrace_gdb.transport.simulated.server import listen_tcp, listen_unix
from rvtrace_gdb.transport.simulated.wiring import AnyPart, PibSinkPart, Wiring
from tests.transport.simulated.chips import SOURCE_BITS, Chip, enable, encoder, funnel, smem
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.nexus import messages

PARALLEL_4 = 10 << 4  # trPibMode


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("outlets"))


def outlets(*outside: AnyPart) -> Wiring:
    """Two harts whose trace goes to memory, and outside."""
    to = "smem", *(part.name for part in outside)
    return Wiring((encoder(0, "top"), encoder(1, "top"), smem(), *outside,
                   funnel("top", 0x2002_0000, {"encoder0": 0, "encoder1": 1}, *to)))  # fmt: skip


def pib(probe: FileStream | SocketStream) -> PibSinkPart:
    return PibSinkPart(name="pib", base=0x2004_0000, probe=probe)


def traced_outside(elf: Path, part: AnyPart, control: int) -> bytes:
    """What memory got, while the part outside was set up with *control*."""
    chip = Chip(elf, outlets(part), harts=2)
    chip.start_smem("smem")
    chip[part.name].activate()
    chip[part.name][CONTROL] = ACTIVE | control
    enable(chip[part.name])
    chip.start_funnels("top")
    chip.start_encoders(range(2))
    chip.machine.run_slice(6000)
    chip.stop_encoders()
    chip.stop("top", part.name, "smem")
    data = chip.in_memory("smem")
    chip.check(data, range(2))
    return data


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_pins_to_a_socket(elf: Path, tmp_path: Path, kind: str) -> None:
    listener = listen_tcp(0) if kind == "tcp" else listen_unix(tmp_path / "pins")
    stream = SocketStream(listener)
    with socket.socket(listener.family) as reader:
        reader.connect(listener.getsockname())
        data = traced_outside(elf, pib(stream), PARALLEL_4)
        stream.close()
        got = b"".join(iter(lambda: reader.recv(1 << 16), b""))
    assert len(got) > 500 and messages(got, SOURCE_BITS) == messages(data, SOURCE_BITS)


def test_one_reader_after_the_other() -> None:
    listener = listen_tcp(0)
    stream = SocketStream(listener)
    stream.write(b"nobody")
    for text in (b"one", b"two"):
        with socket.create_connection(listener.getsockname()) as reader:
            while True:  # what was sent to the one before may not have come back as an error yet
                stream.write(text)
                reader.settimeout(0.01)
                try:
                    assert reader.recv(3) == text
                    break
                except TimeoutError:
                    continue
    stream.close()


def test_a_file_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=r"cannot write .*missing/x: No such file or directory"):
        FileStream(tmp_path / "missing" / "x")
