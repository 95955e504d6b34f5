"""The kernel makes the steps of messages that have nothing but outcomes of branches; Python sees hardly any of them."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace import decoder as etrace
from rvtrace_gdb.decode.etrace import step as etrace_step
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.options import Options as PacketOptions
from rvtrace_gdb.decode.etrace.packet import build
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace import decoder as ntrace
from rvtrace_gdb.decode.ntrace import step as ntrace_step
from rvtrace_gdb.decode.ntrace.messages import Rcode, Sync
from rvtrace_gdb.decode.ntrace.options import Options
from tests.decode import assembler as asm
from tests.decode.kernel.histories import shape
from tests.decode.ntrace.messages import image_of, message

pytestmark = pytest.mark.skipif(kernel() is None, reason="there is no kernel to compare with")
MESSAGES = 400
LOOP = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.jal(-8, 0)]))


def counted(monkeypatch: pytest.MonkeyPatch, functions: type[Any]) -> list[object]:
    """What the step function is called with from now on."""
    calls: list[object] = []
    step: Callable[..., Any] = functions.step

    def count(self: Any, *args: Any) -> Any:
        calls.append(args)
        return step(self, *args)

    monkeypatch.setattr(functions, "step", count)
    return calls


@pytest.mark.parametrize("src_bits", [0, 3])
def test_messages(monkeypatch: pytest.MonkeyPatch, src_bits: int) -> None:
    rng = random.Random(1)
    source = (src_bits, 5 if src_bits else 0)
    hists = [1 << 30 | rng.getrandbits(30) for _ in range(MESSAGES)]
    data = message("ProgTraceSync", source, sync=Sync.EXIT_FROM_DEBUG, icnt=0, faddr=0x80)
    data += b"".join(message("ResourceFull", source, rcode=Rcode.HIST, rdata=hist) for hist in hists)
    data += message("ResourceFull", source, tstamp=1, rcode=Rcode.HIST, rdata=0b101)  # a field too many
    calls = counted(monkeypatch, ntrace_step.StepFunction)
    histories = []
    for compiled, seen in ((True, range(10)), (False, range(MESSAGES, MESSAGES + 10))):
        made = ntrace.StreamDecoder(LOOP, Options(src_bits=src_bits), split=False, compiled=compiled)
        calls.clear()
        made.feed(data)
        assert len(calls) in seen
        histories.append(shape(made.finish_one()))
    assert histories[0] == histories[1]


@pytest.mark.parametrize("predicts", [False, True])
def test_packets(monkeypatch: pytest.MonkeyPatch, predicts: bool) -> None:
    rng = random.Random(1)
    modes, encapsulation = Modes(branch_prediction=predicts), Encapsulation()
    options = PacketOptions(Parameters(bpred_size=4 * predicts), modes)
    packets = [build(3, 0, {"branch": 1, "privilege": 3, "address": 0x100}, options, modes)]
    packets += [
        build(1, None, {"branches": 0, "branch_map": rng.getrandbits(31)}, options, modes) for _ in range(MESSAGES)
    ]
    data = b"".join(map(encapsulation.framer().packet, packets))
    calls = counted(monkeypatch, etrace_step.StepFunction)
    histories, predictors = [], []
    for compiled, seen in ((True, range(10)), (False, range(MESSAGES, MESSAGES + 10))):
        made = etrace.StreamDecoder(LOOP, options, encapsulation, split=False, compiled=compiled)
        calls.clear()
        made.feed(data)
        assert len(calls) in seen
        predictors.append(bytes(made._harts[0]._tables.states))
        histories.append(shape(made.finish_one()))
    assert histories[0] == histories[1] and predictors[0] == predictors[1]
