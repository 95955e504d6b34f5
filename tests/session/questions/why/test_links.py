"""Links against tags that were carried along with what Spike executed: none may be wrong."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import FCSR, SATP, F, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction import accesses, forward
from rvtrace_gdb.decode.reconstruction.accesses import AccessLog
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState, MemoryKind, MemoryRange, StopState
from rvtrace_gdb.decode.semantics import reads, writes
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.decode.semantics.operations import STORES
from rvtrace_gdb.decode.semantics.templates import floating_sources
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.questions.why.links import Origin, ValueLink, ValueLinks
from rvtrace_gdb.session.questions.why.trace import HartRanges, TracedPast
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.spike_history import Truth, history_of, states
from tests.helpers.amounts import LONG
from tests.session.questions.why.shadow import Made, Tags, followed
from tests.transport.simulated.hart import torture
from tests.transport.simulated.hart.programs import assemble, build, with_macros
from tests.transport.simulated.hart.spike import SpikeRun, run_spike

RAM = Extent(0x8000_0000, 1 << 22)
DEPTH = 8
DOUBTFUL = -2


class Ran(NamedTuple):
    """What Spike did, and who made what of it. *asked*: questions about any register or byte, with the answers. *end*:
    the state behind it.
    """

    image: Image
    history: History
    x: Sequence[int]
    made: Sequence[Made]
    asked: "Sequence[Asked]"
    end: Truth
    extensions: Sequence[str] = "IMAFDC"

    def links(self, *, values: bool = True, from_stop: bool = False) -> ValueLinks:
        """*values*: some are known: those of the beginning, or those of the stop."""
        machine = HartMachine(self.image.xlen, self.extensions, [RAM], machine_only=True)
        memory = [(RAM[0], bytes(RAM[1])), *self.image.segments]
        known = KnownState(x=(0, *self.x[1:]), f=[0] * 32, csrs={FCSR: 0}, privilege=3, memory=memory)
        facts = HartFacts(machine, None, stop=self._stop()) if from_stop else HartFacts(machine, known)
        program = ContextImages(self.image)
        past = ReconstructedPast(self.history, program, facts) if values else None
        hart = HartRanges(0, others=False, ranges=[MemoryRange(*RAM, MemoryKind.RAM)])
        return ValueLinks(TracedPast(self.history, program, past, RegisterWriters(self.history, program), hart))


    def _stop(self) -> StopState:
        x = [self.end.x.get(number, self.x[number]) for number in range(32)]
        content = dict(memory for begin, data in self.image.segments for memory in enumerate(data, begin))
        content.update(self.end.memory)

        def read(address: int, size: int) -> bytes:
            return bytes(content.get(at, 0) for at in range(address, address + size))

        last = self.history.pc(len(self.history) - 1)
        return StopState(last, x, [self.end.f.get(number, 0) for number in range(32)], {SATP: 0}, read)


class Asked(NamedTuple):
    """Who wrote a register (0 to 63), or a byte, last before a position. *register*: whether it is one."""

    position: int
    register: bool
    place: int
    writer: int


def _workload(march: str) -> Callable[[Path], Path]:
    return lambda folder: build(folder, "start.S", with_macros(folder, "workload.c", ROUNDS=1), march=march)


def _generated(text: Callable[[int], str], march: str) -> Callable[[Path], Path]:
    return lambda folder: assemble(folder, "generated", text(int(march[2:4])), march)


def _pushes(xlen: int) -> str:
    """Zcmp, whose registers are used, and what it saved is loaded and stored in between."""
    rng, lines = Random(xlen), ["    la sp, stack", "    .option arch, -c", "    .balign 4"]
    saved = ["ra", *(f"s{number}" for number in range(12))]
    for rlist, frame in product(range(4, 16), range(4)):
        operands = rlist << 4 | frame << 2 | 2
        lines += [f"    add {it}, {rng.choice(saved)}, {rng.choice(['a0', 'a1', 'sp'])}" for it in rng.sample(saved, 5)]
        lines += [f"    lw {rng.choice(saved)}, {-4 * rng.randrange(1, 14)}(sp)", f"    .half {0xB800 | operands:#x}"]
        lines += [f"    .half {0xAC22 | rng.randrange(8) << 7 | rng.randrange(8) << 2:#x}" for _ in range(1)]
        lines += [f"    .half {0xAC62 | rng.randrange(8) << 7 | rng.randrange(8) << 2:#x}", "    .balign 4"]
        lines += [f"    s{rng.choice('bhw')} a0, {4 * rng.randrange(3)}(sp)", f"    lw a1, {4 * rng.randrange(4)}(sp)"]
        if rng.randrange(2):
            lines += [f"    .half {0xBA00 | operands:#x}"]
        else:
            lines += ["    la ra, 1f", f"    sw ra, {_saved_ra(rlist, frame)}(sp)"]
            lines += [f"    .half {rng.choice((0xBC00, 0xBE00)) | operands:#x}", "    .balign 4", "1:"]
        lines += ["    .balign 4"]
    return torture.program(iter(lines), ".zero 1024\nstack: .zero 64")


def _saved_ra(rlist: int, frame: int) -> int:
    """Where ra is, of a list of registers and further bytes, above sp: below all others (ISA manual, 27.13.1)."""
    count = 13 if rlist == 15 else rlist - 3
    return -(-count * 4 // 16) * 16 + 16 * frame - 4 * count


PROGRAMS = {
    "workload 64": (_workload("rv64imafdc"), "IMAFDC"),
    "workload 32": (_workload("rv32imac"), "IMAC"),
    "memory": (_generated(torture.memory, "rv64imafdc"), "IMAFDC"),
    "floating point": (_generated(torture.floating_point, "rv64imafdc"), "IMAFDC"),
    "pushes and pops": (_generated(_pushes, "rv32imac"), "IMA_Zca_Zcb_Zcmp_Zcmt"),
}


QUESTIONS = 60_000 if LONG else 150
"""For each program: so many chains, of up to `DEPTH` instructions, and so many single questions."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("why")


@pytest.fixture(scope="module", params=PROGRAMS)
def ran(request: pytest.FixtureRequest, folder: Path) -> Ran:
    return executed(request.param, folder)


@cache
def executed(name: str, folder: Path, skipped: int = 0) -> Ran:
    """*skipped*: so many steps at the beginning are not in the history."""
    program, extensions = PROGRAMS[name]
    elf, texts = program(folder), dict[int, str]()
    run = run_spike(elf, folder, extensions, steps=200_000, texts=texts)
    *_, (_, end, last) = states(run)
    end.apply(last)
    run = SpikeRun(run.x, run.steps[skipped:])
    history, rng = history_of(run), Random(37)
    waiting = sorted(rng.randrange(len(history)) for _ in range(QUESTIONS))
    made, asked = list[Made](), list[Asked]()
    for position, one, tags in followed(run, texts):
        made.append(one)
        while len(asked) < len(waiting) and waiting[len(asked)] == position:
            asked.append(_question(rng, position, tags))
    image, has_zcmp = Image.from_elf(elf), "Zcmp" in extensions
    image.zcm = has_zcmp  # the assembler does not say so
    names = (*"IMAC", "Zcb", "Zcmp") if has_zcmp else "IMAFDC"
    return Ran(image, history, run.x, made, asked, end, names)


def _question(rng: Random, position: int, tags: Tags) -> Asked:
    if rng.random() < 0.5 or not tags.memory:
        number = rng.randrange(1, 64)
        return Asked(position, True, number, tags.registers[number])
    at = next(at for at in iter(lambda: rng.choice(list(tags.memory)) + rng.randrange(8), None) if at in tags.memory)
    return Asked(position, False, at, tags.memory[at])


@pytest.fixture(autouse=True, scope="module")
def short_stretches() -> Iterator[None]:
    """A history is executed in many stretches, as a long one is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "STRIDE", 4096)
        patch.setattr(accesses, "_KEPT_LOGS", 64)
        yield


def _number(link: ValueLink) -> int:
    """The number of a register in the tags."""
    assert link.register is not None
    return link.register - X if link.register < F else link.register - F + 32


def _writer(link: ValueLink) -> int:
    if link.doubts:
        return DOUBTFUL
    if link.origin is Origin.INSTRUCTION:
        assert link.position is not None
        return link.position
    assert link.origin in (Origin.BEGINNING, Origin.CONSTANT), link
    return -1


def _answer(links: Sequence[ValueLink]) -> Made:
    """What the links say; CSRs, which tags are not carried for, are left out."""
    registers = {_number(it): _writer(it) for it in links if it.register is not None and it.register >= X}
    loaded = {
        at: _writer(it) for it in links if it.address is not None for at in range(it.address, it.address + it.size)
    }
    return Made(registers, loaded)


class Verdict(NamedTuple):
    """How many links were certain, doubtful, and wrong: (position, answer, truth)."""

    certain: int
    doubtful: int
    wrong: Sequence[tuple[int, Made, Made]]


def judged(ran: Ran, links: ValueLinks, chains: int) -> Verdict:
    """Follow random links from random instructions."""
    rng, wrong, certain, doubtful = Random(1234), [], 0, 0
    for _ in range(chains):
        position = rng.randrange(len(ran.history))
        for _ in range(DEPTH):
            answer, truth = _answer(links.links_of(position)), ran.made[position]
            if not _agree(answer.registers, truth.registers) or not _agree(answer.loaded, truth.loaded):
                wrong.append((position, answer, truth))
            said = [*answer.registers.values(), *answer.loaded.values()]
            doubtful += said.count(DOUBTFUL)
            certain += len(said) - said.count(DOUBTFUL)
            ways = [it for it in (*truth.registers.values(), *truth.loaded.values()) if it >= 0]
            if not ways:
                break
            position = rng.choice(ways)
    return Verdict(certain, doubtful, wrong)


def _agree(answer: Mapping[int, int], truth: Mapping[int, int]) -> bool:
    return answer.keys() == truth.keys() and all(it in (DOUBTFUL, truth[key]) for key, it in answer.items())


def test_chains(ran: Ran) -> None:
    found = judged(ran, ran.links(), QUESTIONS)
    assert not found.wrong
    assert found.doubtful < found.certain / 20


def test_any_register_and_byte(ran: Ran) -> None:
    links, doubtful = ran.links(), 0
    for it in ran.asked:
        if it.register:
            said = _writer(links.register(it.position, X + it.place if it.place < 32 else F + it.place - 32))
        else:
            (link,) = links.memory(it.position, it.place, 1)
            said = _writer(link)
        assert said in (it.writer, DOUBTFUL), it
        doubtful += said == DOUBTFUL
    assert doubtful < len(ran.asked) / 2  # behind store-conditionals of which nothing shows whether they stored


@pytest.mark.parametrize("name", ["workload 64", "workload 32"])
def test_the_stop_alone_is_known(name: str, folder: Path) -> None:
    """As where a buffer has lost the beginning: what is certain is right; what is not is doubtful, or ends."""
    ran = executed(name, folder, skipped=9000)
    links, certain, others = ran.links(from_stop=True), 0, 0
    length = len(ran.history)
    for position in Random(11).sample(range(length), 3000 if LONG else 300):
        for link in links.links_of(position):
            if link.address is None:
                others += link.origin is Origin.NO_ADDRESS
                continue
            said, truth = _writer(link), ran.made[position].loaded
            assert all(said in (DOUBTFUL, truth[at]) for at in range(link.address, link.address + link.size)), link
            certain += said != DOUBTFUL
            others += said == DOUBTFUL
    assert certain > 20
    assert others > 20


def test_registers_need_no_values(folder: Path) -> None:
    """Their links are the same, and as certain, where nothing but addresses is known; loads say that they end there."""
    ran = executed("workload 64", folder)
    known, bare = ran.links(), ran.links(values=False)
    loads = 0
    for position in Random(5).sample(range(len(ran.history)), 200):
        own = [it for it in bare.links_of(position) if it.register is not None]
        assert own == [it for it in known.links_of(position) if it.register is not None]
        ends = [it for it in bare.links_of(position) if it.register is None]
        assert all(it.origin is Origin.NO_ADDRESS for it in ends)
        assert bool(ends) == bool(ran.made[position].loaded)
        loads += len(ends)
    assert loads > 10


def _forgotten_store_data(patch: pytest.MonkeyPatch) -> None:
    whole = reads._results

    def results(op: Operation) -> Sequence[reads.OperationResult]:
        return [it._replace(registers=()) if op.name in STORES else it for it in whole(op)]

    patch.setattr(reads, "_results", results)


def _forgotten_third_operand(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reads, "floating_sources", lambda op, template: floating_sources(op, template)[:2])


def _li_writes_nothing(patch: pytest.MonkeyPatch) -> None:
    whole = writes._of_operation

    def written(op: Operation, xlen: int) -> writes.Writes:
        return writes.Writes() if op.name == "addi" and not op.rs1 else whole(op, xlen)

    patch.setattr(writes, "_of_operation", written)


def _stores_one_off(patch: pytest.MonkeyPatch) -> None:
    add = AccessLog.add

    def moved(log: AccessLog, position: int, kind: str, address: int | None, size: int) -> None:
        is_byte = kind == "store" and size == 1 and address is not None
        add(log, position, kind, address + 1 if is_byte and address is not None else address, size)

    patch.setattr(AccessLog, "add", moved)


@pytest.mark.parametrize(
    "fault", [_forgotten_store_data, _forgotten_third_operand, _li_writes_nothing, _stores_one_off]
)
def test_faults_are_seen(fault: Callable[[pytest.MonkeyPatch], None], folder: Path) -> None:
    """The comparison is one that an engine with a mistake does not pass."""
    name = "floating point" if fault is _forgotten_third_operand else "workload 64"
    ran = executed(name, folder)
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        assert judged(ran, ran.links(), 150).wrong
