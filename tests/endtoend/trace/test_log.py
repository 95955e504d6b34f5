"""Real gdb-multiarch, real openocd, simulated target: `trace log` is what a real dprintf printed while the program ran,
row for row, and `trace calls-of` has what a real `finish` said.
"""

import re

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import HOME, compile_program

PROGRAM = HOME / "tests" / "programs" / "logged.c"
LINE = 1 + PROGRAM.read_text().splitlines().index("        total ^= ch;")
FACT, LOOP = "n,first.name,&first,second.d", "i,total,text[i % 5],ratio,big"
PRINTED = {
    "fact": f'"F %d %s %p %f\\n",{FACT}',
    f"logged.c:{LINE}": f'"L %d %#x %c %.3e %lld\\n",{LOOP}',
}
FINISHED = ("make", "bignode", "half", "third", "low", "next_color", "follow", "wide")
BUILDS = (("rv64gc", "-Og"), *long_only(("rv32gc", "-O0")))
LOGGED = [f"trace log {where} {texts} 1,200" for where, texts in PRINTED.items()]
QUERY = 'trace sql -log fact "n, first.name, $sp" -calls-of wide SELECT n, "first.name" LIKE \'%"first"\' FROM log'
PAGE = "trace log fact n, $_strlen(first.name) + n"


@pytest.fixture(scope="module", params=BUILDS, ids=list(map(" ".join, BUILDS)))
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What gdb printed: while the program ran, and of its past."""
    folder, (march, level) = tmp_path_factory.mktemp("log"), request.param
    elf = compile_program(folder, PROGRAM, march=march, options=(level, "-fno-inline", "-fno-ipa-pure-const"))
    with Rig(elf, folder / "rig") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        commands += ["set trust-readonly-sections on", "trace connect", "break finish"]
        commands += [f"dprintf {where},{texts}" for where, texts in PRINTED.items()]
        commands += ["trace start", *(f"tbreak {it}" for it in FINISHED)]
        for number in range(len(FINISHED)):
            commands += [f"continue{' ' * number}", f"finish{' ' * number}"]
        commands += [f"continue{' ' * len(FINISHED)}", "trace goto end", *LOGGED, "output $pc", PAGE, "output  $pc"]
        commands += [f"trace calls-of {it}" for it in FINISHED]
        commands += [QUERY]
        found = run_gdb(elf, commands)
    return {**found, "elf": str(elf)}


@pytest.mark.parametrize(("where", "letter"), list(zip(PRINTED, "FL", strict=True)))
def test_the_rows_are_what_dprintf_printed(said: dict[str, str], where: str, letter: str) -> None:
    live = [line for name, text in said.items() if re.match(r"continue|finish", name) for line in text.splitlines()]
    printed = [line for line in live if line.startswith(f"{letter} ")]
    assert len(printed) == {"F": 5, "L": 40}[letter]
    [rows] = (text for name, text in said.items() if name.startswith(f"trace log {where} \""))
    assert [line.split("\t", 2)[2].split(":\t")[1] for line in rows.splitlines()] == printed


def test_a_query_has_what_dprintf_printed(said: dict[str, str]) -> None:
    live = [line for name, text in said.items() if re.match(r"continue|finish", name) for line in text.splitlines()]
    printed = [line.split()[1:3] for line in live if line.startswith("F ")]
    rows = [line.split() for line in said[QUERY].splitlines()[1:]]
    assert rows == [[n, "1"] for n, name in printed if name == "first"] and len(rows) == 5


def test_a_call_has_what_finish_said(said: dict[str, str]) -> None:
    finished = [re.search(r"Value returned is \$\d+ = (.*)", said[f"finish{' ' * n}"]) for n in range(len(FINISHED))]
    stops = [re.search(r"(\w+) \((.*?)\) at ", said[f"continue{' ' * n}"], re.DOTALL) for n in range(len(FINISHED))]
    for value, stop in zip(finished, stops, strict=True):
        assert value is not None and stop is not None
        (row,) = said[f"trace calls-of {stop[1]}"].splitlines()
        arguments = re.sub(r"(\w+)=\1@entry=", r"\1=", " ".join(stop[2].split()))
        call = row.split("\t")[2]
        assert re.sub(r"\([\w *]+\) (?=0x)", "", call) == re.sub(
            r"\([\w *]+\) (?=0x)", "", f"{stop[1]}({arguments}) = {value[1]}"
        )


def test_what_gdb_alone_understands_is_evaluated_by_gdb(said: dict[str, str]) -> None:
    """A function of gdb's own; gdb is where it was afterwards."""
    texts = [line.split(":\t")[1] for line in said[PAGE].splitlines()]
    assert texts == [f"n = {n}, $_strlen(first.name) + n = {5 + n}" for n in (5, 4, 3, 2, 1)]
    assert said["output  $pc"] == said["output $pc"] != ""
