"""`trace start` on a tandem port whose bytes arrive in a file."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import held_port
from rvtrace_gdb.decode.tandem.decoder import tandem_of
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import file, tables
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import BadOption, NoElf
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources.tandem_port import PortFileError
from tests.helpers.wait import until
from tests.transport.simulated.devices.tandem_port import Ported

ELF = Path(__file__).resolve().parents[2] / "data" / "riscv-tests" / "rv64ui-p-add"
PORT = """
[[tandem]]
name = "tandem0"
file = "hart.tvt"
supervisor = false
"""


ENCODER = """
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
to = ["ram0"]
[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20001000
mode = "SRAM"
"""


class Bench:
    """A program that runs on the simulated hart, whose port's bytes are copied to a file, and a session."""

    def __init__(self, folder: Path, text: str = PORT) -> None:
        self.ported = Ported(ELF)
        self.file, self.target = folder / "hart.tvt", folder / "rvtrace.toml"
        self.target.write_text(text)
        self.session = Session()
        self.context = Context(elf=str(ELF), target_file=str(self.target))
        self.run(0)

    def run(self, instructions: int) -> None:
        for _ in range(instructions):
            self.ported.machine.run_slice(1)
        self.file.write_bytes(self.ported.traces[0]) if not self.file.exists() else self._append()

    def _append(self) -> None:
        with self.file.open("ab") as file:
            file.write(self.ported.traces[0][file.tell() :])

    def pcs(self) -> list[int]:
        history, _ = self.session.decoded(self.context)
        return list(history.pcs())

    def warnings(self) -> list[str]:
        return [line for line in self.session.status(self.context) if line.startswith("warning: ")]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.session.close()


def test_after_trace_stop_nothing_more_is_read(bench: Bench) -> None:
    bench.session.start(bench.context)
    bench.run(10)
    assert bench.session.stop()[0] == "Tracing stopped."
    before = bench.ported.hart.instret
    bench.run(10)
    assert len(bench.pcs()) == before
    assert bench.session.stop()[0] == "The trace had ended already."
    bench.session.start(bench.context)
    assert len(bench.pcs()) == bench.ported.hart.instret


@pytest.mark.parametrize("damage", ["cut", "removed", "replaced"])
def test_a_file_that_is_not_what_it_was(bench: Bench, damage: str) -> None:
    """One line, and what was read stays."""
    bench.session.start(bench.context)
    arrived = f"{bench.file.stat().st_size} more to read, tracing"
    assert bench.session.status(bench.context)[1].endswith(f", 0 bytes, {arrived}")
    bench.run(25)
    expected = bench.pcs()
    assert bench.session.status(bench.context)[1].endswith(f", {bench.file.stat().st_size} bytes, tracing")
    if damage == "cut":
        bench.file.write_bytes(b"")
    else:
        bench.file.rename(bench.file.with_suffix(".old"))
    if damage == "replaced":
        bench.file.write_bytes(b"\x01\x02")
    lines = bench.warnings()
    assert bench.pcs() == expected
    problem = {"cut": "has only 0 bytes left", "removed": "is gone", "replaced": "is another file than before"}[damage]
    assert len(lines) == 1 and str(bench.file) in lines[0] and problem in lines[0] and "are kept" in lines[0]
    assert bench.session.stop()[0] == "Tracing stopped."
    assert bench.pcs() == expected


def test_a_group_that_is_half_there_is_read_when_it_is_whole(bench: Bench) -> None:
    bench.run(30)
    whole = bench.file.read_bytes()
    bench.file.write_bytes(whole[:-3])
    bench.session.start(bench.context)
    assert len(bench.pcs()) == bench.ported.hart.instret - 1
    with bench.file.open("ab") as file:
        file.write(whole[-3:])
    assert len(bench.pcs()) == bench.ported.hart.instret


def test_options(bench: Bench) -> None:
    said = bench.session.start(bench.context, {"timestamps": True, "to": ["tandem0"], "harts": [0]})
    assert said[-1] == "note:     a tandem port always reports everything; options without effect: timestamps"
    with pytest.raises(BadOption, match="no tandem port of hart 1: there are those of hart 0"):
        bench.session.start(bench.context, {"harts": [1]})
    with pytest.raises(BadOption, match="no tandem port 'ram0' in the target description, it has tandem0"):
        bench.session.start(bench.context, {"to": ["tandem0", "ram0"]})
    bench.target.write_text(PORT + ENCODER)
    with pytest.raises(BadOption, match="-to tandem0,ram0: tandem ports and sinks of encoders cannot be traced at on"):
        bench.session.start(bench.context, {"to": ["tandem0", "ram0"]})
    with pytest.raises(BadOption, match="no sink 'ram7' in the target description, it has ram0, tandem0"):
        bench.session.start(bench.context, {"to": ["ram7"]})
    with pytest.raises(BadOption, match="trace start has no option colour"):
        bench.session.start(bench.context, {"colour": True})
    with pytest.raises(NoElf):
        bench.session.start(Context(target_file=str(bench.target)))


def test_a_port_whose_file_is_not_there(bench: Bench) -> None:
    bench.file.unlink()
    with pytest.raises(PortFileError, match=r"hart\.tvt: cannot be read: No such file or directory"):
        bench.session.start(bench.context)
    bench.file.mkdir()
    with pytest.raises(PortFileError, match=r"hart\.tvt: "):
        bench.session.start(bench.context)


def test_a_socket(tmp_path: Path) -> None:
    """What comes after `trace start`; when the other end closes it, one line says so and all stays."""
    with held_port() as port:
        with socket.create_server(("127.0.0.1", port)) as server:
            bench = Bench(tmp_path, f'[[tandem]]\nname = "t"\nsocket = "tcp:127.0.0.1:{port}"\nsupervisor = false\n')
            bench.session.start(bench.context)
            connection = server.accept()[0]
        with connection:
            before = bytes(bench.ported.traces[0])
            connection.sendall(before)
            bench.run(40)
            connection.sendall(bench.ported.traces[0][len(before) :])
            until(lambda: len(bench.pcs()) == bench.ported.hart.instret)
            history, _ = bench.session.decoded(bench.context)
            tandem = tandem_of(history)
            assert tandem is not None and tandem.before(len(history)).xs() == bench.ported.hart.x
        until(lambda: bool(bench.warnings()))
        assert len(bench.pcs()) == bench.ported.hart.instret
        (warning,) = bench.warnings()
        assert "the other end has closed the connection" in warning
        with pytest.raises(PortFileError, match="cannot connect: nothing listens there"):
            bench.session.start(bench.context)
        assert len(bench.pcs()) == bench.ported.hart.instret
        bench.session.close()


DAMAGED = {
    'name = "a"': ": missing",
    'name = "a"\nfile = "x"\nspeed = 1': "speed: unknown; known here: name, hart, file",
    'name = "a"\nfile = "x"\nflen = 16': "flen: is 16: it is 32 or 64, or 0",
    'name = "a"\nfile = "x"\nmlen = 40': None,
    'name = "a"\nfile = "x"\nsocket = "tcp:a:1"': "socket: there is also a file: remove one of them",
    'name = "a"\nsocket = "x"': 'socket: is "x", must be tcp:HOST:PORT or unix:PATH',
    'name = "a"\nfile = "x"\nmlen = 48': "mlen: is 48: it is 32, 34 or 64",
    'name = "a"\nfile = "x"\ndialect = "mine"': "dialect: ",
    'name = "a"\nfile = "x"\nsupervisor = 1': "supervisor: is 1, must be true or false",
    'name = "a"\nfile = "x"\n[[tandem]]\nname = "a"\nhart = 1\nfile = "y"': 'name: "a" is used 2 times',
    'name = "a"\nfile = "x"\n[[tandem]]\nname = "b"\nfile = "y"': "hart: 0 is used 2 times",
    'name = "a"\nfile = "x"\n[qemu]\nfolder = "f"': "there are none in QEMU",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_descriptions_that_cannot_be(text: str) -> None:
    problem = DAMAGED[text]
    if problem is None:
        file.parse(f"[[tandem]]\n{text}\n", "board.toml")
        return
    with pytest.raises(DescriptionError) as error:
        file.parse(f"[[tandem]]\n{text}\n", "board.toml")
    assert str(error.value).startswith("board.toml: [[tandem]]") and problem in str(error.value)


def test_a_description_is_written_as_it_is_read(tmp_path: Path) -> None:
    given = f'{PORT}dialect = "flute"\nhart = 3\nmlen = 34\nflen = 0\neaddr = 32\n'
    read = file.parse(given, str(tmp_path / "a.toml"))
    again = file.parse(tables.text(read), str(tmp_path / "a.toml"))
    assert again.tandem == read.tandem and again.harts == [3]
    served = file.parse('[[tandem]]\nname = "a"\nsocket = "unix:/x"\n', "a.toml")
    assert file.parse(tables.text(served), "a.toml").tandem == served.tandem
    beside = file.parse('[[tandem]]\nname = "a"\nsocket = "unix:x.sock"\n', str(tmp_path / "a.toml"))
    assert beside.tandem[0].socket == f"unix:{tmp_path / 'x.sock'}"
    assert served.tandem[0].where == "from unix:/x" and read.tandem[0].where.startswith("in /")
    assert read.tandem[0].file == str(tmp_path / "hart.tvt") and read.tandem[0].dialect == "flute"
