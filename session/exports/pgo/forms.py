"""The forms of profiles for compilers and linkers, by name."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from rvtrace_gdb.reports.pgo.context_samples import (
    ContextProfile,
    ContextSampleProfile,
    add_inlined_calls,
    context_samples,
)
from rvtrace_gdb.reports.pgo.nested_samples import nested_samples
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts
from rvtrace_gdb.reports.pgo.samples import SampleProfile, sample_profile
from rvtrace_gdb.session.exports.pgo.addresses import autofdo_lines, unsymbolized_lines
from rvtrace_gdb.session.exports.pgo.context_binary import context_bytes
from rvtrace_gdb.session.exports.pgo.context_text import context_lines
from rvtrace_gdb.session.exports.pgo.sample_binary import sample_bytes
from rvtrace_gdb.session.exports.pgo.sample_text import sample_lines
from rvtrace_gdb.session.exports.pgo.symbol_order import hottest, section_lines
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import warning


class PgoError(RvtraceError):
    """A profile cannot be made of this trace and this program."""


class PgoProfile(NamedTuple):
    """A profile as it is written; *functions*: how many it has, None if the form has none; *notes*: about it."""

    content: bytes
    functions: int | None
    notes: list[str]


class PgoForm(NamedTuple):
    """A form: its *name*, what it is, for users, and what makes it. *has_contexts*: of what ran, by the calls that led
    to it.
    """

    name: str
    help: str
    make: Callable[[ProgramCounts], PgoProfile]
    has_contexts: bool = False


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def _samples(program: ProgramCounts) -> tuple[SampleProfile, list[str]]:
    profile, problems = sample_profile(program)
    if not profile.functions:
        raise _no_lines(program, problems)
    return profile, _sample_notes(program, profile.unknown, problems)


def _no_lines(program: ProgramCounts, problems: list[str]) -> PgoError:
    why = problems[0] if problems else "its debug information has no lines of what ran"
    return PgoError(f"{program.elf.path}: a sample profile has lines of functions: {why}")


def _sample_notes(program: ProgramCounts, unknown: int, problems: list[str]) -> list[str]:
    notes: list[str] = [warning(problem) for problem in problems]
    if unknown:
        total = sum(program.ran.values())
        notes.append(f"left out: {unknown} of {total} instructions, of which line or function are not known")
    return notes


def _llvm(program: ProgramCounts) -> PgoProfile:
    profile, notes = _samples(program)
    return PgoProfile(_text(sample_lines(profile.functions.values())), len(profile.functions), notes)


def _llvm_binary(program: ProgramCounts) -> PgoProfile:
    profile, notes = _samples(program)
    return PgoProfile(sample_bytes(profile.functions.values()), len(profile.functions), notes)


def _contexts(program: ProgramCounts) -> tuple[ContextSampleProfile, list[str]]:
    profile, problems = context_samples(program)
    if not profile.contexts:
        raise _no_lines(program, problems)
    notes = _sample_notes(program, profile.unknown, problems)
    if program.unplaced:
        notes.append(f"{program.unplaced} calls begin a context anew: which instruction made them is not known")
    return profile, notes


def _llvm_contexts(content: Callable[[ContextProfile], bytes]) -> Callable[[ProgramCounts], PgoProfile]:
    def make(program: ProgramCounts) -> PgoProfile:
        profile, notes = _contexts(program)
        add_inlined_calls(profile.contexts)
        return PgoProfile(content(profile.contexts), len({it.function for it in profile.contexts}), notes)

    return make


def _llvm_nested(program: ProgramCounts) -> PgoProfile:
    profile, notes = _contexts(program)
    functions = {it.function for it in profile.contexts}
    return PgoProfile(_text(sample_lines(nested_samples(profile).values())), len(functions), notes)


def _order(lines: Callable[[ProgramCounts], list[str]]) -> Callable[[ProgramCounts], PgoProfile]:
    def make(program: ProgramCounts) -> PgoProfile:
        found = lines(program)
        if not found:
            raise PgoError(f"{program.elf.path}: no function with a symbol ran")
        return PgoProfile(_text(found), len(found), [])

    return make


FORMS = (
    PgoForm("llvm", "LLVM's sample profile as text, for clang -fprofile-sample-use", _llvm),
    PgoForm("llvm-binary", "the same in binary", _llvm_binary),
    PgoForm(
        "llvm-cs",
        "the same with call contexts (CSSPGO), as text",
        _llvm_contexts(lambda profile: _text(context_lines(profile))),
        has_contexts=True,
    ),
    PgoForm("llvm-cs-binary", "the same in binary", _llvm_contexts(context_bytes), has_contexts=True),
    PgoForm("llvm-nested", "the same with what ran in calls nested in their callers", _llvm_nested, has_contexts=True),
    PgoForm(
        "llvm-unsymbolized",
        "counts of ranges and branches, for llvm-profgen --unsymbolized-profile",
        lambda program: PgoProfile(_text(unsymbolized_lines(program)), None, []),
    ),
    PgoForm(
        "autofdo",
        "the same for create_llvm_prof --profiler=text",
        lambda program: PgoProfile(_text(autofdo_lines(program)), None, []),
    ),
    PgoForm("symbol-order", "functions, hottest first, for ld.lld --symbol-ordering-file", _order(hottest)),
    PgoForm("section-order", "the same as input sections, for a linker script of GNU ld", _order(section_lines)),
)
"""The forms, in the order of the help."""


def form_named(name: str) -> PgoForm:
    """Return the form with a name of `FORMS`."""
    return next(form for form in FORMS if form.name == name)
