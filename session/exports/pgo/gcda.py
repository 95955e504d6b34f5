"""GCC's counts of a source file (.gcda), for `gcc -fprofile-use`.

Only arcs that do not follow from others have counters. A function whose counts the trace does not determine is left
out: GCC optimises it as without a profile.

Source: GCC 12, gcc/gcov-io.h.
"""

import struct

from rvtrace_gdb.decode.program.dwarf_file import ERRORS
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.reports.pgo.flow_arcs import FlowFacts, FlowFunction, Undetermined
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts
from rvtrace_gdb.reports.pgo.training_options import missing_options
from rvtrace_gdb.session.exports.pgo.forms import PgoError, PgoProfile
from rvtrace_gdb.session.exports.pgo.gcov_notes import read_notes
from rvtrace_gdb.support.text import warning

_MAGIC = b"adcg"
_FUNCTION, _COUNTERS, _SUMMARY = 0x01000000, 0x01A10000, 0xA1000000


def _check_options(program: ProgramCounts, functions: list[FlowFunction]) -> None:
    """Raise PgoError if the program was built so that its lines do not tell how often blocks ran."""
    sources = {path for function in functions for lines in function.lines.values() for path, _ in lines}
    try:
        missing = missing_options(program.elf, sources)
    except BadElf as error:
        raise PgoError(str(error)) from error
    except ERRORS as error:
        raise PgoError(f"{program.elf.path}: its debug information cannot be read ({error})") from error
    if missing is None:
        raise PgoError(f"{program.elf.path}: it has no lines of {', '.join(sorted(sources))}")
    if missing:
        why = "code that was moved or copied does not tell how often blocks ran"
        raise PgoError(f"{program.elf.path}: built without {' '.join(missing)}: {why} (docs/pgo.md)")


def gcda_profile(program: ProgramCounts, notes_path: str) -> PgoProfile:
    """Return the counts of the source file that has these notes. Raises BadNotes, PgoError: nothing is determined."""
    notes = read_notes(notes_path)
    _check_options(program, notes.functions)
    facts = FlowFacts(program, notes.functions)
    problems = list(facts.problems)
    counted: list[tuple[FlowFunction, list[int]]] = []
    for function in notes.functions:
        try:
            times = facts.arc_counts(function)
        except Undetermined as why:
            problems.append(f"{function.name}: left out, its counts are not determined: {why}")
            continue
        counters = [count for count, arc in zip(times, function.arcs, strict=True) if not arc.on_tree]
        counted.append((function, counters))
    if not counted:
        reason = problems[0] if problems else "the notes have no functions"
        raise PgoError(f"{notes_path}: no counts are determined: {reason}")
    most = max((count for _, counters in counted for count in counters), default=0)
    out = bytearray(_MAGIC + notes.version + struct.pack("<II", notes.stamp, notes.checksum))
    out += struct.pack("<IIII", _SUMMARY, 8, 1, min(most, 0xFFFFFFFF))
    for function, counters in counted:
        identity = function.ident, function.lineno_checksum, function.cfg_checksum
        out += struct.pack("<IIIII", _FUNCTION, 12, *identity)
        out += struct.pack(f"<II{len(counters)}Q", _COUNTERS, 8 * len(counters), *counters)
    return PgoProfile(bytes(out) + bytes(4), len(counted), list(map(warning, problems)))
