"""What is known of a run whose trace has addresses alone, as a tandem trace: against the trace of the same run that the
simulated hart's tandem port made, and held against the model.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from rvtrace_gdb.console.models import ModelOptions, open_model
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import GPR, FullRegister, TandemParameters
from rvtrace_gdb.session.past.as_tandem import TandemOfPast
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.verify.masks import masks_of
from rvtrace_gdb.session.verify.model import Divergence, Model, ModelStep
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from rvtrace_gdb.support.extents import Extent
from tests.helpers.amounts import LONG, thorough
from tests.session.past.executed_past import ExecutedPast
from tests.transport.simulated.devices.tandem_port import Ported
from tests.transport.simulated.hart.programs import build, with_macros

RAM = Extent(0x8000_0000, 1 << 22)
LONGEST = 60_000 if LONG else 8_000
PROGRAMS = ("interrupts.S", "workload.c")


class Traced(NamedTuple):
    """A run: *told*, the trace of its tandem port; *known*, what is known without."""

    image: Image
    told: DecodedTandem
    known: DecodedTandem
    parameters: TandemParameters


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("as-tandem")


@cache
def traced(folder: Path, program: str, *, zeroed: bool = False) -> Traced:
    """*zeroed*: it is known that RAM outside of the program was 0."""
    sources = [program] if program.endswith(".S") else ["start.S", with_macros(folder, program, ROUNDS=1)]
    ported = Ported(build(folder, *sources, march="rv64imac"), extensions="IMAC")
    hart = ported.hart
    x = list(hart.x)
    ended: list[int] = []
    ported.machine.exited = ended.append
    while not ended and hart.instret < LONGEST:
        ported.machine.run_slice(1_000)
    told = ported.decoded()
    memory = [*([(RAM[0], bytes(RAM[1]))] if zeroed else []), *ported.image.segments]
    beginning = KnownState(x=x, f=[0] * 32, privilege=3, memory=memory)
    forward = Forward(told.history, ported.image, HartMachine(64, "IMAC", [RAM], machine_only=True), beginning)
    past = cast(Past, ExecutedPast(forward, told.history, 0))
    encoder = TandemOfPast(past, ContextImages(ported.image), supervisor=False)
    known = decode(b"".join(encoder.pieces()), ported.image, encoder.parameters)
    return Traced(ported.image, told, known, encoder.parameters)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_value_is_that_of_the_tandem_port(program: str, folder: Path) -> None:
    """Registers, and what was stored, after every instruction; most are known."""
    run = traced(folder, program)
    assert list(run.known.history.pcs()) == list(run.told.history.pcs()) and not run.known.index.breaks
    asked = known = 0
    for position in range(1, len(run.told.history), 5):
        mine, true = (it.after(it.group_of(position) - 1) for it in (run.known, run.told))
        for number in range(1, 32):
            value = mine.x(number)
            asked, known = asked + 1, known + (value is not None)
            assert value in (None, true.x(number)), (position, f"x{number}")
        for _, store in run.told.stored(run.told.group_of(position)):
            stored = run.known.after(run.known.group_of(position)).memory(store.address, store.size)
            assert store.value is not None
            wanted = store.value.to_bytes(store.size, "little")
            assert all(byte in (None, true) for byte, true in zip(stored, wanted, strict=True))
    assert known > 0.9 * asked


class Fault(NamedTuple):
    """Bit 5 of a register is wrong behind the instruction at a position."""

    position: int
    register: int


def verified(run: Traced, trace: DecodedTandem, fault: Fault | None = None) -> tuple[Verifier, list[Divergence]]:
    parameters = trace.trace.parameters
    model = open_model("simulated", run.image, parameters, ModelOptions())
    held = model if fault is None else cast(Model, Faulty(model, fault))
    stop = None if fault is None else trace.group_of(fault.position) + 1
    verifier = Verifier(trace, held, VerifyOptions(masks_of([]), stop=stop), run.image)
    try:
        return verifier, list(verifier.run())
    finally:
        model.close()


@thorough("test_each_value_is_that_of_the_tandem_port")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_verdict_is_that_of_the_tandem_trace(program: str, folder: Path) -> None:
    """No divergence in either; most register writes are compared, the others are counted."""
    run = traced(folder, program)
    (told, told_found), (known, known_found) = verified(run, run.told), verified(run, run.known)
    assert not told_found and not known_found
    assert known.counts.instructions == told.counts.instructions and known.counts.interrupts == told.counts.interrupts
    assert told.counts.unknown == 0 and known.counts.stores > 0.9 * told.counts.stores
    written = sum(GPR < it.regno < GPR + 32 for it in elements(run.told))
    reported = sum(GPR < it.regno < GPR + 32 for it in elements(run.known, skip=1))
    assert reported + known.counts.unknown == written and reported > 0.9 * written


def elements(trace: DecodedTandem, skip: int = 0) -> Iterator[FullRegister]:
    """Yield the registers that instructions write."""
    for group in range(len(trace.trace)):
        found = trace.trace.elements(group)
        if trace.index.retired[group]:
            yield from (it for it in found if isinstance(it, FullRegister))


class Faulty:
    """A model that computes a wrong value once."""

    def __init__(self, model: Model, fault: Fault) -> None:
        self._model, self._fault, self._steps = model, fault, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def step(self) -> ModelStep:
        step = self._model.step()
        self._steps += 1
        if self._steps != self._fault.position + 1:
            return step
        register = self._fault.register
        value = (self._model.read_register(register) or 0) ^ 0x20
        self._model.write_register(register, value)
        return step._replace(registers={**step.registers, register: value})


def test_a_wrong_value_of_the_model_is_found_at_its_instruction(folder: Path) -> None:
    run = traced(folder, "workload.c")
    length = min(len(run.told.history), 4000)
    for start in range(100, length, length // 3):
        fault = next(filter(None, (fault_at(run, position) for position in range(start, length))))
        found = [next(iter(verified(run, trace, fault)[1])) for trace in (run.told, run.known)]
        places = [(it.position, it.differences[0].place) for it in found]
        assert places == [(fault.position, fault.register)] * 2


def fault_at(run: Traced, position: int) -> Fault | None:
    """Return a fault in what the instruction at a position writes; None: it writes no register."""
    elements = run.told.trace.elements(run.told.group_of(position))
    return next((Fault(position, it.regno) for it in elements if isinstance(it, FullRegister)), None)
