"""Real programs: user code with recursion, jump tables, co-routines and returns to elsewhere, under a kernel in M mode
with time slices. What is shown is what the hart ran."""

from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.decode.ctr.decoder import DecodedRecords, decode_records
from rvtrace_gdb.decode.ctr.records import CtrRecord, RecordOptions
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.ctr_model.transfers import Kind
from tests.decode.ctr.compiled_programs import Ran, call_stack, recorded, run
from tests.helpers.amounts import sparse
from tests.transport.simulated.encoder.traces import compiled, machine_with

ALL = frozenset(Kind) - {Kind.NOT_TAKEN_BRANCH}
MARCH = ["rv64imac", "rv32imac", "rv64ima"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@cache
def executed(folder: Path, march: str, user: str = "user.c") -> tuple[Path, list[Ran]]:
    elf = compiled(folder, march, user=user)
    return elf, run(machine_with(elf), elf, 9000)


def options(kinds: frozenset[Kind], end: int | None = None) -> RecordOptions:
    return RecordOptions(frozenset(IType(kind) for kind in kinds), end=end)


def decode(elf: Path, records: list[CtrRecord], options: RecordOptions) -> DecodedRecords:
    return decode_records(records, Image.from_elf(elf), options, total=24 * len(records), idle=0)


@pytest.mark.parametrize("march", MARCH)
def test_with_all_transfers_recorded_all_is_known(folder: Path, march: str) -> None:
    elf, ran = executed(folder, march)
    records, stretches = recorded(ran, ALL)
    decoded = decode(elf, records, options(ALL, end=ran[-1].to))
    assert len(records) > 2000
    for stretch, truth in list(zip(decoded.stretches, stretches, strict=True))[1 : len(records)]:
        assert stretch.complete and list(decoded.history.pcs(stretch.first, stretch.stop)) == truth
    assert decoded.stretches[-1].complete and decoded.history.gaps == 0
    first = next(i for i, one in enumerate(ran) if one.kind in ALL)
    assert list(decoded.history.pcs()) == [one.pc for one in ran[first:] if one.retired]


@pytest.mark.parametrize("march", MARCH)
def test_a_call_stack(folder: Path, march: str) -> None:
    elf, ran = executed(folder, march)
    shown = 0
    for stop in range(300, len(ran), sparse(101)):
        records, stretches = call_stack(ran[:stop], 32)
        decoded = decode(elf, records, RecordOptions(ras=True, end=ran[stop].pc))
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
