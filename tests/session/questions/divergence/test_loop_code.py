"""Which loops wait, by code that the real compiler made of loops of each sort."""

from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.divergence.loop_code import branch_registers, is_waiting_round
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.cross_compiler import compile_program, symbol_address, symbol_size
from tests.session.board import SMALL_RAM

WAITS = {
    "flag": "while (!flag) ;",
    "masked": "while (!(*device & 0x20)) ;",
    "time": "while (cycles() < 900) ;",
    "call": "while (!ready()) ;",
    "watchdog": "while (!flag) place = 0x55;",
    "lock": "while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) ;",
    "pair": "while (flag < other) ;",
}
OTHERS = {
    "counts": "for (int i = 0; i < 9; i++) sink = i;",
    "counts_in_memory": "for (counter = 0; counter < 9; counter++) ;",
    "timeout": "for (int left = 9; left && !flag; left--) ;",
    "follows": "for (struct node *it = list; it; it = it->next) ;",
    "string": "for (const char *c = text; *c; c++) ;",
    "queue": "while (counter < 9) counter = counter + 1;",
    "sum": "while (sum(counter) < 20) ;",
}
SOURCE = """
struct node { struct node *next; } third = {0}, second = {&third}, first = {&second}, *volatile list = &first;
volatile int flag, other = 1, counter, sink, lock = 1;
volatile unsigned place, *volatile device = &place;
const char *volatile text = "a text";
unsigned long cycles(void) { unsigned long n; __asm__ volatile("csrr %0, mcycle" : "=r"(n)); return n; }
__attribute__((noinline)) int ready(void) { return *device & 4; }
__attribute__((noinline)) int sum(int a) { return counter += a + 1; }
"""


@pytest.fixture(scope="module", params=["-O0", "-Og", "-O2"])
def elf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loops")
    loops = {**WAITS, **OTHERS}.items()
    functions = [f"__attribute__((noinline)) void loop_{name}(void) {{ {body} }}\n" for name, body in loops]
    calls = "".join(f"if (which == {number}) loop_{name}();" for number, (name, _) in enumerate(loops))
    text = f"{SOURCE}{''.join(functions)}volatile int which = 99;\nint main(void) {{ {calls} return 0; }}\n"
    (folder / "loops.c").write_text(text)
    return compile_program(folder, folder / "loops.c", options=(request.param,))


@pytest.mark.parametrize("name", [*WAITS, *OTHERS])
def test_rounds(name: str, elf: Path) -> None:
    """Each round that the hart ran: from one time the branch that decides ran to the next."""
    machine, function = build(elf, memory_map=SMALL_RAM), symbol_address(elf, f"loop_{name}")
    machine.bus.write(symbol_address(elf, "which"), 4, [*WAITS, *OTHERS].index(name))
    hart, pcs = machine.hart, list[int]()
    inside = range(function, function + symbol_size(elf, f"loop_{name}"))
    main = range(symbol_address(elf, "main"), symbol_address(elf, "main") + symbol_size(elf, "main"))
    while hart.pc != function:
        hart.step()
    while hart.pc not in main and len(pcs) < 400:
        pcs.append(hart.pc)
        hart.step()
    image = Image.from_elf(elf)
    branches = {pc for pc in pcs if pc in inside and branch_registers(image, pc) is not None and pcs.count(pc) > 2}
    waits = set()
    for branch in branches:
        places = [k for k, pc in enumerate(pcs) if pc == branch]
        rounds = {tuple(pcs[a + 1 : b + 1]) for a, b in pairwise(places[1:])}
        if rounds and all(is_waiting_round(image, one) for one in rounds):
            waits.add(branch)
    if name == "timeout":  # the branch of the flag waits, that of the count does not
        assert len(waits) == 1 < len(branches)
    else:
        assert bool(waits) == (name in WAITS), (branches, waits)
