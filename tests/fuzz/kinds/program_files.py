"""What stands beside a trace: ELF files, maps of processes, core dumps, device trees."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from rvtrace_gdb.decode.etrace.esp32.readout import is_core_dump, read_core_dump, read_snapshot
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.debug_info import CallFrameInformation, symbol_names, symbols
from rvtrace_gdb.decode.program.elf import machine
from rvtrace_gdb.decode.program.image import CodeMissing, Image, read_elf
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.decode.program.linux.user_code import MappedFiles, process_image, read_maps
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import esp32_memory
from tests.decode.etrace.esp32 import images
from tests.decode.etrace.esp32.images import Described
from tests.decode.program import elves
from tests.fuzz.damage import mutations, texts
from tests.fuzz.exercise import Exercise, Input
from tests.helpers.compiled import elf_bytes

_ADDRESSES = 24  # instructions looked at
_NAMED = 12  # functions whose names are made
_NAMES = Path(__file__).resolve().parents[2] / "data" / "cases" / "more-cpp-names" / "names.cpp"
_CPP = (
    *("riscv64-unknown-elf-g++", "-march=rv32imac", "-mabi=ilp32", "-g", "-Og", "-fno-exceptions", "-nostdlib"),
    *("-nostartfiles", "-Wl,-e,main", "-Wl,-Ttext=0x80000000"),
)


class InFolder(Exercise):
    """A kind that is read from files, in a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="rvtrace-fuzz-")
        self.folder = Path(self._folder.name)

    def written(self, data: bytes, name: str = "it") -> Path:
        """A file with these bytes."""
        path = self.folder / name
        path.write_bytes(data)
        return path

    def close(self) -> None:
        self._folder.cleanup()


_SOURCE = """
    .globl main, leaf
    .type main, @function
main: .cfi_startproc
    addi sp, sp, -16
    .cfi_def_cfa_offset 16
    sd ra, 8(sp)
    .cfi_offset ra, -8
    call leaf
    ld ra, 8(sp)
    ret
    .cfi_endproc
    .size main, . - main
leaf: .cfi_startproc
    nop
    ret
    .cfi_endproc
    .data
    .globl words
words: .word 1, 2
"""


class ElfFile(InFolder):
    """A program: its symbols, code, call frame information, lines and attributes."""

    def __init__(self) -> None:
        super().__init__()
        elf = elves.build(self.folder, _SOURCE, "-g", "-Wl,--build-id", "-Wl,-z,max-page-size=16", "-Wl,-Ttext=0x1000")
        whole = elf.read_bytes()
        ways = [way for way in _OF_ELF if way != "names"]
        self.seeds = [Input(way, data) for data in (whole, elves.strip(elf).read_bytes()) for way in ways]
        self.seeds.append(Input("names", elf_bytes([*_CPP, str(_NAMES), "-lgcc"], [_NAMES])))

    def run(self, variant: str, data: bytes) -> None:
        _OF_ELF[variant](self.written(data))


def _code(path: Path) -> None:
    image = Image.from_elf(path)
    for elf, bias in image.elves:
        places = [elf.entry, *(symbol.address for section in elf.sections for symbol in section.symbols)]
        for place in places[:_ADDRESSES]:
            image.symbol(place + bias)
            _instructions(image, place + bias)


def _instructions(image: Image, address: int) -> None:
    try:
        for _ in range(4):
            address += image.instruction(address).length
    except (CodeMissing, UndecodableInstruction):
        pass


def _symbols(path: Path) -> None:
    machine(path)
    symbol_names(path)
    symbols(path)
    TandemParameters.of_elf(path)


def _debug(path: Path) -> None:
    image = Image.from_elf(path)
    frames, lines = CallFrameInformation(image), SourceLines(image)
    for address in range(0x1000, 0x1020, 2):
        frames.rules_at(address)
        lines.line_at(address)


def _names(path: Path) -> None:
    image = Image.from_elf(path)
    list(image.symbols_named("box::get"))
    for elf, bias in image.elves:
        for symbol in [symbol for section in elf.sections for symbol in section.symbols][:_NAMED]:
            image.symbol(symbol.address + bias)


_OF_ELF: Mapping[str, Callable[[Path], None]] = {"code": _code, "symbols": _symbols, "debug": _debug, "names": _names}

_MAPS = b"""00010000-00012000 r-xp 00001000 08:01 131 /usr/bin/it
00012000-00013000 rw-p 00003000 08:01 131 /usr/bin/it
3ff7e000-3ff80000 r-xp 00000000 00:00 0 [vdso]
3ff80000-3ff90000 r-xp 00000000 08:01 77 /lib/libc.so.6 (deleted)
"""


class Maps(InFolder):
    """A copy of /proc/PID/maps, with files that it names."""

    def __init__(self) -> None:
        super().__init__()
        elf = elves.build(self.folder, _SOURCE, "-Wl,-Ttext=0x11000")
        self._files = MappedFiles({"it": elf, "[vdso]": elf}, None)
        self.seeds = [Input("", _MAPS)]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return texts.mutated(rng, data, _MAPS, ("r-xp", "/usr/bin/it", "[vdso]", "(deleted)", "ffffffffffffffff"))

    def run(self, variant: str, data: bytes) -> None:
        image = process_image(read_maps(self.written(data)), self._files, 64)
        ContextImages(Image(64)).attach(image)
        _instructions(image, 0x11000)


_KALLSYMS = b"""ffffffff80000000 T _start
ffffffff80000040 t pe_head_start
ffffffff80001220 d excp_vect_table
ffffffff01e6c000 t virtblk_probe\t[virtio_blk]
ffffffff01e6c100 T cleanup_module\t[virtio_blk]
"""


class KernelSymbols(InFolder):
    """A copy of /proc/kallsyms."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = [Input("", _KALLSYMS)]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return texts.mutated(rng, data, _KALLSYMS, ("T", "ffffffff80000000", "[virtio_blk]", "0000000000000000"))

    def run(self, variant: str, data: bytes) -> None:
        image = Image(64)
        image.add_elf(read_elf(self.written(data)), loaded=False)
        for address in (0, 0xFFFFFFFF80000042, 0xFFFFFFFF01E6C200, 0x80001220):
            image.symbol(address)
        list(image.symbols_named("_start"))


class CoreDump(Exercise):
    """Core dumps of ESP-IDF, in each form in which they come, and the trace in them."""

    def __init__(self) -> None:
        super().__init__()
        small = images.stream("pt10")[:300]
        linear = Described(small, head=len(small), mode=images.LINEAR)
        ring = Described(images.as_et20()[:200] + bytes(16), 200, 1, packets=images.ET20,
                         address=0x4083_0000, overflow=1)  # fmt: skip
        whole = [images.elf_core([linear]), images.elf_core([ring])]
        whole += [images.flash_image(whole[0], partition=1 << 11), images.serial_log(whole[1])]
        self._image = Image.from_elf(images.ELF)
        self.seeds = [Input(way, data) for data in whole for way in ("read", "capture", "decode")]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        if data.startswith(b"Guru") and rng.random() < 0.7:
            return texts.mutated(rng, data, data)
        return mutations.mutated(rng, data, rng.choice(self.seeds).data)

    def run(self, variant: str, data: bytes) -> None:
        if not is_core_dump(data):
            return
        if variant == "read":
            read_core_dump(data)
            return
        capture = esp32_memory.capture_of_core_dump(data, "core.elf", self._image)
        if variant == "decode":
            session = Session()
            session.open_capture(capture, "x.rvt", str(images.ELF))
            session.harts()


class ChipMemory(Exercise):
    """The memory of a live ESP32, in which the firmware describes its trace: everything it has, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, list[tuple[int, int]]] = {}
        small = images.stream("pt10")[:300]
        linear = Described(small, head=len(small), mode=images.LINEAR)
        running = Described(small, 100, 1, state=2, address=0x4083_0000)
        for name, cores in {"one": [linear], "two": [linear, running]}.items():
            content = images.memory(cores)
            self._places[name] = [(start, len(data)) for start, data in content.items()]
            self.seeds.append(Input(name, b"".join(content.values())))

    def run(self, variant: str, data: bytes) -> None:
        content, at = {}, 0
        for start, size in self._places[variant]:
            content[start] = data[at : at + size]
            at += size
        reading = read_snapshot(images.ROOT)
        asked = next(reading)
        with suppress(StopIteration):
            while True:
                asked = reading.send([images.read(content, address, size) for address, size in asked])
