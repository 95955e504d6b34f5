"""Captures of Control Transfer Records: what a hart would have recorded of a run, by the tests' own model of it."""

from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.controlregs.ctr.entries import CtrEntry, pack
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.capture.model import CapturedRecords, SavedAt
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.ctr_model.transfers import Kind
from tests.decode.ctr.compiled_programs import call_stack, recorded, run

_KINDS = frozenset(Kind) - {Kind.NOT_TAKEN_BRANCH}
_MODES, _RAS = 7, 1 << 7


def of_records(
    capture: Path, elf: Path, instructions: int, version: str, depth: int, *, registers: bool = True,
    calls: bool = False,
) -> Path:  # fmt: skip
    """A capture beside another one, of the same run, with the newest *depth* records in place of its trace.

    *registers*: with the registers and the memory of the other one where it ends. *calls*: RAS emulation, the calls
    that had not returned.
    """
    ran = run(build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 12)), elf, instructions)
    records = call_stack(ran, depth)[0] if calls else recorded(ran, _KINDS)[0][-depth:]
    entries = [CtrEntry((it.source or 0) | 1, it.target or 0, int(it.kind)) for it in records]
    control = _MODES | (_RAS if calls else 0)
    values = CtrRegisterValues("ctr0", version, 64, depth, control, 0, 0, ran[-1].to, 3)
    base = capture_file.load(capture)
    found = replace(
        base, encoders=(), sinks=(), traps=(), records=(CapturedRecords(0, values, pack(entries)),),
        registers=tuple(it for it in base.registers if registers and it.at is SavedAt.STOP),
        memory=tuple(it for it in base.memory if registers and it.at is SavedAt.STOP),
    )  # fmt: skip
    file = capture.with_suffix(f".{version}.{depth}.rvt")
    capture_file.save(found, file)
    return file
