"""Programs that configure Control Transfer Records themselves, read by rvtrace at many places: all modes, all filters.

Nothing is started: `trace ctr show` reads what the program's own configuration left. The records must be those of the
model, and of what ran between them nothing wrong may be said: instructions that are shown did run there.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from tests.ctr_model.model import Event, Instruction, Model
from tests.ctr_model.programs import build, symbols
from tests.endtoend.ctr.gdb_run import HISTORY, SHOW, Expected, Shown, check
from tests.gdbext.gdb_process import GDB, GDBS, SOURCE, run_gdb
from tests.helpers.amounts import LONG
from tests.helpers.qemu10 import CPU, running

EVERYTHING = f"rv64,{CPU},sscofpmf=true"


def stops(places: Sequence[str]) -> list[str]:
    """Commands: to each of *places* in turn, and what there is to see there."""
    words = []
    for number, place in enumerate(places):
        space = " " * number
        words += [f"tbreak {place}", f"continue{space}", f"print/x $pc{space}", f"print $priv{space}"]
        words += [SHOW + space, HISTORY + space, f"print $priv + 0{space}"]
    return words


def run(elf: Path, folder: Path, places: Sequence[str], cpu: str, gdb: str = GDB) -> tuple[list[Event], dict[str, str]]:
    with running(elf, folder, cpu=cpu, logged=True) as machine:
        begin = [SOURCE, f"target remote :{machine.port}"]
        said = run_gdb(elf, [*begin, *stops(places), "tbreak done", "continue -", "disconnect"], gdb=gdb)
        return machine.events(), said


def number(text: str) -> int:
    return int(text.split()[-1], 0)


def check_stops(elf: Path, places: Sequence[str], events: Sequence[Event], said: dict[str, str]) -> int:
    """How often all that ran between two records is known."""
    at = known = 0
    for nth, place in enumerate(places):
        space = " " * nth
        pc, mode = number(said[f"print/x $pc{space}"]), number(said[f"print $priv{space}"])
        assert pc == symbols(elf)[place] and mode == number(said[f"print $priv + 0{space}"])
        at = next(n for n in range(at, len(events)) if is_at(events[n], pc))
        expected = Expected(Model(elf, "1.0"), events[:at], pc, mode)
        known += check(Shown.of(said[SHOW + space], said[HISTORY + space]), expected)
    return known


def is_at(event: Event, pc: int) -> bool:
    return isinstance(event, Instruction) and event.pc == pc


HOSTS = ["look_modes_28", "user", "trap_m", "trap_s", "supervisor", "user_again"]
GUESTS = ["look_open_62", "guest_user", "trap_vs", "trap_s", "guest", "trap_m", "guest_user_again"]
PLACES = {"modes": (HOSTS, [3, 0, 3, 1, 1, 0]), "virtual": (GUESTS, [3, 4, 5, 1, 5, 3, 4])}
CPUS = {"open": EVERYTHING, "max": "max"}
PAIRS = {("modes", "max"): GDBS[-1:], ("virtual", "open"): GDBS[:1]}
CASES = [
    pytest.param(name, cpu, *gdb.values, id=f"{name}-{cpu}-{gdb.id}")
    for name, cpu in product(PLACES, CPUS)
    for gdb in (GDBS if LONG else PAIRS.get((name, cpu), []))
]
"""Each program, each CPU and each gdb once; in the long run all of these together."""


@pytest.mark.parametrize(("name", "cpu", "gdb"), CASES)
def test_a_hart_that_stands_in_any_mode(tmp_path: Path, name: str, cpu: str, gdb: str) -> None:
    """Where state enables (QEMU's "max") or V=1 close the registers, they are read all the same; priv is put back."""
    elf = build(tmp_path, name)
    places, modes = PLACES[name]
    events, said = run(elf, tmp_path, places, CPUS[cpu], gdb)
    assert check_stops(elf, places, events, said) > 10
    assert [number(said[f"print $priv{' ' * nth}"]) for nth in range(len(places))] == modes
