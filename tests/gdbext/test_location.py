"""Places as users type them: gdb lives, says what `break` says, and finds what is meant, also in C++ and Rust."""

import re
from pathlib import Path

import pytest

from tests.gdbext.gdb_process import GDB, GDB16, GDB18, HOME, all_gdbs, ask_gdb, newest_gdb
from tests.helpers.amounts import long_only

CASES = HOME / "tests" / "data" / "cases"
CPP, RUST, ODD = CASES / "cpp-names", CASES / "rust", CASES / "odd-names"


def run(elf: Path, capture: Path, commands: list[str], gdb: str) -> list[str]:
    """What each command says, in a gdb that goes on to the next test."""
    said = ask_gdb(elf, ["disconnect", f"trace open {capture}", *commands, "print 41 + 1"], gdb=gdb)
    assert re.fullmatch(r"\$\d+ = 42", said["print 41 + 1"].strip()), "gdb lives"
    assert "Python Exception" not in "".join(said.values())
    return [said[command].strip() for command in commands]


@all_gdbs
def test_what_would_end_gdb(gdb: str) -> None:
    """gdb's own `break` has these words for the first; the others end gdb 13, 16 or 18 if they reach its Python API."""
    texts = ["'main", '"main', ",", "if main", "thread 1", "*nonsense", "-p x", "'s<g'", "main,'", "'::.'", "i 'i '"]
    texts += ["::operator new x", "::operator", "::operator new", "::~d e", "::a-b", "'app.cpp':::a-b", "{}", "*{ }"]
    texts += ["::new", "::int x", "::void"]
    commands = [f"{command} {text}" for text in texts for command in ("trace find", "trace goto", "trace coverage")]
    commands += ["trace goto -next ::new new", "trace print ::delete", "trace print {}"]
    _, *said = run(CPP / "app.elf", CPP / "x.rvt", ["trace replay", *commands], gdb)
    assert [line for line in said[:3] if line.endswith("unmatched quote")] == said[:3]
    assert all(len(line.splitlines()) == 1 for line in said), said


@all_gdbs
def test_a_tracepoint_does_not_end_gdb(gdb: str) -> None:
    """gdb's own tracepoints, which `trace LOCATION` still sets; `::` ended gdb 18 in a C++ program."""
    texts = ["::", "::.", "{}", "-function ::", "'main", "main if ::", "*::", "x::", "main,'", "::d 1"]
    commands = ["trace replay", *(f"trace {text}" for text in texts)]
    _, *said = run(CPP / "app.elf", CPP / "x.rvt", commands, gdb)
    assert all(len(line.splitlines()) == 1 for line in said), said
    assert said[0] == 'No symbol "::" in current context.' and said[4] == "unmatched quote"


@newest_gdb
def test_names_with_commas_blanks_and_signs(gdb: str) -> None:
    names = ["'ns::add<int, long>(int, long)'", "ns::add<int, long>(int, long)", "ns::add<int, long>"]
    names += ["ns::box::operator<", "ns::box::operator()", "ns::(anonymous namespace)::hidden", "ns::add"]
    found = run(CPP / "app.elf", CPP / "x.rvt", [f"trace find {name}" for name in names], gdb)
    places = [[int(at) for at in re.findall(r"@(\d+)", text)] for text in found]
    assert places == [[40], [40], [40], [62], [54], [71], [40, 47]]
    found = run(CPP / "app.elf", CPP / "x.rvt", [f"trace find ::{name}" for name in ("main", *names[1:5])], gdb)
    assert [re.findall(r"@(\d+)", text) for text in found] == [["19"], ["40"], ["40"], ["62"], ["54"]]
    several = "ns::add<int, long>(int, long) ns::box::operator< main 'ns::box::operator()'"
    words = "sys.modules['rvtrace_gdb.gdbext.commands.find'].place_words('a::operator new b, c operator delete')"
    found = run(CPP / "app.elf", CPP / "x.rvt", [f"trace find {several}", f"python import sys; print({words})"], gdb)
    assert re.findall(r"@(\d+)", found[0]) == ["19", "40", "54", "62"]
    assert found[1] == "['a::operator new', 'b,c', 'operator delete']"
    address = run(CPP / "app.elf", CPP / "x.rvt", ["trace goto 1", "trace print &'app.cpp'::sink + 0"], gdb)[1]
    assert address.endswith("<sink>"), "the file before :: is in quotes"
    odd = ["'foo<int, long>(char const*)'", "foo<int, long>(char const*)", "a b", "na\u00efve", "%s%n"]
    found = run(ODD / "odd.elf", ODD / "odd.rvt", [f"trace find {name}" for name in odd], gdb)
    assert [re.findall(r"@(\d+)", text) for text in found] == [["6"], ["6"], ["9"], ["12"], ["18"]]


@newest_gdb
def test_what_is_asked_is_answered(gdb: str) -> None:
    """A condition is not dropped, and a line that is not there is named as gdb names it."""
    commands = ["trace find main if 1", "trace find app.cpp:17 if x", "trace coverage main if 1"]
    commands += ["trace find app.cpp:999", "trace find nosuch.cpp:9", "trace coverage app.cpp:999"]
    *conditions, line, file, coverage = run(CPP / "app.elf", CPP / "x.rvt", commands, gdb)
    assert all("`if` is not taken here: `break " in text for text in conditions)
    assert re.fullmatch(r'trace find: app.cpp:999: No (compiled code for )?line 999 in file "app.cpp"\.', line)
    assert file.removeprefix("trace find: nosuch.cpp:9: ") in (
        "No source file named nosuch.cpp.", "No compiled code for line 9 in file \"nosuch.cpp\"."
    )  # fmt: skip
    assert coverage == 'No line 999 in file "app.cpp".'


@newest_gdb
def test_names_are_demangled_in_all_lists(gdb: str) -> None:
    commands = ["trace history 40,+1", "trace functions 3,+1", "trace find ns::add<int, long>", "trace calls"]
    said = run(CPP / "app.elf", CPP / "x.rvt", commands, gdb)
    assert all("ns::add<int, long>(int, long)" in text for text in said[:1] + said[2:]), said
    assert not any("_ZN" in text for text in said)


@pytest.mark.parametrize("gdb", [GDB18 or GDB, *long_only(GDB, GDB16 or GDB)])
def test_a_rust_program(tmp_path: Path, gdb: str) -> None:
    """gdb's language is Rust as soon as it stops in the program, and has no type `void`."""
    from rvtrace_gdb.console.main import main

    script, elf = tmp_path / "x.rvts", RUST / "app.elf"
    script.write_text("start\nrun until finish\nstop\n")
    assert main(["run", str(script), "--sim", "--elf", str(elf), "-o", str(tmp_path / "x.rvt"), "--quiet"]) == 0
    commands = ["trace replay", "trace goto choose", "show language", "backtrace", "trace history 1,2"]
    commands += ["trace find app::work::twice", "trace find choose", "reverse-step", "trace coverage app::work::twice"]
    said = dict(zip(commands, run(elf, tmp_path / "x.rvt", commands, gdb), strict=True))
    assert said["show language"] == 'The current source language is "auto; currently rust".'
    assert re.findall(r"^#\d .*?([\w:]+) \(", said["backtrace"], re.M) == [
        "app::work::choose", "app::work::twice", "app::rust_main", "_start"
    ]  # fmt: skip
    assert re.findall(r"^\d+\t@", said["trace find app::work::twice"], re.M) and "app.rs" in said["reverse-step"]
    assert said["trace history 1,2"].startswith("1\t   0x0000000080000000 <_start+0>:\t")
    assert re.search(r"^ *\d+: 16\t", said["trace coverage app::work::twice"], re.M)
