"""Sample profiles with call contexts: against a call stack that is made of what a stepped hart ran, and the lines that
llvm-symbolizer has; and what llvm-profdata and clang make of them.
"""

import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from tests.helpers.cross_compiler import HOME, symbol_address
from tests.reports.coverage.traced import retired
from tests.reports.pgo.naive_contexts import NaiveContexts, instructions
from tests.session.board import board
from tests.session.exports.pgo.rebuilt import Traced, built, linked, run

SOURCES = [HOME / "tests" / "programs" / "contexts" / f"{name}.c" for name in ("main", "other")]
_HEAD = re.compile(r"\[(.*)\]:(\d+):(\d+)")


class Interrupted:
    """A program with an interrupt every now and then: the addresses that the hart retires, step by step, and a capture
    of its trace.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.elf = linked(folder, folder / "contexts.elf", SOURCES)
        self.capture = folder / "contexts.rvt"
        self.pcs: list[int] = []
        target = board(folder, self.elf)
        session, context = Session(target.connect, {}), target.describe()
        session.start(context)
        machine = target.machine
        machine._control.resume()
        machine._settle_components()
        while machine.hart.pc != symbol_address(self.elf, "done"):
            pc, before = machine.hart.pc, machine.hart.instret
            machine.hart.step()
            if machine.hart.instret != before:
                self.pcs.append(pc)
            assert len(self.pcs) < 10_000
        machine._control.halt(DebugCause.HALTREQ)
        session.stop()
        session.save(self.capture, context)

    def written(self, form: str) -> Path:
        out = self.folder / form
        if not out.exists():
            assert main(["pgo", str(self.capture), "--to", form, "-o", str(out), "--quiet"]) == 0
        return out


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    return Interrupted(tmp_path_factory.mktemp("contexts"))


class Lines:
    """The source frames of addresses, as llvm-symbolizer has them: the innermost first."""

    def __init__(self, elf: Path, pcs: Sequence[int]) -> None:
        plain = elf.with_suffix(".plain")  # with symbols it takes labels of the assembler for functions
        run("llvm-objcopy-19", "--wildcard", "--strip-symbol=*", str(elf), str(plain))
        words = ["llvm-symbolizer-19", "--obj", str(plain), "--output-style=JSON", "--inlines", *map(hex, pcs)]
        found = json.loads(subprocess.check_output(words))
        self._frames = {int(it["Address"], 16): it["Symbol"] for it in found}

    def at(self, pc: int) -> list[tuple[str, str]]:
        """The function and the place of each frame; none if a line is not known."""
        frames = self._frames[pc]
        if not all(it["Line"] for it in frames):
            return []
        return [(it["FunctionName"], _place(it["Line"] - it["StartLine"], it["Discriminator"])) for it in frames]

    def duplication(self, pc: int) -> int:
        """How often an instruction stands for itself."""
        raw = self._frames[pc][0]["Discriminator"]
        return _first(raw >> 1 if raw & 1 else raw >> 7) or 1


def _place(offset: int, discriminator: int) -> str:
    base = _first(discriminator)
    return f"{offset}.{base}" if base else str(offset)


def _first(raw: int) -> int:
    return 0 if raw & 1 else raw >> 1 & 0x1F


Samples = dict[str, dict[str, int]]
Calls = dict[str, dict[str, dict[str, int]]]


def expected(ran: Interrupted, naive: NaiveContexts) -> tuple[Samples, Calls, Counter[str]]:
    """By context: how often its places ran, and what they called; and how often it was entered."""
    lines = Lines(ran.elf, sorted({*ran.pcs, *(start for _, start in naive.entries)}))

    def callers(sites: tuple[int, ...]) -> str:
        text = ""
        for site in sites:
            frames = lines.at(site)
            text = text + "".join(f"{name}:{place} @ " for name, place in reversed(frames)) if frames else ""
        return text

    def where(context: tuple[tuple[int, ...], int], pc: int) -> tuple[str, str]:
        *outer, (name, place) = reversed(lines.at(pc))
        return callers(context[0]) + "".join(f"{it[0]}:{it[1]} @ " for it in outer) + name, place

    body: Samples = defaultdict(lambda: defaultdict(int))
    calls: Calls = defaultdict(lambda: defaultdict(Counter))
    heads: Counter[str] = Counter()
    for context, counts in naive.ran.items():
        own: Samples = defaultdict(dict)
        for pc, times in counts.items():
            if lines.at(pc):
                text, place = where(context, pc)
                own[text][place] = max(own[text].get(place, 0), times * lines.duplication(pc))
        for text, places in own.items():
            for place, times in places.items():
                body[text][place] += times
        for (site, callee), times in naive.calls.get(context, {}).items():
            if lines.at(site) and lines.at(callee):
                text, place = where(context, site)
                calls[text][place][lines.at(callee)[-1][0]] += times
    for (sites, start), times in naive.entries.items():
        if lines.at(start):
            heads[callers(sites) + lines.at(start)[-1][0]] += times
    return body, calls, heads


class Shown(NamedTuple):
    """A context of a profile, with the counts and the calls of its places."""

    total: int
    entries: int
    body: dict[str, int]
    calls: dict[str, dict[str, int]]


def shown(text: str) -> dict[str, Shown]:
    """The contexts of a profile."""
    found = {}
    for block in re.split(r"\n(?=\[)", text.strip()):
        head, *rows = block.splitlines()
        context, total, entries = _HEAD.fullmatch(head).groups()  # type: ignore[union-attr]
        found[context] = one = Shown(int(total), int(entries), {}, {})
        for row in rows:
            place, count, *calls = row.split()
            one.body[place.rstrip(":")] = int(count)
            if calls:
                pairs = (it.rsplit(":", 1) for it in calls)
                one.calls[place.rstrip(":")] = {name: int(times) for name, times in pairs}
    return found


def test_contexts_are_those_of_what_ran(ran: Interrupted) -> None:
    """Of inlined functions the call has no instruction: its count is that of the first place inside."""
    naive = NaiveContexts(ran.elf, ran.pcs, symbol_address(ran.elf, "on_timer"))
    body, calls, heads = expected(ran, naive)
    found = shown(ran.written("llvm-cs").read_text())
    inlined = [context for context in body if " @ " in context and not heads[context]]
    for context in sorted(inlined, key=lambda it: it.count(" @ "), reverse=True):
        caller, _, name = context.rpartition(" @ ")
        caller, _, place = caller.rpartition(":")
        first = min(body[context], key=lambda it: tuple(map(int, it.split("."))))
        body[caller][place] += body[context][first]
        calls[caller][place][name] += body[context][first]
    assert {name: {place: times for place, times in it.body.items() if times} for name, it in found.items()} == body
    assert {context: it.calls for context, it in found.items() if it.calls} == calls
    assert {context: it.entries for context, it in found.items() if it.entries} == heads
    assert inlined and "on_timer:1 @ counted" in found and heads["on_timer"] > 3
    assert any("fib:" in it and it.endswith("@ fib") for it in found)
    assert any(it.endswith(" @ last") for it in found) and heads["last"]  # one jump, and two


def test_a_switch_has_its_targets(ran: Interrupted, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the jump through the table of `kind_of`, in the report and in each form with branches."""
    code = instructions(ran.elf)
    [jump] = {pc for pc in ran.pcs if code[pc].mnemonic == "jr"}
    ways: Counter[int] = Counter()
    waiting = inside = False
    for pc in ran.pcs:
        inside |= pc == symbol_address(ran.elf, "on_timer")
        if waiting and not inside:
            ways[pc] += 1
            waiting = False
        waiting |= pc == jump
        inside &= code[pc].mnemonic != "mret"
    assert len(ways) == 6
    assert main(["report", str(ran.capture), "branches", "--top", "0", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out)["branches"] if row.get("flow") == "jump"]
    assert {int(row["to"]["addr"], 16): (row["taken"], row["not-taken"]) for row in rows} == {
        target: (times, ways.total() - times) for target, times in ways.items()
    }
    base = 0x8000_0000
    lines = {f"{jump - base:x}->{target - base:x}:{times}" for target, times in ways.items()}
    assert lines <= set(ran.written("autofdo").read_text().splitlines())
    assert lines <= set(ran.written("llvm-unsymbolized").read_text().splitlines())
    out = ran.folder / "callgrind"
    assert main(["export", str(ran.capture), "--to", "callgrind", "-o", str(out), "--quiet"]) == 0
    jumps = re.findall(rf"^jump=(\d+) (0x[0-9a-f]+) \d+\n{jump:#x} ", out.read_text(), re.M)
    assert {int(target, 16): int(times) for times, target in jumps} == ways
    assert main(["export", str(ran.capture), "--to", "perf-script", "-o", str(out), "--quiet"]) == 0
    assert {target: out.read_text().count(f"{jump:#x}/{target:#x}/") for target in ways} == ways


def test_llvm_profdata_reads_and_merges_them(ran: Interrupted, tmp_path: Path) -> None:
    text, binary = ran.written("llvm-cs"), ran.written("llvm-cs-binary")
    listed = [
        run("llvm-profdata-19", "show", "--sample", "--detailed-summary", "--all-functions", str(file))
        for file in (text, binary)
    ]
    assert listed[0] == listed[1] and "fib" in listed[0]
    merged = tmp_path / "merged"
    run("llvm-profdata-19", "merge", "--sample", "--text", str(text), str(binary), "-o", str(merged))
    once, twice = (shown(file.read_text()) for file in (text, merged))
    assert twice == {
        context: Shown(2 * it.total, 2 * it.entries, _twice(it.body), {at: _twice(of) for at, of in it.calls.items()})
        for context, it in once.items()
    }


def _twice(counts: dict[str, int]) -> dict[str, int]:
    return {name: 2 * times for name, times in counts.items()}


def test_nested_calls_are_those_of_the_contexts(ran: Interrupted, tmp_path: Path) -> None:
    """LLVM makes the same of contexts, but for what another unit calls, and for totals: its have no calls."""
    theirs = tmp_path / "theirs"
    words = ("--convert-sample-profile-layout=nest", str(ran.written("llvm-cs")), "-o", str(theirs))
    run("llvm-profdata-19", "merge", "--sample", "--text", *words)
    mine = tmp_path / "mine"
    run("llvm-profdata-19", "merge", "--sample", "--text", str(ran.written("llvm-nested")), "-o", str(mine))
    found, other = _functions(mine.read_text()), _functions(theirs.read_text())
    assert found.pop("scaled") and "scaled" not in other
    assert found == other and " fib:" in found["main"]


def _functions(text: str) -> dict[str, str]:
    """What is in functions, without totals."""
    blocks = (block.partition("\n") for block in re.split(r"\n(?! )", text.strip()))
    return {head.split(":")[0]: re.sub(r"(\w+):\d+$", r"\1:", rest, flags=re.M) for head, _, rest in blocks}


def test_callers_have_their_own_copies(tmp_path: Path) -> None:
    """What each caller wants retires less than what all want together, at least 5 %; from the binary form, too."""
    traced, again = Traced("stages", tmp_path), tmp_path / "again"
    again.mkdir()
    after: dict[str, int] = {}
    for form in ("llvm", "llvm-nested", "llvm-cs", "llvm-cs-binary"):
        out = tmp_path / form
        assert main(["pgo", str(traced.capture), "--to", form, "-o", str(out), "--quiet"]) == 0
        hot = ("-mllvm", "-profile-summary-cutoff-hot=999900") if "cs" in form else ()
        after[form] = len(retired(built("stages", again, f"-fprofile-sample-use={out}", *hot)))
    assert after["llvm"] <= 0.95 * len(traced.pcs)
    assert after["llvm-nested"] <= 0.95 * after["llvm"]
    assert after["llvm-cs"] == after["llvm-cs-binary"] <= 0.9 * after["llvm"]
