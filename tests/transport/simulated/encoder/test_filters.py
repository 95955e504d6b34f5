"""Filters of the simulated encoder: what is traced is what the document says, for a program with traps and user mode.

What has to be in the trace is worked out here from the unfiltered list of what the hart retired.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.devices.filters import FilterUnits
from tests.helpers.amounts import crossed, long_only
from tests.transport.simulated.devices.rig import INST_FILTERS, Log, Rig, Step, start_encoder, start_sink, stored
from tests.transport.simulated.devices.test_component import CONTROL, Registers
from tests.transport.simulated.encoder.traces import INSTRUCTIONS, compiled

U, M = 0, 3
MRET = 0x3020_0073
ECALL_FROM_U, TIMER = 8, 7
FILTER, COMPARATOR = 0x400, 0x600
BY_PRIVILEGE, BY_ECAUSE, BY_INTERRUPT, BY_COMP1, BY_COMP2, BY_DTYPE, BY_DSIZE = (
    1 << n for n in (1, 2, 3, 4, 8, 24, 25)
)
EQ, NE, LT, LE, GT, GE, SIX, SEVEN = range(8)
IADDR, CONTEXT, TVAL, DADDR = range(4)

Settings = Callable[[Registers], None]


ARCHITECTURES = "rv64imac", "rv32imac"


@pytest.fixture(scope="module", params=[ARCHITECTURES[0], *long_only(*ARCHITECTURES[1:])])
def elf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("filtered"), request.param)


@pytest.fixture(scope="module")
def unfiltered(elf: Path) -> list[Step]:
    """What retires while nothing is filtered."""
    return traced(elf, EVERYTHING)[1]


def traced(
    elf: Path, set_up: Settings, *, instructions: int = INSTRUCTIONS, slice_length: int = 997
) -> tuple[list[int], list[Step]]:
    """What the trace says that retired, and what did."""
    rig = Rig(elf)
    sink, ram = rig.sink()
    encoder, te = rig.encoder(sink, filters=FilterUnits(16, 3))
    log = Log(M, 0)
    encoder.watch = log
    start_sink(ram)
    start_encoder(te, set_up=lambda: set_up(te))
    rig.run(instructions, slice_length)
    te[CONTROL] = te[CONTROL] & ~2
    te.poll(10, 8)
    return rig.pcs(stored(ram)), log.steps


def comparator(control: int, primary: int = 0, secondary: int = 0, number: int = 0) -> Settings:
    def write(te: Registers) -> None:
        base = COMPARATOR + 0x20 * number
        te[base] = control
        te[base + 0x10], te[base + 0x14] = primary & 0xFFFF_FFFF, primary >> 32
        te[base + 0x18], te[base + 0x1C] = secondary & 0xFFFF_FFFF, secondary >> 32

    return write


def one_filter(conditions: int, *, inst: int = 0, ecause: int = 0, data: int = 0, number: int = 0) -> Settings:
    def write(te: Registers) -> None:
        base = FILTER + 0x20 * number
        te[base] = 0
        te[base + 4], te[base + 8], te[base + 12], te[base + 0x18] = inst, ecause & 0xFFFF_FFFF, ecause >> 32, data
        te[base] = conditions | 1
        te[INST_FILTERS] = te[INST_FILTERS] | 1 << number

    return write


def both(*settings: Settings) -> Settings:
    def write(te: Registers) -> None:
        for setting in settings:
            setting(te)

    return write


def executed(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.trap is None]


def handlers(steps: list[Step], begins: Callable[[Step], bool]) -> Iterator[Step]:
    """Instructions from a trap for which *begins* holds to its return, nested ones included."""
    depth = 0
    for step in steps:
        if step.trap is not None:
            depth = depth + 1 if depth or begins(step) else 0
        elif depth:
            yield step
            depth -= step.word == MRET


def addresses(steps: Iterator[Step] | list[Step]) -> list[int]:
    return [step.pc for step in steps]


def test_without_filters_everything_is_traced(elf: Path) -> None:
    found, steps = traced(elf, lambda te: None)
    assert found == addresses(executed(steps))


@pytest.mark.parametrize(("slice_length", "elf"), crossed((1, 50, 5000), ARCHITECTURES), indirect=["elf"])
def test_by_privilege(elf: Path, slice_length: int) -> None:
    found, steps = traced(elf, one_filter(BY_PRIVILEGE, inst=1 << U), slice_length=slice_length)
    wanted = [step for step in executed(steps) if step.privilege == U]
    assert len(wanted) > 1000
    assert found == addresses(wanted)


def test_two_privileges_are_everything(elf: Path) -> None:
    found, steps = traced(elf, EVERYTHING)
    assert found == addresses(executed(steps))


def test_a_selected_filter_that_is_not_enabled_matches_nothing(elf: Path) -> None:
    def disabled(te: Registers) -> None:
        te[FILTER] = 0
        te[INST_FILTERS] = 1

    assert traced(elf, disabled)[0] == []


def test_an_enabled_filter_that_is_not_selected_counts_for_nothing(elf: Path) -> None:
    def not_selected(te: Registers) -> None:
        one_filter(BY_PRIVILEGE, inst=1 << U)(te)
        te[INST_FILTERS] = 0

    found, steps = traced(elf, not_selected)
    assert found == addresses(executed(steps))


def test_by_exception_cause(elf: Path) -> None:
    found, steps = traced(elf, one_filter(BY_ECAUSE, ecause=1 << ECALL_FROM_U))
    wanted = list(handlers(steps, lambda s: s.trap is not None and s.trap.cause == ECALL_FROM_U))
    assert len(wanted) > 50
    assert found == addresses(wanted)


@pytest.mark.parametrize("interrupt", [False, True])
def test_by_kind_of_trap(elf: Path, interrupt: bool) -> None:
    found, steps = traced(elf, one_filter(BY_INTERRUPT, inst=interrupt << 8))
    wanted = list(handlers(steps, lambda s: s.trap is not None and s.trap.interrupt == interrupt))
    assert len(wanted) > 50
    assert found == addresses(wanted)


def test_conditions_of_a_filter_are_anded_and_filters_are_ored(elf: Path) -> None:
    settings = both(
        one_filter(BY_PRIVILEGE | BY_ECAUSE, inst=1 << M, ecause=1 << ECALL_FROM_U),
        one_filter(BY_INTERRUPT | BY_ECAUSE, inst=1 << 8, ecause=1 << TIMER, number=15),
    )
    found, steps = traced(elf, settings)
    assert found == addresses(handlers(steps, lambda s: s.trap is not None and s.trap.cause in (ECALL_FROM_U, TIMER)))
    settings = one_filter(BY_PRIVILEGE | BY_ECAUSE, inst=1 << U, ecause=1 << ECALL_FROM_U)
    assert traced(elf, settings)[0] == [], "no handler runs in user mode"


EVERYTHING = one_filter(BY_PRIVILEGE, inst=1 << U | 1 << M)


def middle(steps: list[Step]) -> tuple[int, int]:
    """An address range inside of the code that was executed in user mode."""
    pcs = sorted({step.pc for step in executed(steps) if step.privilege == U})
    return pcs[len(pcs) // 4], pcs[3 * len(pcs) // 4]


ADDRESSES: list[tuple[int, int, int, Callable[[int, int, int], bool]]] = [
    (GE, LT, 1, lambda pc, low, high: low <= pc < high),
    (GT, LE, 1, lambda pc, low, high: low < pc <= high),
    (GE, LT, 2, lambda pc, low, high: not low <= pc < high),
    (GE, EQ, 0, lambda pc, low, high: pc >= low),
    (EQ, NE, 0, lambda pc, low, high: pc == low),
    (NE, NE, 1, lambda pc, low, high: pc not in (low, high)),
    (SEVEN, EQ, 0, lambda pc, low, high: True),
    (SIX, EQ, 0, lambda pc, low, high: False),
    (LT, SEVEN, 1, lambda pc, low, high: pc < low),
]


@pytest.mark.parametrize(("number", "elf"), crossed(range(len(ADDRESSES)), ARCHITECTURES), indirect=["elf"])
def test_by_address(elf: Path, number: int, unfiltered: list[Step]) -> None:
    p_function, s_function, mode, wanted = ADDRESSES[number]
    low, high = middle(unfiltered)
    control = p_function << 4 | s_function << 8 | mode << 12
    found, steps = traced(elf, both(comparator(control, low, high, 2), one_filter(BY_COMP1 | 2 << 5)))
    assert found == [pc for pc in addresses(executed(steps)) if wanted(pc, low, high)]


@pytest.mark.parametrize("elf", ["rv32imac"], indirect=True)
def test_bits_above_the_address_are_ignored(elf: Path, unfiltered: list[Step]) -> None:
    """Comparisons are as wide as the input."""
    low, high = middle(unfiltered)
    far = 0xDEAD << 32
    settings = both(comparator(GE << 4 | LT << 8 | 1 << 12, low | far, high | far), one_filter(BY_COMP1))
    found, steps = traced(elf, settings)
    assert found == [pc for pc in addresses(executed(steps)) if low <= pc < high]


def test_the_secondary_value_as_a_mask(elf: Path) -> None:
    settings = both(comparator(EQ << 4 | SIX << 8, 0xFFFF_FFF4, 0xC), one_filter(BY_COMP1))
    found, steps = traced(elf, settings)
    wanted = [pc for pc in addresses(executed(steps)) if pc & 0xC == 4]
    assert len(wanted) > 500
    assert found == wanted


def test_from_one_address_until_behind_another(elf: Path, unfiltered: list[Step]) -> None:
    symbols = ElfFile(elf)
    entry = symbols.symbol("trap")
    assert entry is not None
    last = next(step.pc for step in executed(unfiltered) if step.word == MRET and step.pc > entry)
    settings = both(comparator(EQ << 4 | EQ << 8 | 3 << 12, entry, last), one_filter(BY_COMP1))
    found, steps = traced(elf, settings)
    wanted, inside = [], False
    for step in executed(steps):
        inside = inside or step.pc == entry
        if inside:
            wanted.append(step.pc)
        inside = inside and step.pc != last
    assert len(wanted) > 100
    assert found == wanted


def test_a_primed_latch_traces_from_the_start_until_behind_an_address(elf: Path) -> None:
    entry = ElfFile(elf).symbol("trap")
    assert entry is not None
    settings = both(comparator(SIX << 4 | EQ << 8 | 3 << 12, 0, entry), one_filter(BY_COMP1))
    found, steps = traced(elf, settings)
    pcs = addresses(executed(steps))
    assert found == pcs[: pcs.index(entry) + 1]


def test_by_context(elf: Path) -> None:
    settings = both(comparator(CONTEXT | EQ << 4, 4242), one_filter(BY_COMP1 | BY_PRIVILEGE, inst=1 << U))
    found, steps = traced(elf, settings)
    wanted = [step.pc for step in executed(steps) if step.context == 4242 and step.privilege == U]
    assert len(wanted) > 500
    assert found == wanted


def test_by_the_address_of_data(elf: Path) -> None:
    settings = both(comparator(DADDR | DADDR << 2 | GE << 4 | LT << 8 | 1 << 12, 0x0200_0000, 0x0201_0000))
    found, steps = traced(elf, both(settings, one_filter(BY_COMP1)))
    accesses = [(step.pc, step.access) for step in executed(steps) if step.access is not None]
    wanted = [pc for pc, access in accesses if access.kind != "csr" and 0x0200_0000 <= access.address < 0x0201_0000]
    assert len(wanted) > 15, "set_timer"
    assert found == wanted


def test_by_type_and_size_of_data(elf: Path) -> None:
    stores_of_4 = one_filter(BY_DTYPE | BY_DSIZE, data=1 << 1 | 1 << 16 + 2)
    found, steps = traced(elf, stores_of_4)
    accesses = [(step.pc, step.access) for step in executed(steps) if step.access is not None]
    wanted = [pc for pc, access in accesses if access.kind == "store" and access.size == 4]
    assert len(wanted) > 15
    assert found == wanted
