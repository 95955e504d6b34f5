"""Whole commands on damaged files, with any options, and streams that are followed."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import dump
from tests.console.verbs import VERBS, option_names, verb_of
from tests.decode.tandem.corpus import DATA, trace_bytes
from tests.fuzz.damage import containers, mutations, texts
from tests.fuzz.exercise import Input
from tests.fuzz.kinds.captures import captures
from tests.fuzz.kinds.etrace import etrace_of
from tests.fuzz.kinds.program_files import InFolder
from tests.helpers.reference_streams import FOLDER as NTRACE
from tests.session.description import devicetrees

_PIECE = 300  # bytes of a real trace
UNTRIED = {
    "console": "drives gdb: what passes between them is tried by the kinds `session`, `request` and `gdb-text`",
    "run": "is the kind `run`",
    "sim": "serves until it is interrupted: what it reads are the kinds `sim-devices` and `jtag`",
    "qemu": "starts QEMU",
    "usb": "needs an adapter: what it reads are the kinds `description` and `jtag`",
    "init": "needs OpenOCD",
    "serve": "serves until it is interrupted: the kind `proxy`",
    "mcp": "serves until its client leaves; random calls are in tests/console/commands/mcp",
    "top": "waits for more of a file: the kind `follow`",
    "doctor": "reads no file",
    "targets": "reads only its own files",
    "lldb-dap": "starts lldb-dap: what it passes on is tried in tests/console/commands/lldb_dap",
    "demo": "reads no file",
    "completion": "reads no file",
    "man": "reads no file",
    "skill": "reads no file",
    "gdb-script": "reads no file",
}
"""The verbs that are not tried here, and why."""
_VERBS = [verb for verb in VERBS if verb not in UNTRIED]
UNTRIED_OPTIONS = {
    "--follow": "waits for more of a file: the kind `follow`",
    "--baud": "belongs to --follow",
    "--spike-python": "starts a program",
}
_OPTIONS = [name for name in option_names(_VERBS) if name not in UNTRIED_OPTIONS]
_VALUES = (
    "1", "32", "64", "34", "1,5", "3,+2", "/r", "/rf", "sifive", "rc7", "pulp", "qemu", "flute", "piccolo", "full",
    "off", "counter", "main", "a0", "mstatus:0x600", "0x80000000:0x1000", "spike", "riscv-dv", "M", "all", "smi", "atb",
    "encap", "esp32", "standard", "reference", "it.bin", "it.rvt", "n.elf", "t.elf", "out.rvt", "out.txt", ".", "-",
    "rv32imac", "no-such-file", "/dev/null",
)  # fmt: skip
_COMMANDS = {
    "ntrace": (
        "decode it.bin --ntrace --elf n.elf", "decode it.bin --ntrace --elf n.elf --events --json",
        "decode it.bin 1,9 /r --ntrace --implicit-return full --elf n.elf", "dump it.bin --ntrace --raw",
        "import it.bin --ntrace --elf n.elf -o out.rvt", "import it.bin --ntrace --elf n.elf -o out.rvt --json",
        "functions it.bin --ntrace --elf n.elf --calls", "calls it.bin --ntrace --elf n.elf --depth 0",
        "find it.bin 0x80000000,0x80002000 --ntrace --elf n.elf --json", "events it.bin --ntrace --elf n.elf",
        "coverage it.bin --ntrace --elf n.elf --all", "report it.bin --ntrace --elf n.elf",
        "explain it.bin --ntrace --elf n.elf", "stack it.bin --ntrace --elf n.elf",
        "tasks it.bin --ntrace --elf n.elf",
        "fork it.bin --ntrace --elf n.elf --through-devices",
        "status it.bin --ntrace --elf n.elf --json",
        "itc it.bin --ntrace --elf n.elf", "itc it.bin --channel 0 --ntrace --dialect sifive --elf n.elf --json",
        "values it.bin --ntrace --elf n.elf", "values it.bin --at 9 --ntrace --elf n.elf --json",
        "who-wrote it.bin $a0 --ntrace --elf n.elf", "who-wrote it.bin 0x80001000,8 --count 9 --ntrace --elf n.elf",
        "sql it.bin SELECT*FROM(instructions) --ntrace --elf n.elf",
        "calls-of it.bin main --ntrace --elf n.elf --json", "log it.bin main $a0 --ntrace --elf n.elf",
        "log it.bin main a+1 --if 1 --ntrace --elf n.elf --json",
        "check it.bin --ntrace --elf n.elf", "gaps it.bin --ntrace --elf n.elf --check --json",
        "diff it.bin it.bin --ntrace --elf n.elf", "diff it.bin it.bin 1,2 --ntrace --elf n.elf --json",
        "perf-script it.bin --itrace=i9igl4 -F +brstack,srcline --ntrace --elf n.elf",
        "perf-script it.bin 1,99 --call-ret-trace --ntrace --elf n.elf",
        "perf-script it.bin --itrace=be -F ip,addr,insn --show-mmap-events --ntrace --elf n.elf",
        "intervals it.bin --calls main --ntrace --elf n.elf", "intervals it.bin --traps 7 --ntrace --elf n.elf --json",
    ),
    "etrace": (
        "decode it.bin --etrace --elf n.elf", "dump it.bin --etrace --json", "data it.bin --etrace --elf n.elf",
        "import it.bin --etrace --elf n.elf -o out.rvt", "decode it.bin --etrace --dialect pulp --elf n.elf --events",
        "fork it.bin --etrace --elf n.elf",
        "check it.bin --etrace --elf n.elf --json", "functions it.bin --etrace --elf n.elf --instructions --json",
        "calls it.bin --etrace --elf n.elf --json", "find it.bin main --etrace --elf n.elf",
    ),
    "tandem": (
        "decode it.bin --tandem --dialect flute --elf t.elf", "data it.bin --tandem --dialect flute",
        "dump it.bin --tandem", "import it.bin --tandem --elf t.elf -o out.rvt", "tandem show it.bin --elf t.elf",
        "tandem show it.bin --json --raw --dialect flute", "tandem show it.bin --state 5 --dialect flute",
        "tandem show it.bin --register a0 --traps", "tandem convert it.bin --to spike -o out.txt --dialect flute",
        "tandem convert it.bin --to riscv-dv -o - --elf t.elf",
        "tandem verify it.bin --model simulated --elf t.elf --dialect flute",
        "tandem verify it.bin --model simulated --json --state --every 3 --dialect flute",
        "fork it.bin 5 --tandem --dialect flute --elf t.elf",
        "fork it.bin --tandem --elf t.elf --through-devices --json",
        "values it.bin --at 5 --tandem --dialect flute --elf t.elf",
        "who-wrote it.bin $a0 --at 9 --tandem --dialect flute --elf t.elf --json",
        "coverage it.bin --tandem --dialect flute --elf t.elf --json",
    ),
    "capture": (
        "decode it.rvt", "decode it.rvt --events --json --hart all", "check it.rvt", "functions it.rvt", "calls it.rvt",
        "coverage it.rvt", "report it.rvt 1,+99 --json", "explain it.rvt --json", "stack it.rvt --json",
        "tasks it.rvt --json", "tasks it.rvt --switches --rtos linux",
        "fork it.rvt 1,99 --json",
        "status it.rvt --check", "intervals it.rvt main return:main --unit ticks", "diff it.rvt it.rvt",
        "blame --good it.rvt --bad n.rvt --json",
        "values it.rvt", "who-wrote it.rvt $ra", "why it.rvt $a0 --branches", "note it.rvt --json",
        "note it.rvt --at 9 text", "pack it.rvt -o out.rvtz --json", "note it.rvt --delete 1",
        "sql it.rvt SELECT*FROM(calls) --json", "sql it.rvt SELECT*FROM(log) --log main $sp --calls-of main",
        "sql it.rvt SELECT*FROM(invocations)",
        "events it.rvt --check", "dump it.rvt", "data it.rvt",
        "export it.rvt --to spike -o out.txt --quiet", "pgo it.rvt --to llvm -o out.txt --json", "tandem show it.rvt",
        "tandem verify it.rvt --model simulated", "decode it.bin --settings it.rvt --elf n.elf",
    ),
    "log": (
        "encode --elf t.elf --pcs it.log -o out.rvt", "encode --elf t.elf --pcs it.log --etrace -o out.bin --dump",
        "encode --elf t.elf --pcs it.log --tandem -o out.rvt", "encode --elf t.elf --pcs it.log --dump --json",
    ),
    "device-tree": ("import-dt it.dtb -o out.toml --buffer 0x80000000:0x10000", "import-dt it.dtb -o -"),
    "elf": ("decode sound.nex --ntrace --elf it.elf", "tandem show sound.tvt --elf it.elf --dialect flute"),
}  # fmt: skip
_NAMES = {"capture": "it.rvt", "log": "it.log", "device-tree": "it.dtb", "elf": "it.elf"}


class OnFiles(InFolder):
    """Commands in a folder of their own, where no other programs are found: these take long to start."""

    def __init__(self) -> None:
        super().__init__()
        self.blobs: dict[str, list[bytes]] = _blobs()
        shutil.copy(NTRACE / "vvadd.elf", self.folder / "n.elf")
        shutil.copy(DATA / "riscv-tests" / "rv64mi-p-scall", self.folder / "t.elf")
        self.written(self.blobs["ntrace"][0], "sound.nex")
        self.written(self.blobs["tandem"][0], "sound.tvt")

    def isolate(self) -> None:
        os.chdir(self.folder)
        os.environ["PATH"] = str(self.folder)


class Commands(OnFiles):
    """An input is a line with the command's words, as JSON, and the file that it reads."""

    def __init__(self) -> None:
        super().__init__()
        for kind, commands in _COMMANDS.items():
            for number, command in enumerate(commands):
                blob = self.blobs[kind][number % len(self.blobs[kind])]
                self.seeds.append(Input(kind, json.dumps(command.split()).encode() + b"\n" + blob))

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        line, _, blob = data.partition(b"\n")
        words = json.loads(line)
        if rng.random() < 0.4:
            for _ in range(rng.choice((1, 1, 2, 3))):
                _change_words(rng, words)
            return json.dumps(words).encode() + b"\n" + (blob if rng.random() < 0.5 else mutations.mutated(rng, blob))
        return line + b"\n" + _changed_blob(rng, blob)

    def run(self, variant: str, data: bytes) -> None:
        line, _, blob = data.partition(b"\n")
        try:
            words = [str(word) for word in json.loads(line)]
        except (ValueError, TypeError, RecursionError):
            return
        if not words or verb_of(words) not in _VERBS:
            return
        self.written(blob, _NAMES.get(variant, "it.bin"))
        with quiet(self.folder), contextlib.suppress(SystemExit):
            main(words)


def _blobs() -> dict[str, list[bytes]]:
    log = gzip.decompress((DATA / "tandem" / "flute_rv64mi-p-scall.spike.gz").read_bytes()).splitlines(True)
    return {
        "ntrace": [(NTRACE / name).read_bytes()[:_PIECE] for name in ("vvadd.1.nex", "vvadd.3.nex", "vvadd.0.nex")],
        "etrace": [etrace_of(number).data for number in range(4)],
        "tandem": [trace_bytes("flute_rv64mi-p-scall")[:_PIECE], trace_bytes("flute_rv64-irq")[-_PIECE:]],
        "capture": [dump(capture) for capture in captures()],
        "log": [b"".join(log[:40]), b"".join(log[-30:])],
        "device-tree": [devicetrees.blob(name) for name in devicetrees.NAMES],
        "elf": [(DATA / "riscv-tests" / "rv64mi-p-scall").read_bytes(), (NTRACE / "vvadd.elf").read_bytes()],
    }


def _change_words(rng: random.Random, words: list[str]) -> None:
    """Another word, one less, or an option more. The command itself stays."""
    begin = 2 if words[0] == "tandem" else 1
    at, pick = rng.randrange(begin, len(words) + 1) if len(words) >= begin else len(words), rng.random()
    if pick < 0.5:
        words[at:at] = [rng.choice(_OPTIONS), *([_value(rng)] if rng.random() < 0.6 else [])]
    elif pick < 0.8 and at < len(words):
        words[at] = _value(rng)
    else:
        del words[at : at + 1]


def _value(rng: random.Random) -> str:
    return rng.choice(_VALUES) if rng.random() < 0.7 else texts.word(rng).replace("\0", "0").replace("/", "_")


def _changed_blob(rng: random.Random, blob: bytes) -> bytes:
    if blob.startswith(b"PK"):
        return containers.mutated_zip(rng, blob)
    return texts.mutated(rng, blob, blob) if blob.startswith(b"core") else mutations.mutated(rng, blob, blob)


@contextlib.contextmanager
def quiet(folder: Path) -> Iterator[None]:
    """Files in place of standard output and standard error. Raises AssertionError for what should not be said."""
    before = sys.stdout, sys.stderr
    with open(folder / "stdout", "w") as sys.stdout, open(folder / "stderr", "w+") as sys.stderr:
        try:
            yield
            sys.stderr.seek(0)
            said = sys.stderr.read()
            assert "Traceback" not in said and "internal error" not in said, said
        finally:
            sys.stdout, sys.stderr = before


_FOLLOWED = {
    "ntrace": (
        "decode --follow FILE --ntrace --elf n.elf", "decode --follow FILE --ntrace --elf n.elf --events -o out.rvt",
        "decode --follow FILE --settings n.rvt --elf n.elf", "top FILE --ntrace --elf n.elf",
    ),
    "etrace": (
        "decode --follow FILE --etrace --elf n.elf --json", "decode --follow FILE --etrace --elf n.elf --wrapped",
        "top FILE --etrace --elf n.elf --json",
    ),
    "tandem": (
        "decode --follow FILE --tandem --dialect flute --elf t.elf -o out.rvt",
        "decode --follow FILE --tandem --dialect flute --json --events",
        "top FILE --tandem --dialect flute --elf t.elf",
    ),
}  # fmt: skip


class Followed(OnFiles):
    """A stream through a socket, in pieces, decoded while it arrives. A variant is a command line."""

    def __init__(self) -> None:
        super().__init__()
        self.written(self.blobs["capture"][0], "n.rvt")
        for kind, options in _FOLLOWED.items():
            for words in options:
                self.seeds += [Input(words, blob) for blob in self.blobs[kind]]

    def run(self, variant: str, data: bytes) -> None:
        place = "stream"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place)
            listener.listen(1)
            thread = threading.Thread(target=_send, args=(listener, data), daemon=True)
            thread.start()
            with quiet(self.folder), contextlib.suppress(SystemExit):
                main([f"unix:{place}" if word == "FILE" else word for word in variant.split()])
            listener.shutdown(socket.SHUT_RDWR)  # it may end before it connects
        thread.join()


def _send(listener: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            for at in range(0, len(data), 100):
                connection.sendall(data[at : at + 100])
