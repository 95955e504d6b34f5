"""Profiles for compilers, against what LLVM's and AutoFDO's own programs make of counts, the retired list and gcov."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.helpers.cross_compiler import EXAMPLES, compile_program, symbol_address
from tests.reports.coverage.traced import gcov, retired, trace
from tests.session.exports.pgo.rebuilt import PROGRAMS, Traced, built, linked, run, samples


@pytest.fixture(scope="module", params=PROGRAMS)
def traced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return Traced(request.param, tmp_path_factory.mktemp("pgo"))


def written(traced: Traced, form: str, *options: str) -> Path:
    out = traced.folder / f"{traced.name}.{form}"
    words = ["pgo", str(traced.capture), "--to", form, "-o", str(out), "--quiet", *options]
    assert main(words) == 0
    return out


def test_samples_are_those_of_llvm_profgen(traced: Traced) -> None:
    counts, theirs = written(traced, "llvm-unsymbolized"), traced.folder / "theirs"
    words = (f"--unsymbolized-profile={counts}", f"--binary={traced.elf}", f"--output={theirs}", "--format=text")
    run("llvm-profgen-19", *words)
    mine = samples(written(traced, "llvm").read_text())
    assert mine == samples(theirs.read_text())
    assert mine[2]["main"] == 1 and mine[1]


def test_copies_of_a_call_count_together(tmp_path: Path) -> None:
    """Those of a loop that was unrolled, without discriminators, as of compilers that have none."""
    source, capture, counts, theirs = (tmp_path / name for name in ("it.c", "it.rvt", "counts", "theirs"))
    source.write_text(
        "volatile int sink;\n__attribute__((noinline)) static void note(int value) { sink += value; }\n"
        "int main(void) {\n#pragma unroll\n  for (int i = 0; i < 5; i++)\n    note(i);\n  return 0;\n}\n"
    )
    elf = linked(tmp_path, tmp_path / "it.elf", [source], "-fno-debug-info-for-profiling")
    trace(elf, retired(elf), capture)
    written = {form: tmp_path / form for form in ("llvm", "llvm-cs")}
    for form, out in [*written.items(), ("llvm-unsymbolized", counts)]:
        assert main(["pgo", str(capture), "--to", form, "-o", str(out), "--quiet"]) == 0
    words = (f"--unsymbolized-profile={counts}", f"--binary={elf}", f"--output={theirs}", "--format=text")
    run("llvm-profgen-19", *words)
    mine = samples(written["llvm"].read_text())
    assert mine == samples(theirs.read_text()) and mine[0]["main", "3:"] == 5
    assert " 3: 5 note:5\n" in written["llvm-cs"].read_text()


def test_ranges_have_the_counts_of_the_retired_list(traced: Traced) -> None:
    lines = written(traced, "autofdo").read_text().splitlines()
    ranges = int(lines[0])
    addresses = int(lines[ranges + 1])
    counted = Counter[int]()
    for line in lines[ranges + 2 : ranges + 2 + addresses]:
        pc, times = line.split(":")
        counted[int(pc, 16) + 0x8000_0000] = int(times)
    assert counted == Counter(traced.pcs)
    of_ranges = Counter[int]()
    for line in lines[1 : ranges + 1]:
        places, times = line.split(":")
        first, last = (int(place, 16) + 0x8000_0000 for place in places.split("-"))
        of_ranges.update({pc: int(times) for pc in counted if first <= pc <= last})
    assert of_ranges == counted


def test_create_llvm_prof_reads_autofdo(traced: Traced) -> None:
    """Its names of inlined functions are broken in Debian 12; those of functions are not."""
    counts, theirs = written(traced, "autofdo"), traced.folder / "autofdo.prof"
    words = (f"--binary={traced.elf}", f"--profile={counts}", "--format=text", f"--out={theirs}")
    run("create_llvm_prof", "--profiler=text", *words)
    mine, other = (_own_places(file.read_bytes()) for file in (written(traced, "llvm"), theirs))
    assert mine == other and mine


def _own_places(profile: bytes) -> set[tuple[bytes, bytes, int]]:
    """(function, place, count) of what was not inlined."""
    function, found = b"", set()
    for line in profile.splitlines():
        if named := re.fullmatch(rb"(\w+):\d+:\d+", line):
            function = named[1]
        elif (counted := re.match(rb" (\d{1,4}(?:\.\d+)?): (\d+)(?!\S)", line)) is not None:
            found.add((function, counted[1], int(counted[2])))
    return found


def test_the_binary_form_has_the_same(traced: Traced) -> None:
    shown = [
        run("llvm-profdata-19", "show", "--sample", "--detailed-summary", "--all-functions", str(written(traced, form)))
        for form in ("llvm", "llvm-binary")
    ]
    assert shown[0] == shown[1] and "main" in shown[0]


def test_lines_have_the_counts_of_an_instrumented_program(traced: Traced, tmp_path: Path) -> None:
    """gcov counts on this machine. Each part of a `for` of an optimised program is counted on its own, and the copies
    of inlined functions are merged with other code.
    """
    source = EXAMPLES / "pgo" / f"{traced.name}.c"
    theirs = {line: times for line, (times, _) in gcov(tmp_path, (source,))[str(source)].items()}
    text = source.read_text().splitlines()
    firsts = {name: number for number, line in enumerate(text, 1) for name in _declared(line)}
    compared = 0
    for (function, *inlined, place), times in samples(written(traced, "llvm").read_text())[0].items():
        line = firsts[function] + int(place.rstrip(":").split(".")[0]) if not inlined else 0
        if line in theirs and "for (" not in text[line - 1]:
            assert (text[line - 1].strip(), times) == (text[line - 1].strip(), theirs[line])
            compared += 1
    assert compared > 8


def _declared(line: str) -> list[str]:
    is_function = line.endswith(")") and not line.startswith((" ", "/"))
    return [line.split("(")[0].split()[-1].lstrip("*")] if is_function else []


def test_a_rebuilt_program_retires_less(traced: Traced, tmp_path: Path) -> None:
    """The same result with at least 5 % fewer instructions, from either form."""
    for form in ("llvm", "llvm-binary"):
        again = retired(built(traced.name, tmp_path, f"-fprofile-sample-use={written(traced, form)}"))
        assert len(again) <= 0.95 * len(traced.pcs)


_SYMBOLS = ("__global_pointer$", "__stack_top", "__bss_start", "__bss_end")


def test_functions_in_the_order_of_their_heat(traced: Traced, tmp_path: Path) -> None:
    """Those first that ran most for their size, and lld puts them there in this order."""
    order = written(traced, "symbol-order")
    names = order.read_text().split()
    rows = [line.split() for line in run("llvm-nm-19", "-S", str(traced.elf)).splitlines()]
    sizes = {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and int(row[1], 16)}
    known = [sizes[name] for name in names if name in sizes]
    heat = [sum(start <= pc < start + size for pc in traced.pcs) / size for start, size in known]
    assert heat == sorted(heat, reverse=True) and len(heat) >= 2
    built(traced.name, tmp_path, "-ffunction-sections")
    ordered = tmp_path / "ordered.elf"
    objects = [str(tmp_path / "start.o"), str(tmp_path / f"{traced.name}.o")]
    symbols = [f"--defsym={name}=0x80010000" for name in _SYMBOLS]
    run("ld.lld-19", f"--symbol-ordering-file={order}", *symbols, *objects, "-o", str(ordered))
    places = [symbol_address(ordered, name) for name in names if name not in ("_start", "_exit")]
    assert places == sorted(places) and len(places) >= 2
    assert written(traced, "section-order").read_text().split() == [f"*(.text.{name})" for name in names]


def test_captures_add_up(traced: Traced, capsys: pytest.CaptureFixture[str]) -> None:
    once = samples(written(traced, "llvm").read_text())
    out = traced.folder / "both"
    words = ["pgo", str(traced.capture), str(traced.capture), "--to", "llvm", "-o", str(out), "--json", "--quiet"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["instructions"] == 2 * len(traced.pcs) and said["functions"] == len(once[2])
    body, _, heads = samples(out.read_text())
    assert body == {place: 2 * times for place, times in once[0].items()}
    assert heads == {name: 2 * times for name, times in once[2].items()}


def test_other_programs_do_not_add_up(traced: Traced, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = compile_program(tmp_path, EXAMPLES / "demo.c")
    capture = trace(other, retired(other)[:500], tmp_path / "other.rvt", "--limit", "500")
    words = ["pgo", str(traced.capture), str(capture), "--to", "autofdo", "-o", str(tmp_path / "x"), "--quiet"]
    assert main(words) == 1
    assert "ran another program than" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
