"""Programs with a fault each: what a seeded program changes in the sources of tests/programs/explain."""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from tests.helpers.cross_compiler import HOME

FOLDER = HOME / "tests" / "programs" / "explain"
PROGRAMS = (
    "bank", "matrix", "parser", "sampler", "services", "sleeper", "sorted", "tasks", "watched", "words",
)  # fmt: skip


ENDLESS = ("sleeper",)
"""Those of them that have a main loop which never ends."""


class Mutant(NamedTuple):
    """A program in which a line is another one. *fault*: what was done to it; "" and line 0: the program as it is."""

    program: str
    fault: str
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.program}:{self.line} {self.fault}: {self.text.strip()}"

    @property
    def source(self) -> str:
        lines = (FOLDER / f"{self.program}.c").read_text().splitlines()
        if self.line:
            lines[self.line - 1] = self.text
        return "\n".join(lines) + "\n"


_REPLACED: Sequence[tuple[str, str, str]] = (
    ("no volatile", r"\bvolatile (?!\()", ""),
    ("one more", r"(for \(.*[^<])<(?![<=])", r"\1<="),
    ("not equal", r"(for \(.*[^<])<(?![<=])", r"\1!="),
    ("at least", r"> 0\b", ">= 0"),
    ("other way", r"(for \(.*)\+\+\)", r"\1--)"),
    ("steps of three", r"(for \(.*)\b(\w+)\+\+\)", r"\1\2 += 3)"),
    ("negated", r"\b(if|while) \((.+)\)( \{)?$", r"\1 (!(\2))\3"),
    ("for ever", r"\bwhile \((.+)\)( \{)?$", r"while (1)\2"),
    ("null", r"(?<=[(, ])&\w+(\[[^]]*\])?(?=[,;) ])", "0"),
    ("null", r"= (node|gone|task)(->next)?;", "= 0;"),
    ("no function", r"\{put, get, add", "{put, 0, add"),
    ("data as a function", r"\{put, get, add", "{put, (void *)values, add"),
    ("data as a function", r"\bi & 1 \? halve\b", "i & 1 ? (void *)tasks"),
    ("no function", r"\bi & 1 \? halve\b", "i & 1 ? 0"),
    ("large array", r"^    (int|char) (\w+)\[([^]]+)\];", r"    volatile \1 \2[(\3) * 60000];\n    \2[0] = 1;"),
    ("small array", r"^    (int|char) (\w+)\[([^]]+)\];", r"    \1 \2[1];"),
    ("small", r"^(#define (?:TAPS|LONGEST|N|NODES|TASKS|SERVICES|ACCOUNTS)) \d+", r"\1 2"),
    ("large", r"^(#define (?:SAMPLES|LONGEST|N|NODES)) (\d+)", r"\1 (\2 * 300)"),
    ("zero", r"\b(TAPS|ACCOUNTS|count|words)\);", "0);"),
    ("itself", r"= factor\(\)", "= product()"),
    ("itself", r"= product\(\)", "= sum()"),
    ("itself", r"return sum\(\);", "return evaluate(line);"),
    ("itself", r"return number\(\);", "return factor();"),
    ("no way back", r"mepc, %0\" ::\"r\"\(at \+ 4\)", 'mepc, %0" ::"r"(at)'),
)
_FIXED = re.compile(r"^\s*(return\b|int |unsigned |struct |char |case |default|break;|const )")


def _deleted(line: str) -> Iterator[tuple[str, str]]:
    if line.startswith("    ") and line.endswith(";") and not _FIXED.match(line):
        yield "deleted", "    " + ";" if line.startswith("        ") else "    ;"
    if re.match(r"^ {4,}(if|while) \(.+\)$", line):
        yield "deleted", "    ;"


def candidates(program: str) -> list[Mutant]:
    """All mutants of a program."""
    found = list[Mutant]()
    for number, line in enumerate((FOLDER / f"{program}.c").read_text().splitlines(), 1):
        for fault, pattern, other in _REPLACED:
            changed = re.sub(pattern, other, line, count=1)
            if changed != line:
                found.append(Mutant(program, fault, number, changed))
        found += [Mutant(program, fault, number, text) for fault, text in _deleted(line)]
    return found


def mutants(seed: int, of_each: int) -> list[Mutant]:
    """So many mutants of each program, of all faults in turn. The first of them are of different programs."""
    chosen = list[list[Mutant]]()
    for program in PROGRAMS:
        drawn = random.Random(f"{seed} {program}")
        by_fault: dict[str, list[Mutant]] = {}
        for mutant in candidates(program):
            by_fault.setdefault(mutant.fault, []).append(mutant)
        groups = list(by_fault.values())
        drawn.shuffle(groups)
        for group in groups:
            drawn.shuffle(group)
        chosen.append([it for it in chain(*zip_longest(*groups)) if it is not None][:of_each])
    return [it for it in chain(*zip_longest(*chosen)) if it is not None]
