"""Runs of programs with and without faults on the simulated hart: a capture of each, and what the hart itself says."""

from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import HartBlock
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import compile_program
from tests.helpers.example_captures import RAM
from tests.session.board import Board
from tests.session.questions.explain.mutants import ENDLESS, FOLDER, Mutant
from tests.session.questions.explain.observer import CodeSymbols, Observer

BUFFER = 1 << 20
RUN = 60_000
"""How many instructions run, and how many after that, to see whether it goes on."""


_ETRACE = """[component.etrace]
iaddress_width = 64
ecause_width = 5
bpred_size = 6
cache_size = 5
return_stack_size = 5
f0s_width = 1
iret_ext = true
support = "standard"

[[component]]
name = "ram0"
"""


def described(target: Board, size: int, *, etrace: bool) -> Context:
    """The context of requests about a target; *etrace*: with the parameters of its encoder, as `rvtrace sim` writes
    them.
    """
    context = target.describe(size=size, extra=RAM)
    if etrace:
        file = Path(context.target_file or "")
        file.write_text(file.read_text().replace('[[component]]\nname = "ram0"\n', _ETRACE))
    return context


class Observed(NamedTuple):
    """A run: its capture, and what went wrong first, by the names of `trace explain`, or "sane"."""

    mutant: Mutant
    elf: Path
    capture: Path
    truth: str
    happened: tuple[str, ...]


class _Later(Observer):
    """Notes only which addresses run."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer.hart, observer.symbols)
        self.addresses = set[int]()

    def retired(self, block: HartBlock) -> None:
        self.addresses.add(block.pc)


def compiled(folder: Path, mutant: Mutant, *options: str, march: str = "rv64imac_zicsr") -> Path | None:
    """The program of a mutant, None: it is none."""
    source = folder / f"{mutant.program}.c"
    source.write_text(mutant.source)
    try:
        return compile_program(folder, source, march=march, options=(f"-I{FOLDER}", "-w", *options))
    except AssertionError:
        return None


def observed(
    folder: Path, mutant: Mutant, *options: str, etrace: bool = False, run: int = RUN, march: str = "rv64imac_zicsr"
) -> Observed | None:
    """Run a mutant. None: it is no program."""
    elf = compiled(folder, mutant, *options, march=march)
    if elf is None:
        return None
    memory = MemoryMap(ram_size=1 << 20, trace_ram_size=BUFFER)
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=memory, formats=formats)
    machine.halt_at_start()
    target, hart = Board(machine, elf, folder, registers=True), machine.hart
    session, context = Session(target.connect, {}), described(target, BUFFER, etrace=etrace)
    session.start(context, {"timestamps": True, **({"format": "etrace"} if etrace else {})})
    observer = hart.witness = Observer(hart, CodeSymbols(elf))
    observer.endless = mutant.program in ENDLESS
    target.run(run)
    capture = elf.with_suffix(".rvt")
    session.save(capture, context)
    session.close()
    later = hart.witness = _Later(observer)
    waiting = hart.waiting
    target.run(run)
    hart.waiting = waiting or hart.waiting
    truth = observer.conclude(frozenset(later.addresses))
    return Observed(mutant, elf, capture, truth, tuple(observer.happened))
