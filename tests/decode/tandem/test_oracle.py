"""The instructions of real cores, fed to the N-Trace and E-Trace encoders and decoders: the same come out again.

A tandem trace says of each instruction where it was; nothing is shared with how the other formats find that out.
"""

from collections.abc import Iterator
from functools import lru_cache

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode as decode_etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder as ETraceEncoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as ETraceOptions
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.options import Options as ETraceDecoderOptions
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, Options
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import Instruction
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.decoder import decode as decode_tandem
from tests.decode.etrace.vectors import framed
from tests.decode.tandem.corpus import TRACES, decoded, parameters_of, program_of, trace_bytes

MODES = {"HTM": EncoderOptions(), "BTM": EncoderOptions(btm=True)}
ETRACE = {
    "delta": Modes(),
    "full addresses": Modes(full_address=True),
}


@lru_cache(maxsize=2)
def program_with_roms(name: str) -> Image:
    """The ELF, and what the trace has besides: boot ROM, trampoline, user code at its virtual addresses."""
    image = program_of(name)
    decode_tandem(trace_bytes(name), image, parameters_of(name))
    return image


def items(tandem: DecodedTandem, image: Image) -> Iterator[Block | IngressTrap]:
    """What the hart would tell an encoder: blocks, and the traps between them."""
    traps = {trapped.group: trapped for trapped in tandem.index.traps}
    pcs: list[int] = []
    for group in range(len(tandem.trace)):
        if group in traps:
            yield from blocks_from_pcs(pcs, image)
            pcs = []
            taken = traps[group]
            assert taken.epc is not None and taken.handler is not None
            yield IngressTrap(taken.epc, taken.interrupt, taken.cause, taken.tval or 0, taken.handler)
        elif tandem.index.retired[group]:
            pcs.append(tandem.index.origin(group))
    yield from blocks_from_pcs(pcs, image)


def check(history: History, tandem: DecodedTandem, rest: list[int] | None = None) -> None:
    """*rest*: the last instructions, which the history may not have."""
    assert list(history.pcs()) + (rest or []) == list(tandem.history.pcs())
    assert not [event for event in history.events if event.kind in (EventKind.MISMATCH, EventKind.LOSS)]
    found, expected = (
        [(event.position, event.last_pc, event.next_pc) for event in one.events if event.kind is EventKind.TRAP]
        for one in (history, tandem.history)
    )
    assert [position for position, *_ in found] == [position for position, *_ in expected]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TRACES)
def test_n_trace(name: str, mode: str) -> None:
    tandem, image = decoded(name), program_with_roms(name)
    sent: list[bytes] = []
    encoder = Encoder(MODES[mode], sent.append)
    encoder.start(Sync.EXIT_FROM_RESET)
    last = tandem.after(len(tandem.trace) - 1).pc
    encoder.retire(list(items(tandem, image)))
    encoder.stop(Evcode.DEBUG_MODE, last)
    check(decode(b"".join(sent), image, Options(btm=mode == "BTM")), tandem)


@pytest.mark.parametrize("mode", ETRACE)
@pytest.mark.parametrize("name", TRACES)
def test_e_trace(name: str, mode: str) -> None:
    tandem, image = decoded(name), program_with_roms(name)
    parameters = Parameters(iaddress_width=image.xlen)
    packets: list[bytes] = []
    encoder = ETraceEncoder(ETraceOptions(parameters, ETRACE[mode]), packets.append)
    encoder.context(ProgramContext(3))
    encoder.start()
    encoder.retire(list(items(tandem, image)))
    encoder.stop(tandem.after(len(tandem.trace) - 1).pc)
    options = ETraceDecoderOptions(parameters, ETRACE[mode])
    history = decode_etrace(framed(packets), image, options, Encapsulation())
    rest = list(tandem.history.pcs(len(history)))
    check(history, tandem, rest)
    assert not any(map(counts, map(image.instruction, rest)))


def counts(instruction: Instruction) -> bool:
    """Whether E-Trace tells rounds of a loop with this instruction apart: these programs end in one without any."""
    return instruction.is_branch or instruction.is_uninferable
