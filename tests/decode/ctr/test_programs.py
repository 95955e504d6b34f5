"""Real programs: user code with recursion, jump tables, co-routines and returns to elsewhere, under a kernel in M mode
with time slices. What is shown is what the hart ran, under all filters."""

from functools import cache
from itertools import product
from pathlib import Path

import pytest

from rvtrace_gdb.decode.ctr.decoder import Decoded, decode_records
from rvtrace_gdb.decode.ctr.records import Options, Record
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.ctr_model.transfers import Kind
from tests.decode.ctr.compiled_programs import TRAPS, M, Ran, U, call_stack, recorded, run
from tests.helpers.amounts import crossed, long_only, sparse
from tests.transport.simulated.encoder.traces import compiled, machine_with

ALL = frozenset(Kind) - {Kind.NOT_TAKEN_BRANCH}
CALLS = frozenset({Kind.INDIRECT_CALL, Kind.DIRECT_CALL, Kind.COROUTINE_SWAP})
FILTERS = {
    "all": ALL,
    "not taken too": frozenset(Kind),
    "no returns": ALL - {Kind.FUNCTION_RETURN},
    "no jumps": ALL - {Kind.INDIRECT_JUMP, Kind.DIRECT_JUMP, Kind.OTHER_INDIRECT_JUMP, Kind.OTHER_DIRECT_JUMP},
    "no branches": ALL - {Kind.TAKEN_BRANCH},
    "calls and returns": CALLS | {Kind.FUNCTION_RETURN},
    "calls": CALLS,
    "branches": frozenset({Kind.TAKEN_BRANCH, Kind.NOT_TAKEN_BRANCH}),
    "traps": frozenset({*TRAPS, Kind.TRAP_RETURN}),
}
MARCH = ["rv64imac", "rv32imac", "rv64ima"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@cache
def executed(folder: Path, march: str, user: str = "user.c") -> tuple[Path, list[Ran]]:
    elf = compiled(folder, march, user=user)
    return elf, run(machine_with(elf), elf, 9000)


def options(kinds: frozenset[Kind], *, hidden: bool = False, end: int | None = None) -> Options:
    return Options(frozenset(IType(kind) for kind in kinds), hidden=hidden, end=end)


def decode(elf: Path, records: list[Record], options: Options) -> Decoded:
    return decode_records(records, Image.from_elf(elf), options, total=24 * len(records), idle=0)


def check(decoded: Decoded, records: list[Record], stretches: list[list[int]]) -> int:
    """What is shown of each stretch ran. How many are whole."""
    whole = 0
    for number in range(1, len(records)):
        stretch, truth = decoded.stretches[number], stretches[number]
        pcs = list(decoded.history.pcs(stretch.first, stretch.stop))
        if stretch.complete:
            assert pcs == truth
            whole += 1
            continue
        before = pcs[: pcs.index(GAP)] if GAP in pcs else []
        assert before == truth[: len(before)]
        assert pcs[len(before) :] in ([GAP, *truth[-1:]], truth[-1:], [GAP], [])
    assert not [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]
    return whole


@pytest.mark.parametrize("march", MARCH)
def test_with_all_transfers_recorded_all_is_known(folder: Path, march: str) -> None:
    elf, ran = executed(folder, march)
    records, stretches = recorded(ran, ALL)
    decoded = decode(elf, records, options(ALL, end=ran[-1].to))
    assert len(records) > 2000
    assert check(decoded, records, stretches) == len(records) - 1
    assert decoded.stretches[-1].complete and decoded.history.gaps == 0
    first = next(i for i, one in enumerate(ran) if one.kind in ALL)
    assert list(decoded.history.pcs()) == [one.pc for one in ran[first:] if one.retired]


@pytest.mark.parametrize(
    ("name", "march"), crossed([name for name, kinds in FILTERS.items() if kinds >= set(TRAPS)], MARCH)
)
def test_filters(folder: Path, march: str, name: str) -> None:
    elf, ran = executed(folder, march)
    kinds = FILTERS[name]
    records, stretches = recorded(ran, kinds)
    decoded = decode(elf, records, options(kinds))
    assert check(decoded, records, stretches) > len(records) // 20 or name == "traps"


ONE_MODE = [(False, M, "rv64imac"), (True, M, "rv32imac"), (False, U, "rv64ima"), (True, U, "rv64imac")]
MORE_OF_ONE_MODE = [case for case in product([False, True], [M, U], MARCH) if case not in ONE_MODE]


@pytest.mark.parametrize("march", MARCH)
def test_returns_that_are_not_recorded_are_followed_where_the_code_tells(folder: Path, march: str) -> None:
    elf, ran = executed(folder, march)
    kinds = ALL - {Kind.FUNCTION_RETURN}
    records, stretches = recorded(ran, kinds)
    decoded = decode(elf, records, options(kinds))
    returns = {one.pc for one in ran if one.kind is Kind.FUNCTION_RETURN}
    over = [number for number, pcs in enumerate(stretches) if returns.intersection(pcs) and number < len(records)]
    assert sum(decoded.stretches[number].complete for number in over[1:]) > len(over) // 2


@pytest.mark.parametrize(("external", "mode", "march"), [*ONE_MODE, *long_only(*MORE_OF_ONE_MODE)])
def test_one_mode_alone(folder: Path, march: str, mode: int, external: bool) -> None:
    elf, ran = executed(folder, march)
    records, stretches = recorded(ran, ALL, [mode], external=external)
    decoded = decode(elf, records, options(ALL, hidden=True))
    whole = check(decoded, records, stretches)
    assert whole > len(records) // 2
    traps = [event for event in decoded.history.events if event.kind is EventKind.TRAP]
    assert len(traps) == len([record for record in records if record.kind in (IType.EXCEPTION, IType.INTERRUPT)])


@pytest.mark.parametrize("march", MARCH)
def test_a_call_stack(folder: Path, march: str) -> None:
    elf, ran = executed(folder, march)
    shown = 0
    for stop in range(300, len(ran), sparse(101)):
        records, stretches = call_stack(ran[:stop], 32)
        decoded = decode(elf, records, Options(ras=True, end=ran[stop].pc))
        assert not [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]
        for number, (stretch, truth) in enumerate(zip(decoded.stretches, stretches, strict=True)):
            pcs = list(decoded.history.pcs(stretch.first, stretch.stop))
            if number < len(records):
                assert pcs[-1] == records[number].source
            if number and stretch.complete and truth is not None:
                assert pcs == truth
                shown += 1
    assert shown > 100


@pytest.mark.parametrize("march", MARCH)
def test_a_wrong_elf_is_noticed_and_named(folder: Path, march: str) -> None:
    _, ran = executed(folder, march)
    other = compiled(folder, march, user="well_behaved.c")
    records, _ = recorded(ran, ALL)
    decoded = decode(other, records[-256:], options(ALL))
    found = [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]
    assert found and other.name in found[0].text
