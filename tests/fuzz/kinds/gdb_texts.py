"""What a user types for a place or a value, at the commands in gdb that take one: gdb lives, and says one clear thing.

A variant is the number of a gdb (of this machine, 16, 18) and the command. The program has C++ names.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress

from tests.fuzz.damage import mutations
from tests.fuzz.exercise import Exercise, Input
from tests.gdbext.gdb_process import ALL_GDBS, HOME, SOURCE, KeptGdb

FOLDER = HOME / "tests" / "data" / "cases" / "cpp-names"
COMMANDS = (
    "trace find", "trace goto", "trace coverage", "trace intervals", "trace diff", "trace who-wrote", "trace data",
    "trace print", "trace why", "trace start -function", "trace start -range", "trace goto -next", "trace goto -wrote",
    "trace history", "trace events", "trace", "trace note", "trace note -at 3", "complete trace find",
    "complete trace goto",
)  # fmt: skip
TEXTS = (
    "main", "ns::box::box", "'ns::add<int, long>(int, long)'", "ns::add<int, long>",
    "ns::(anonymous namespace)::hidden",
    "app.cpp:12", "'app.cpp':12", "app.cpp:main", "*0x80000000", "*main+4", "0x80000000,0x80000010", "main,+8",
    "ns::box::operator()", "ns::box::operator<", "-function main", "$pc", "&finish", "a b.c:5",
    "c:\\\\x.c:5", "main if 1",
    "sink", "sink,4", "$ra", "-before", "1,5", "-", "+", "12:3", "ns::box::operator()(int) const", "%s",
    "*", ",", "", "'", "::operator new", "::ns::add<int, long>(int, long)", "app.cpp:::main", "::~box", "::finish",
)  # fmt: skip
_TOKENS = (
    "'", '"', "<", ">", "(", ")", "[", "]", ",", ":", "::", "*", "&", "$", "-", "+", " ", "\\", "if",
    "thread 1", "main",
    "operator", "~", "@", "0x", "5", "{", "}", "\t", "é", "%n", "-line", "-source", "-p", "-qualified", "/",
    "#", ";", "=", "new", "const", "-function", "::operator",
)  # fmt: skip


class GdbTexts(Exercise):
    """Texts at the commands of a gdb that is kept."""

    def __init__(self) -> None:
        super().__init__()
        variants = [f"{number} {command}" for number in range(len(ALL_GDBS)) for command in COMMANDS]
        self.seeds = [Input(variant, text.encode()) for variant in variants for text in TEXTS]
        self._kept: dict[int, KeptGdb] = {}

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        if rng.random() < 0.1:
            return super().mutated(rng, data)
        pieces = re.findall(r"\w+|\W", data.decode(errors="replace"))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(pieces) + 1)
            pieces[at : at + rng.randrange(2)] = [rng.choice(_TOKENS)] if rng.random() < 0.8 else []
        return "".join(pieces).encode() if rng.random() < 0.95 else mutations.mutated(rng, data)

    def run(self, variant: str, data: bytes) -> None:
        number, command = int(variant[0]), variant[2:]
        text = re.sub(r"[\x00-\x1f\x7f]", " ", data.decode(errors="replace"))[:500]
        try:
            said = self._gdb(number).run([f"{command} {text}", "print 41 + 1"])
        except BaseException:
            with suppress(Exception):
                self._kept.pop(number).close()
            raise
        printed = "".join(said.values())
        assert "= 42" in printed and not re.search("Python Exception|Traceback|internal-error", printed), printed[-500:]

    def _gdb(self, number: int) -> KeptGdb:
        if number not in self._kept:
            self._kept[number] = KeptGdb(FOLDER / "app.elf", str(ALL_GDBS[number].values[0]))
            self._kept[number].run([SOURCE, f"trace open {FOLDER / 'x.rvt'}", "trace replay", "trace history"])
        return self._kept[number]

    def close(self) -> None:
        for kept in self._kept.values():
            kept.close()
        self._kept.clear()
