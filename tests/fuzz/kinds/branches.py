"""Traces of transfers of control: NEORV32's pairs as its RTL recorded them, other formats of the same program's run."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rvtrace_gdb.decode.branches.ctxp import sources_of
from rvtrace_gdb.decode.branches.neorv32 import BEGIN, END, pairs_in_text
from rvtrace_gdb.decode.branches.tacit.encoder import TacitEncoder
from rvtrace_gdb.decode.branches.tacit.packets import BranchMode, TacitConfiguration, packet_bytes
from rvtrace_gdb.decode.branches.tacit.reader import predicting
from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import BranchPort, Capture, CapturedBranches
from rvtrace_gdb.session.formats.imports.raw_import import branches_capture
from tests.decode.branches.gem5_probe import Probe, commits_of
from tests.fuzz.kinds.trace_checks import Trace, Traces

_DATA = Path(__file__).resolve().parents[2] / "data" / "neorv32"
_PAIRS, _INSTRUCTIONS = 40, 200
_CTRL = (("CTRL", 0x531),)
KINDS = ("neorv32", "tacit", "ctxp", "gem5")


PREDICTED = "tacit-predicted"
"""The variant of TACIT in which branches are predicted, in the layout with contexts."""
HALTED = "neorv32-halted"
"""The variant of TRACER's pairs of which it is known where the hart was halted before and after them."""
_HALTS = ((BEGIN, 0x64), (END, 0x142))


class Branches(Traces):
    """All kinds."""

    def __init__(self) -> None:
        super().__init__({kind: branches_of(kind) for kind in (*KINDS, PREDICTED, HALTED)})


def branches_of(kind: str) -> Trace:
    """A trace of this kind."""
    image = Image.from_elf(_DATA / "traced.elf")
    predicted = kind == PREDICTED
    registers = {"neorv32": _CTRL, HALTED: _CTRL + _HALTS, PREDICTED: predicting(1024)}.get(kind, ())
    port = BranchPort("it", {PREDICTED: "tacit", HALTED: "neorv32"}.get(kind, kind), registers)
    made: dict[str, Callable[[], bytes]] = {"ctxp": _ctxp, "gem5": partial(_gem5, image)}
    made |= dict.fromkeys(("neorv32", HALTED), _neorv32)
    data = made.get(kind, partial(_tacit, image, predicted=predicted))()
    return Trace(data, ContextImages(image), port, kind == "neorv32")


def _ctxp() -> bytes:
    """Some events, the first of which are what the program does."""
    lines = (
        "SYNC::0x64", "CALL:0x68:0xe4 @ 3", "CALL:0xee:0x11a @ 9", "BRANCH_NOTTAKEN:0x11c:0x120 @ 11",
        "MEMWRITE_4:0x80000010:0x5", "CALL:0x12c:0x11a @ 15", "BRANCH_TAKEN:0x11c:0x146", "RETURN:0x146:0x130 @ 20",
        "INTERRUPT:0x132:0x174 @ 24", "OVERFLOW::", "SYNC::0x110 @ 1", "CONTEXT::0x3", "WALLCLOCK::0x99",
    )  # fmt: skip
    text = "HDR:format=accemic//ctxp-txt,ver=1\n" + "".join(f"#0:{line}\n" for line in lines)
    return sources_of(text.encode())[0]


def _neorv32() -> bytes:
    return pairs_in_text((_DATA / "pairs.txt").read_bytes())[: 8 * _PAIRS]


def _tacit(image: Image, *, predicted: bool) -> bytes:
    lines = gzip.decompress((_DATA / "neorv32.tracer0.log.gz").read_bytes()).decode().splitlines()[:_INSTRUCTIONS]
    mode = BranchMode.PREDICT if predicted else BranchMode.TARGET
    encoder = TacitEncoder(TacitConfiguration(mode), has_context=predicted)
    packets = encoder.packets_of(blocks_from_pcs([int(line.split()[2], 16) for line in lines], image))
    return b"".join(map(packet_bytes, [*packets, *encoder.stop()]))


def _gem5(image: Image) -> bytes:
    lines = gzip.decompress((_DATA / "neorv32.tracer0.log.gz").read_bytes()).decode().splitlines()[:_INSTRUCTIONS]
    probe = Probe(period=50)
    items = list(blocks_from_pcs([int(line.split()[2], 16) for line in lines], image))
    for commit in commits_of(items, modes=False):
        probe.commit(commit)
    return probe.end()


def branches_capture_of(kind: str) -> Capture:
    """The same as a capture."""
    trace = branches_of(kind)
    assert isinstance(trace.trace_options, BranchPort)
    captured = CapturedBranches(0, trace.trace_options, trace.data, trace.wrapped)
    return branches_capture("x.bin", [captured], trace.program.base)
