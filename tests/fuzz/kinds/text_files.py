"""Texts that people and other programs write: descriptions, logs, scripts, settings, what is typed after a command."""

from __future__ import annotations

import argparse
import gzip
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from rvtrace_gdb.console.commands.sim.devices import built
from rvtrace_gdb.console.commands.tandem.show import place_of
from rvtrace_gdb.console.options import etrace
from rvtrace_gdb.console.scripts.language import parse
from rvtrace_gdb.console.scripts.runner import load
from rvtrace_gdb.console.scripts.verbs import VERBS, read
from rvtrace_gdb.decode.branches.ctxp import sources_of
from rvtrace_gdb.decode.branches.neorv32 import pairs_in_text
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.logs import FORMS, reader_of
from rvtrace_gdb.decode.tandem.logs.commits import trace_of
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import RECONSTRUCTED, TandemParameters
from rvtrace_gdb.session.description.file import load as load_description
from rvtrace_gdb.session.description.model import Description
from rvtrace_gdb.session.description.tables import text as text_of
from rvtrace_gdb.session.queries.lists.pages import Cursor
from rvtrace_gdb.session.sources.hardware import Topology
from rvtrace_gdb.session.verify.masks import masks_of
from rvtrace_gdb.views.text_rows import Modifiers
from tests.decode.tandem.corpus import DATA, program_of
from tests.fuzz.damage import texts
from tests.fuzz.exercise import Input, refused
from tests.fuzz.kinds.program_files import InFolder
from tests.session.description.test_coresight import BOARD as CORESIGHT_BOARD
from tests.session.description.test_coresight import through_static_funnels
from tests.transport.simulated.sim_command.device_files import Kept, board

_HOME = Path(__file__).resolve().parents[3]


class TextFile(InFolder):
    """A file that is text. *words* mean something in it."""

    words: tuple[str, ...] = ()

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return texts.mutated(rng, data, rng.choice(self.seeds).data, self.words)


_BOARD = b"""[target]
name = "my board"
xlen = 64
[openocd]
host = "127.0.0.1"
tcl_port = 6666
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
hart = 0
to = ["funnel0"]
[component.etrace]
iaddress_width = 39
[[component]]
name = "funnel0"
type = "funnel"
base = 0x20002000
to = ["ram0"]
[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20001000
mode = "SMEM"
start = 0x30000000
size = 0x10000
[[tandem]]
name = "tv0"
hart = 0
file = "tv.bin"
"""


_LARGEST = 4096  # bytes of a seed, so that most damage meets something


class DescriptionFile(TextFile):
    """Target descriptions, and the graph in them; what is read is what is written again."""

    words = ("encoder", "funnel", "ram_sink", "pib_sink", "atb_bridge", "base", "hart", "to", "inputs", "start", "size",
             "mode", '"SRAM"', "version", "[[component]]", "[[tandem]]", "[openocd]", "[qemu]", "[usb]", "xlen",
             "etrace", "dialect", "true", "[1, 2]", '["ram0"]', "file", "listen", "connect", "coresight_funnel",
             "coresight_replicator", "coresight_tmc", '"FIFO"', '"SG"', "power", "id", "coresight_static_funnel",
             "context_notify", '["sret"]')  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        boards = sorted((_HOME / "session" / "description" / "library" / "targets").glob("*/rvtrace.toml"))
        boards += sorted((_HOME / "examples" / "targets").glob("*.toml"))
        shipped = [board.read_bytes() for board in boards if board.stat().st_size < _LARGEST]
        boards_on_bus = CORESIGHT_BOARD, through_static_funnels()
        self.seeds = [Input("", document) for document in (_BOARD, *map(str.encode, boards_on_bus), *shipped)]

    def run(self, variant: str, data: bytes) -> None:
        description = load_description(self.written(data, "board.toml"))
        topology = Topology(description)
        topology.start_order()
        for component in description.components:
            topology.senders_to(component)
        again = load_description(self.written(text_of(description).encode(), "board.toml"))
        assert _same(description, again), "what is written is not what is read"


def _same(one: Description, other: Description) -> bool:
    return one.components == other.components and one.tandem == other.tandem and one.name == other.name


_DEVICES = (
    b"[encoder0]\nfilters = 3\ncomparators = 2\noverflow_after = [3, 9]\nfixed = {trTeInstMode = 6}\n[ram0]\n"
    b'modes = ["SMEM", "SRAM"]\nsram_size = 4096\n[pib0]\nstream = "file:it"\n',
    b'[top]\ninputs = 4\n[atb0]\nwidth = 32\nstream = "tcp:0"\n[ram0]\naccess_width = 8\naddress_bits = 34\n',
)


class DevicesFile(TextFile):
    """Files for `rvtrace sim --devices`."""

    words = ("encoder0", "ram0", "pib0", "filters", "trigger_inputs", "fixed", "src_bits", "true", "timestamp", "[]",
             "protocol", '"etrace"', "sram_size", "{a = 1}", "trRamMode", "version")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._board = board()
        self.seeds = [Input("", text) for text in _DEVICES]

    def run(self, variant: str, data: bytes) -> None:
        built(self._board, self.written(data, "devices.toml"), lambda name, where, folder: Kept())


_QEMU = b"""IN: _start
Priv: 3; Virt: 0
0x80000000:  04c0006f          j                       76              # 0x8000004c

Trace 0: 0x7f2478000740 [0000000000000000/0000000080000000/00203003/ff020200] _start
Trace 0: 0x7f2478000880 [0000000000000000/000000008000004c/00203003/ff020200] reset_vector
riscv_cpu_do_interrupt: hart:0, async:0, cause:0000000000000002, epc:0x0000000080000058, tval:0x0, desc=illegal
Trace 0: 0x7f2478000a80 [0000000000000000/0000000080000004/00203003/ff020200] trap_vector
Stopped execution of TB chain before 0x7f2478000a80 [0000000080000004] trap_vector
Trace 0: 0x7f2478000a80 [0000000000000000/0000000080000004/00203003/ff020200] trap_vector
cpu_io_recompile: rewound execution of TB to 0000000080000008
Trace 0: 0x7f2478000b00 [0000000000000000/0000000080000008/00203003/ff020201] trap_vector
"""
_STATES = b"".join(
    b"Trace 0: 0x7f [0000000000000000/%016x/00203003/ff000201] main\n pc       %016x\n mstatus  0000000a00000080\n"
    b" mepc     0000000080000004\n mcause   0000000000000002\n x0/zero  %016x x1/ra    %016x x2/sp    %016x\n%b"
    % (pc, pc, 0, pc, 0x80004000 + pc, trap)
    for pc, trap in (
        (0x80000000, b""),
        (0x8000004C, b"riscv_cpu_do_interrupt: hart:0, async:0, cause:2, epc:0x000000008000004c, tval:0x0, desc=it\n"),
        (0x80000004, b"Stopped execution of TB chain before 0x7f [0000000080000004] trap_vector\n"),
        (0x80000004, b"0x80000008:  34202f73          csrr t5,mcause\n"),
        (0x80000008, b""),
    )
)
_IBEX = b"""Time\tCycle\tPC\tInsn\tDecoded instruction\tRegister and memory contents
130\t61\t80000000\t04c0006f\tjal\tx0,76\t
132\t62\t8000004c\t00008437\tlui\tx8,0x8\t x8=0x00008000
142\t67\t80000050\tc622\tc.swsp\tx8,12(x2)\t x2:0x00002000  x8:0x00008000 PA:0x0000200c store:0x????8000
144\t68\t80000052\t00c13823\tcsc\tx12,16(x2)\t x2:0x2000+0x1700000c4 PA:0x00002010 store:0x00003000+0x17f000c44
146\t69\t80000100\t30200073\tmret\t\t
"""
_CTXP = b'HDR:format=accemic//ctxp-txt,ver=1\nMETA:#0="CPU0"\n#0:SYNC::0x64 @ 3\n#1:MEMWRITE_4::0x5\n#0:OVERFLOW::\n'
_PAIRS = b"00000069 000000e4\n[1] SRC: 0x68 -> DST: 0xe4 <TRAP_ENTRY>\n"
_READ_WHOLE: dict[str, Callable[[bytes], object]] = {"ctxp": sources_of, "pairs": pairs_in_text}
_LISTED = b"# pcs\n0x8000004c\n80000050\n0x80000054,L4\n; end\n80000058\n.end\n"


class ExecutionLog(TextFile):
    """Logs of Spike and QEMU, lists of addresses, plain and gzip."""

    words = ("core   0:", "exception", "Trace 0:", "mem", "0x80000000", "epc", "tval", ">>>>", "x5", "c768_mstatus",
             "interrupt", "hart:1", "async:1", "IN:", "Priv:", "fffffffffffffffe", " pc ", "x2/sp", "PA:0x", "store:0x",
             "-->")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._image = program_of("flute_rv64mi-p-scall")
        spike = gzip.decompress((DATA / "tandem" / "flute_rv64mi-p-scall.spike.gz").read_bytes()).splitlines(True)
        listed = b"".join(line for line in spike[:120] if b" 3 0x" not in line)
        begin, end = b"".join(spike[:40]), b"".join(spike[-40:])
        packed = gzip.compress(begin)
        for data in (begin, end, listed, _QEMU, _LISTED, packed):
            self.seeds += [Input(way, data) for way in ("executed", "contexts", "commits")]
        self.seeds += [Input("ctxp", _CTXP), Input("pairs", _PAIRS)]
        for form, data in (("spike", begin), ("spike", end), ("qemu", _STATES), ("ibex", _IBEX)):
            self.seeds.append(Input(form, data))

    def run(self, variant: str, data: bytes) -> None:
        if variant in _READ_WHOLE:
            _READ_WHOLE[variant](data)
            return
        with Log(str(self.written(data))) as log:
            if variant in FORMS:
                xlen = 32 if variant == "ibex" else 64
                parameters = TandemParameters(xlen, 64, dialect=RECONSTRUCTED)
                trace_of(reader_of(variant)(log, xlen, self._image), parameters)
                return
            if variant == "commits":
                deque(CommitLog(log, 64, self._image, None).retired(), maxlen=0)
                return
            executed = Executed(log, self._image, contexts=variant == "contexts", limit=100_000)
            deque(executed.items(), maxlen=0)
            assert isinstance(executed.notes, list)


SCRIPTS = (
    b"connect\nload\nstart\nrun until finish within 10s\nstop\ndecode\nassert no loss\nassert ran on_trap\n"
    b"assert calls fib >= 41\nassert order fib classify\nsave\n",
    b'set n = 3\nrepeat $n as i  # often\n  if $i > 1\n    echo "$i of $n"\n  else\n    run for 500ms\n  end\n'
    b"  save 'run-$i.rvt'\nend\nassert interrupt latency < 100\nassert instructions <= 1000\ngdb info registers\n",
    b"start -format etrace -data\nbreak main\nrun until main within 2min\nassert value x == 1\ntrace events\n"
    b"assert not ran on_fault\nset t = interrupt latency max\nif losses\necho lost\nend\n",
)


class Script(TextFile):
    """Scripts, which are read whole before anything runs."""

    words = (*VERBS, "repeat", "if", "else", "end", "as", "within", "until", "for", "assert", "no", "loss", "ran",
             "calls", "order", "latency", "<=", ">", "$n", "$$", "#", "10s", "1e9min", "0x10")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.seeds = [Input("", script) for script in SCRIPTS]

    def run(self, variant: str, data: bytes) -> None:
        load(self.written(data, "it.rvts"))


_PARAMETERS = (
    b"iaddress_width_p = 64\niaddress_lsb_p = 1\nbpred_size_p : 6\nreturn_stack_size_p=4\nnocontext_p = 1\n",
    b'{"iaddress_width": 39, "privilege_width": 2, "full_address": true, "cache_size": 3}',
    b"required_attributes\niaddress_width_p 0x20\nimplicit_return = true\nnotime_p = false\n",
)


class ParameterFile(TextFile):
    """Files for --parameters."""

    words = ("iaddress_width", "bpred_size_p", "jtc", "nocontext", "notime_p", "true", "false", "=", ":", "data_width",
             "context_width", "f0s_width", "call_counter_size")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._parser = argparse.ArgumentParser()
        etrace.add_arguments(self._parser)
        self.seeds = [Input("", text) for text in _PARAMETERS]

    def run(self, variant: str, data: bytes) -> None:
        path = self.written(data, "parameters")
        known = self._parser.parse_args(["--parameters", str(path)])
        shared = SimpleNamespace(src_bits=None, implicit_return=None, sequential_jump=False, dialect=None, src=None)
        args = argparse.Namespace(**vars(shared), **vars(known))
        etrace.trace_options(etrace.GivenSettings.from_arguments(args).settings(), 64)


_TYPED = {
    "range": (b"1,5", b"10,+3", b"10,-3", b"7", b"+", b"-", b"", b"0x10,0x20", b"/rf 1,+5"),
    "place": (b"0x8000", b"0x8000,16", b"main", b"-1,2"),
    "mask": (b"mstatus:0x600", b"mcycle", b"x5", b"0x300:0xff", b"# a comment\nmstatus:0x10\nmip\n"),
    "verb": tuple(f"{verb} x".encode() for verb in VERBS),
}


class Typed(TextFile):
    """What is typed after a command: ranges, places, masks, verbs."""

    words = ("/r", "/f", ",", "+", "-", "main", "mstatus", "f5", "priv", "0x")

    def __init__(self) -> None:
        super().__init__()
        self._image = Image(64)
        self.seeds = [Input(kind, text) for kind, some in _TYPED.items() for text in some]

    def run(self, variant: str, data: bytes) -> None:
        text = data.decode(errors="replace")
        if variant == "range":
            _, numbers = Modifiers.split(text)
            Cursor().select(numbers, 10, 100)
        elif variant == "place":
            place_of(text, self._image)
        elif variant == "mask":
            with refused:
                masks_of([text])
            with suppress(UnicodeDecodeError):  # as it says; the command has words for it
                masks_of([], [str(self.written(data))])
        else:
            parse(text, "it.rvts", read)
