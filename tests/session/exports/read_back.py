"""Exports read back, each by something that is not its writer, as figures that can be compared with what retired."""

import csv
import gzip
import json
import re
import sqlite3
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.session.session import Session
from tests.session.exports.coverage.test_page import Page
from tests.session.exports.logs.test_rvvi import events
from tests.session.exports.perf.test_exports import perf_samples, stackcollapse
from tests.session.exports.profiles.callgrind_file import callgrind_of
from tests.session.exports.profiles.pprof_file import profile_of
from tests.session.exports.profiles.test_profiles import Stacks, folded, pprof, speedscope
from tests.session.exports.timelines.dumps import Waves
from tests.session.exports.timelines.test_ctf import babeltrace
from tests.session.exports.timelines.test_timelines import Event, chrome_events, perfetto_events, slices

Lines = dict[tuple[str, int], int]
"""How often lines ran, by the name of the file without its folder, and the number."""


class ReadBack(NamedTuple):
    """What a file says. None: what its form does not have.

    *totals*: instructions by hart; *pcs*: how often each instruction ran; *functions*: instructions by function;
    *called*, *before*: how many calls of a function it has, and how often that function was running already;
    *transfers*: how often execution went from one place to another that is not the next; *entries*, *lines*: of
    coverage; *gaps*: how many.
    """

    totals: dict[int, int] | None = None
    pcs: Counter[int] | None = None
    functions: Counter[str] | None = None
    called: Counter[str] | None = None
    before: Counter[str] | None = None
    transfers: Counter[tuple[int, int]] | None = None
    entries: dict[str, int] | None = None
    lines: Lines | None = None
    gaps: int | None = None


def _times_lost(texts: Iterable[str]) -> int:
    return sum(int(said[1]) for text in texts if (said := re.search(r"lost: .*, (\d+) times?", text)))


def _of_pcs(harts: dict[int, list[int]], gaps: int | None = None) -> ReadBack:
    pcs = Counter(pc for hart in harts.values() for pc in hart)
    return ReadBack({hart: len(ran) for hart, ran in harts.items()}, pcs, gaps=gaps)


def _of_stacks(stacks: Stacks, texts: Iterable[str] = ()) -> ReadBack:
    """*texts*: what says what is lost, if no stacks do."""
    totals, functions = Counter[int](), Counter[str]()
    for stack, count in stacks.items():
        totals[int(re.sub(r"\D", "", stack[0]))] += count
        functions[stack[-1].removesuffix(" [trap]").replace("[unknown]", "[no symbol]")] += count
    gaps = _times_lost(texts or (stack[-1] for stack, count in stacks.items() if not count))
    return ReadBack(dict(totals), functions=+functions, gaps=gaps)


def _pprof(file: Path) -> ReadBack:
    data = file.read_bytes()
    return _of_stacks(pprof(data), profile_of(gzip.decompress(data)).comments)


def _perf_stacks(file: Path) -> ReadBack:
    text = file.read_text()
    stacks = {tuple(stack.split(";")): count for stack, count in stackcollapse(text).items()}
    return _of_stacks(stacks, [line for line in text.splitlines() if line.startswith("#")])


def _callgrind(file: Path) -> ReadBack:
    read = callgrind_of(file.read_bytes())
    pcs, functions = Counter[int](), Counter[str]()
    for (function, _, address, _), count in read.own.items():
        pcs[address] += count
        functions[function] += count
    assert read.total == sum(pcs.values())
    said = [re.fullmatch(r"hart (\d+): (\d+) instructions", text) for text in read.descriptions]
    totals = {int(it[1]): int(it[2]) for it in said if it}
    return ReadBack(totals, pcs, functions, gaps=_times_lost(read.descriptions))


def _perf_script(file: Path) -> ReadBack:
    lines = file.read_text().splitlines()
    transfers = Counter[tuple[int, int]]()
    for entry in (entry for line in lines if line.startswith(" ") for entry in line.split()[1:]):
        source, target = entry.split("/")[:2]
        transfers[int(source, 16), int(target, 16)] += 1
    return ReadBack(transfers=transfers, gaps=_times_lost(line for line in lines if line.startswith("#")))


def _perf_data(file: Path) -> ReadBack:
    transfers, lost, _ = perf_samples(file)
    return ReadBack(transfers=transfers, gaps=lost)


def _waves(form: str) -> Callable[[Path], ReadBack]:
    def read(file: Path) -> ReadBack:
        waves = Waves(file, form)
        moments = {int(name.removeprefix("hart")): waves.instructions(name) for name in waves.harts}
        harts = {hart: [pc for it in ran if isinstance(pc := it.levels["pc"], int)] for hart, ran in moments.items()}
        return _of_pcs(harts, sum(bool(it.levels["missing"]) for ran in moments.values() for it in ran))

    return read


def _table(file: Path) -> ReadBack:
    lines = file.read_text().splitlines()
    rows = list(csv.DictReader(lines)) if file.suffix == ".csv" else [json.loads(line) for line in lines]
    harts: dict[int, list[int]] = {}
    for row in (row for row in rows if row.get("addr")):
        harts.setdefault(int(row["hart"]), []).append(int(row["addr"], 16))
    return _of_pcs(harts, sum("trace byte" in (row.get("event") or row.get("gap") or "") for row in rows))


def _database(file: Path) -> ReadBack:
    with closing(sqlite3.connect(file)) as database:
        ask = database.execute
        return ReadBack(
            totals=dict(ask("SELECT hart, numbers - gaps FROM harts")),
            pcs=_added(ask("SELECT addr, times FROM instructions WHERE times > 0")),
            gaps=ask("SELECT count(*) FROM gaps WHERE what = 'gap'").fetchone()[0],
        )


def _added(rows: Iterable[tuple[str, int]]) -> Counter[int]:
    found = Counter[int]()
    for address, times in rows:
        found[int(address, 16)] += times
    return found


def _ctf(file: Path) -> ReadBack:
    called, before, gaps = Counter[str](), Counter[str](), 0
    for event in babeltrace(file):
        gaps += event.name == "missing"
        if event.name == "function_entry":
            of = called if event.fields["called"] == "1" else before
            of[event.fields["name"].removesuffix(" [trap]")] += 1
    return ReadBack(called=called, before=before, gaps=gaps)


def _of_events(found: list[Event]) -> ReadBack:
    called, before = Counter[str](), Counter[str]()
    for hart in {event.hart for event in found}:
        for it in slices([event for event in found if event.hart == hart]):
            (before if "entered before" in it.values else called)[it.name.removesuffix(" [trap]")] += 1
    gaps = sum(event.category == "missing" and event.phase in "Bi" for event in found)
    return ReadBack(called=called, before=before, gaps=gaps)


def _lcov(file: Path) -> ReadBack:
    entries, lines, path = dict[str, int](), Lines(), ""
    for row in file.read_text().splitlines():
        kind, _, value = row.partition(":")
        if kind == "SF":
            path = Path(value).name
        elif kind == "FNDA":
            count, name = value.split(",", 1)
            entries[name] = int(count)
        elif kind == "DA":
            line, count = value.split(",")
            lines[path, int(line)] = int(count)
    return ReadBack(entries=entries, lines=lines)


def _gcov_json(file: Path) -> ReadBack:
    files = json.loads(file.read_bytes())["files"]
    entries = {it["demangled_name"]: it["execution_count"] for one in files for it in one["functions"]}
    lines = {(Path(one["file"]).name, it["line_number"]): it["count"] for one in files for it in one["lines"]}
    return ReadBack(entries=entries, lines=lines)


def _cobertura(file: Path) -> ReadBack:
    entries, lines = dict[str, int](), Lines()
    for one in ET.parse(file).getroot().iter("class"):
        for method in one.iter("method"):
            entries[method.get("name", "")] = int(next(method.iter("line")).get("hits", ""))
        for line in one.findall("lines/line"):
            lines[Path(one.get("filename", "")).name, int(line.get("number", ""))] = int(line.get("hits", ""))
    return ReadBack(entries=entries, lines=lines)


def _coverage_page(file: Path) -> ReadBack:
    lines = Lines()
    for path, rows in Page(file.read_text()).rows.items():
        lines |= {(Path(path).name, int(number)): int(times) for number, _, times, _ in rows if times.isdecimal()}
    return ReadBack(lines=lines)


def _report_page(file: Path) -> ReadBack:
    text = file.read_text()
    said = {name: re.search(rf'id="{name}">([\d,]+)<', text) for name in ("instructions", "gaps")}
    [instructions, gaps] = [int(it[1].replace(",", "")) for it in said.values() if it]
    return ReadBack({-1: instructions}, gaps=gaps)


def _spike(file: Path) -> ReadBack:
    """The lines of `-l` have each instruction; where something is missing is a line as Spike has none."""
    text = file.read_text()
    rows = re.findall(r"^core +(\d+): 0x(\w+) \(0x\w+\) ", text, re.M)
    return _of_pcs({int(rows[0][0]): [int(pc, 16) for _, pc in rows]}, text.count("; trace byte 0x"))


def _riscv_dv(file: Path) -> ReadBack:
    return _of_pcs({-1: [int(row["pc"], 16) for row in csv.DictReader(file.read_text().splitlines())]})


def _rvvi(file: Path) -> ReadBack:
    text = file.read_text()
    _, found = events(text)
    return _of_pcs({-1: [event.pc for event in found if event.kind == "RET"]}, text.count("; trace byte 0x"))


def _tandem(file: Path) -> ReadBack:
    """A capture: read as one, by the decoder of tandem traces."""
    session = Session()
    session.open(file, None)
    return _of_pcs({-1: list(session.decoded()[0].pcs())})


READERS: dict[str, Callable[[Path], ReadBack]] = {
    "spike": _spike, "riscv-dv": _riscv_dv, "rvvi": _rvvi, "tandem": _tandem,
    "folded": lambda file: _of_stacks(folded(file.read_bytes())),
    "speedscope": lambda file: _of_stacks(speedscope(file.read_bytes())),
    "pprof": _pprof, "report-html": _report_page, "callgrind": _callgrind, "perf-script": _perf_script,
    "perf-data": _perf_data,
    "perf-stacks": _perf_stacks, "vcd": _waves("vcd"), "fst": _waves("fst"), "ctf": _ctf,
    "lcov": _lcov, "cobertura": _cobertura, "gcov-json": _gcov_json, "coverage-html": _coverage_page,
    "perfetto": lambda file: _of_events(list(perfetto_events(file.read_bytes()))),
    "chrome": lambda file: _of_events(list(chrome_events(file.read_bytes()))),
    "csv": _table, "jsonl": _table, "sqlite": _database,
}  # fmt: skip
ONE_HART = ("spike", "riscv-dv", "rvvi", "tandem")
OPTIONS = {"perfetto": ("--resolution", "0"), "chrome": ("--resolution", "0")}


def lines_of(elf: Path) -> dict[int, set[tuple[str, int]]]:
    """The source lines of each instruction, by all rows of the line table, which binutils' objdump lists, with the
    names of files without folders.

    A row is about the code up to the next one; of rows at the same address each is about the instruction there.
    """
    command = ["riscv64-unknown-elf-objdump", "--dwarf=decodedline", str(elf)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[int, set[tuple[str, int]]] = {}
    before: tuple[int, set[tuple[str, int]]] = 0, set()
    for name, line, at in re.findall(r"^(\S+) +(\d+|-) +0x([0-9a-f]+)", text, re.M):
        address = int(at, 16)
        for pc in range(before[0], max(address, before[0] + 1), 2) if before[1] else ():
            found.setdefault(pc, set()).update(before[1])
        before = address, {(name, int(line))} if line != "-" else set()
    return found
