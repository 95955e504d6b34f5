"""Traces of Espressif's chips, from core dump or memory to what ran."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.esp32 import snapshot
from rvtrace_gdb.decode.etrace.esp32.snapshot import BadSnapshot
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import esp32_memory
from tests.decode.etrace.esp32 import images as made
from tests.decode.etrace.esp32.images import Described
from tests.helpers.amounts import some_of

PT10 = Described(made.stream("pt10"), head=len(made.stream("pt10")), mode=made.LINEAR)
_ET20 = made.as_et20()
ET20 = Described(_ET20 + bytes(48), len(_ET20), 1, packets=made.ET20, address_mode=made.DELTA, address=0x4083_0000)
RAN = made.executed()


def imported(content: bytes, elf: Path = made.ELF, others: tuple[str, ...] = ()) -> Capture:
    """The capture of a core dump, written to a file and read again."""
    capture = esp32_memory.capture_of_core_dump(content, "dir/core.elf", Image.from_elf(elf), others)
    return capture_file.parse(capture_file.dump(capture), "x.rvt")


def histories(capture: Capture, elf: Path = made.ELF) -> dict[int, History]:
    session = Session()
    session.open_capture(capture, "x.rvt", str(elf))
    return session.harts().harts.histories


def addresses(history: History) -> list[int]:
    """The instructions, `GAP` for a gap."""
    return list(history.pcs())


def lines(capture: Capture, elf: Path = made.ELF) -> list[str]:
    """What the user sees when it is opened."""
    return Session().open_capture(capture, "x.rvt", str(elf))


@pytest.mark.parametrize("form", [bytes, made.flash_image, made.serial_log])
def test_a_core_dump_in_any_form_tells_what_ran(form: Callable[[bytes], bytes]) -> None:
    capture = imported(form(made.elf_core([PT10])))
    assert addresses(histories(capture)[0]) == RAN
    assert capture.target == "ESP32-C6 v0.2, imported from core.elf"
    assert capture.notes == ("tracing ended when the program panicked",)


def test_another_elf_is_named(tmp_path: Path) -> None:
    """app_elf_sha256 is the SHA-256 of the ELF file the firmware was made of."""
    other = tmp_path / "app.elf"
    other.write_bytes(made.ELF.read_bytes() + b"built again")
    capture = imported(made.elf_core([PT10]), other)
    (warning,) = (line for line in lines(capture, other) if line.startswith("warning"))
    assert warning.startswith(f"warning: the trace names app.elf (SHA-256 {made.SHA256.hex()[:12]}) as its program, ")
    assert not any(line.startswith("warning") for line in lines(imported(made.elf_core([PT10]))))


def ring(packets: str, capacity: int) -> Described:
    """The stream written round a memory of *capacity* bytes: a packet that does not fit ends there."""
    data, buffer, head = made.stream(packets), bytearray(capacity), 0
    for frame in made.frames(data):
        buffer[head : head + len(frame)] = frame[: capacity - head]
        head = head + len(frame) if head + len(frame) < capacity else 0
    assert len(buffer) == capacity
    return Described(bytes(buffer), head, packets=getattr(made, packets.upper()))


def test_a_memory_written_round_without_resynchronization() -> None:
    core = replace(ring("pt10", 4096), resync=1)
    assert any("its encoder did not resynchronize" in note for note in imported(made.elf_core([core])).notes)


def test_what_was_lost_is_told() -> None:
    core = replace(PT10, overflow=1, fifo_empty=0)
    capture = imported(made.elf_core([core]))
    assert capture.sinks[0].lost == ("core0",)
    assert "core 0: the newest packets were still in the encoder and are not in this trace" in capture.notes


STANDARD = replace(ET20, buffer=made.stream("et20"), head=4368)


@pytest.mark.parametrize(
    ("core", "said", "fit"),
    [
        (replace(PT10, address_mode=made.DELTA), "PT10 packets with differential", "PT10 packets with full"),
        (STANDARD, "ET20 packets with differential", "standard packets with differential"),
    ],
)
def test_packets_that_are_not_what_the_firmware_says(core: Described, said: str, fit: str) -> None:
    """ESP-IDF says that encoders without a register for it send differences; public decoders read full addresses."""
    capture = imported(made.elf_core([core]))
    assert addresses(histories(capture)[core.core]) == RAN
    note = f"core {core.core}: the firmware says {said} addresses, but only {fit} addresses fit the program"
    assert capture.notes[-1] == note


def test_cores_without_a_trace_are_told_of() -> None:
    idle = Described(b"", 0, core=1, state=made.READY, head_valid=0)
    capture = imported(made.elf_core([PT10], made.note([PT10, idle], [2, 0xFFFF_FFFF])))
    assert "core 1: it was not traced" in capture.notes
    with pytest.raises(BadSnapshot, match="nothing was traced: core 1: it was not traced"):
        imported(made.elf_core([PT10], made.note([idle], [0xFFFF_FFFF])))


def ask(content: dict[int, bytes], elf: Path, others: tuple[str, ...] = ()) -> tuple[Capture, list[tuple[int, int]]]:
    """The capture of a chip with this memory, and what was read of it."""
    reading = esp32_memory.live_capture(str(elf), others, made.ROOT)
    batch, asked = next(reading), list[tuple[int, int]]()
    while True:
        asked += batch
        try:
            batch = reading.send([made.read(content, address, size) for address, size in batch])
        except StopIteration as done:
            return done.value, asked


def test_a_live_chip_tells_what_ran() -> None:
    capture, asked = ask(made.memory([replace(PT10, state=made.STOPPED)]), made.ELF)
    assert addresses(histories(capture)[0]) == RAN
    assert capture.target == "ESP32-C6 v0.2"
    assert capture.notes == ("the firmware has stopped tracing",)
    assert sum(size for _, size in asked) == 32 + 36 + 28 + 32 + len(PT10.buffer) + 32


PROGRAM, FILED = range(0x2001_0000, 0x2001_0984), 0x200


def without_code(path: Path) -> Path:
    """The program with only its first `FILED` bytes in the file, as if the rest were in ROM."""
    content = bytearray(made.ELF.read_bytes())
    content[52 + 16 : 52 + 24] = FILED.to_bytes(4, "little") * 2  # p_filesz, p_memsz of the first program header
    path.write_bytes(content)
    return path


def test_code_that_is_in_no_file_is_read_from_the_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = without_code(tmp_path / "app.elf")
    monkeypatch.setitem(snapshot.CHIPS, 0x7F, snapshot.Chip("A chip", (), (range(PROGRAM.start, PROGRAM.stop + 1024),)))
    (segment,) = (part for part in Image.from_elf(made.ELF).segments if part[0] == PROGRAM.start)
    content = made.memory([replace(PT10, state=made.STOPPED)], target=0x7F)
    content[PROGRAM.start] = segment[1] + bytes(1024)
    capture, asked = ask(content, elf)
    assert addresses(histories(capture, elf)[0]) == RAN
    assert all(size == 1024 for address, size in asked if address in PROGRAM)
    nowhere, _ = ask({**content, PROGRAM.start: b""}, elf)
    assert addresses(histories(nowhere, elf)[0]) != RAN


def test_peripherals_are_not_read_for_code(tmp_path: Path) -> None:
    """On a C6 nothing at 0x20010000 is memory."""
    elf = without_code(tmp_path / "app.elf")
    _, asked = ask(made.memory([replace(PT10, state=made.STOPPED)]), elf)
    assert not any(address in PROGRAM for address, _ in asked)


def test_the_rom_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    app = without_code(tmp_path / "app.elf")
    capture = imported(made.elf_core([PT10]), app, (str(made.ELF),))
    assert addresses(histories(capture, app)[0]) == RAN
    alone = imported(made.elf_core([PT10]), app)
    assert addresses(histories(alone, app)[0]) != RAN
    assert not any("fit the program" in note for note in alone.notes), "code that is missing says nothing of packets"


@settings(derandomize=True, max_examples=some_of(60), deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_damaged_buffer_is_accounted_for(chance: Random) -> None:
    core = chance.choice([PT10, ET20])
    buffer = bytearray(core.buffer)
    for _ in range(chance.choice([1, 5, 50, 500])):
        buffer[chance.randrange(len(buffer))] = chance.choice([0, 255, chance.randrange(256)])
    core = replace(core, buffer=bytes(buffer), head=chance.randrange(len(buffer) + 1), mode=chance.choice([1, 2]))
    capture = imported(made.elf_core([core]))
    session = Session()
    session.open_capture(capture, "x.rvt", str(made.ELF))
    total, decoded, idle, skipped = session.harts().harts.accounting
    assert decoded + idle + skipped == total == len(capture.sinks[0].data)
