"""The traces of real cores, verified with the golden models: what docs/tandem.md lists is different, nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.models import ModelOptions, open_model
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.session.verify.masks import foreign_code, masks_of
from rvtrace_gdb.session.verify.model import Divergence, Model
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from tests.decode.tandem.corpus import RV32, RV64, TRACES, decoded, program_of
from tests.helpers.spike import needs_spike, spike_program
from tests.transport.simulated.devices.tandem_port import Ported
from tests.transport.simulated.hart.programs import build

BOOT_ROM = (0x7000_0000, 0x1000)
GROUPS = 1500  # of the longest trace, which has 8227: its Sv39, its page faults and what is different are there
PICCOLO = [name for name in TRACES if name.startswith("piccolo")]

# Registers by group, counted from 1. tdata1: Piccolo has no triggers, and a1 is read from it.
DIFFERENT = {
    "flute_rv64si-p-csr": {74: {"medeleg"}},
    "flute_rv64si-p-scall": {74: {"medeleg"}},
    "flute_rv64ui-v-add": {113: {"mstatus"}, 1051: {"mstatus"}},
    "piccolo_rv32mi-p-breakpoint": {
        55: {"tdata1"}, 56: {"a1"}, 61: {"tdata1"}, 62: {"a1"}, 67: {"tdata1"}, 68: {"a1"},
    },
}  # fmt: skip
BITS = {"medeleg": 1, "mstatus": 3 << 9}


@pytest.fixture(scope="module")
def spikes() -> Iterator[dict[int, Model]]:
    spike_program()
    options = ModelOptions(memory=(BOOT_ROM,))
    models = {parameters.xlen: open_model("spike", None, parameters, options) for parameters in (RV32, RV64)}
    try:
        yield models
    finally:
        for model in models.values():
            model.close()


def verified(name: str, model: Model) -> dict[int, set[str]]:
    """What is different, by group. The program is given as code the model does not have: then models can be shared."""
    tandem, program = decoded(name), program_of(name)
    code = [*foreign_code(tandem, program), *program.segments]
    verifier = Verifier(tandem, model, VerifyOptions(masks_of([], []), stop=GROUPS), program, code)
    found = {divergence.group + 1: named(divergence) for divergence in verifier.run()}
    assert verifier.counts.executed > 0.75 * verifier.counts.groups
    return found


def named(divergence: Divergence) -> set[str]:
    names = {11 + 0x1000: "a1"}
    for difference in divergence.differences:
        name = names.get(difference.place) or csrs.csr_name(difference.place)
        assert difference.bits == BITS.get(name, difference.bits)
    return {names.get(difference.place) or csrs.csr_name(difference.place) for difference in divergence.differences}


@pytest.mark.parametrize("name", TRACES)
def test_spike_agrees_with_real_cores(spikes: dict[int, Model], name: str) -> None:
    assert verified(name, spikes[32 if name in PICCOLO else 64]) == DIFFERENT.get(name, {})


@pytest.mark.parametrize("name", PICCOLO)
def test_the_simulated_hart_agrees_with_piccolo(name: str) -> None:
    """Flute has S mode, which the simulated hart has not."""
    model = open_model("simulated", None, RV32, ModelOptions(memory=(BOOT_ROM,)))
    assert verified(name, model) == DIFFERENT.get(name, {})


@needs_spike
@pytest.mark.parametrize("march", ["rv64imafdc", "rv32imac"])
def test_spike_agrees_with_the_simulated_hart(march: str, tmp_path: Path) -> None:
    """A trace its port made, with interrupts. Spike cannot be told scontext (it has it with S mode) and tinfo."""
    ported = Ported(build(tmp_path, "interrupts.S", march=march), extensions=march[4:].upper())
    ported.machine.run_slice(4000)
    tandem = ported.decoded()
    priv = ModelOptions(isa=f"{march}_zicsr_zifencei_zicntr", priv="mu")
    model = open_model("spike", ported.image, ported.parameters, priv)
    try:
        verifier = Verifier(tandem, model, VerifyOptions(masks_of([], [])), ported.image)
        assert list(verifier.run()) == []
    finally:
        model.close()
    assert {csrs.csr_name(regno) for regno in verifier.refused} <= {"scontext", "tinfo"}
    assert verifier.counts.executed > 3000 and verifier.counts.interrupts > 5
