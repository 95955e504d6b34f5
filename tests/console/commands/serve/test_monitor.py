"""`monitor trace ...`: what a client without rvtrace's commands gets, against gdb with them and what ran."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from elftools.elf.elffile import ELFFile

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.serve.monitor.own_commands import OWN
from rvtrace_gdb.console.commands.serve.monitor.shell_verbs import ELSEWHERE, parser_of, verbs
from rvtrace_gdb.console.main import COMMANDS
from tests.console.commands.serve.served import Packets, Served, Server, capture, serving
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import each_seed
from tests.helpers.started_python import rvtrace
from tests.session.board import DEMO
from tests.session.exports.exported import retired, two_harts

AS_IN_GDB = (
    "functions", "functions ", "functions -", "functions /ci 3,9", "history", "history 17", "history /r 30,+3",
    "find leaf", "find leaf -", "find leaf fib -from 200", "events", "events trace-on", "gaps", "calls", "calls /n 2",
    "check", "position",
)  # fmt: skip
"""What gdb's own command prints, from the same place."""
PRINTED = ("print $sp", "print sink", "print /x $pc", "print &sink", "print /x 5 + 3", "print nope")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return capture(tmp_path_factory.mktemp("monitor"))


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Server]:
    with serving(served.file) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Packets]:
    with server.client() as client:
        client.ask("?")
        client.ask("qXfer:features:read:target.xml:0,3000")
        yield client


def test_lists_are_those_of_gdbs_commands(served: Served, client: Packets) -> None:
    begin = [SOURCE, f"trace open {served.file}", "trace replay", "set trace functions fold off"]
    asked = [f"trace {words}" for words in (*AS_IN_GDB, *PRINTED, "who-wrote $sp", "intervals fib", "goto worst")]
    said = run_gdb(DEMO, [*begin, "trace goto 400", *asked, "monitor trace history 1,5"])
    (line,) = said["monitor trace history 1,5"].splitlines()
    assert "type `trace history 1,5`" in line
    assert client.monitor("trace goto 400")[-1].startswith("[400 of 700]")
    client.ask("s")
    for words in AS_IN_GDB:
        printed = [line for line in said[f"trace {words}"].splitlines() if "urther back" not in line]
        assert client.monitor(f"trace {words}") == printed, words
    wrote = said["trace who-wrote $sp"].replace("./demo.c:10\tin ././demo.c", "demo.c:10\t")  # there is no source here
    assert set(client.monitor("trace who-wrote $sp")) <= set(wrote.splitlines())
    for words in PRINTED:
        (line,) = client.monitor(f"trace {words}")
        assert re.sub(r"= \(.*\) (?=0x)", "= ", line) == said[f"trace {words}"].strip(), "besides types of pointers"
    assert client.monitor("trace intervals fib") == said["trace intervals fib"].splitlines()
    (worst,) = re.findall(r"^\[(\d+) of 700\]", said["trace goto worst"], re.M)
    assert f"[{worst} of 700]" in client.monitor("trace goto worst")[-1]


@pytest.mark.parametrize(
    ("words", "number"),
    [("400", 400), ("-1", 700), ("begin", 1), ("end", 700), ("*0x80000062", None), ("-next leaf", None)],
)
def test_the_next_step_leads_to_the_place(served: Served, client: Packets, words: str, number: int | None) -> None:
    moments = served.moments
    if number is None:
        pc = {"leaf": 0x8000004C}.get(words.split()[-1], 0x80000062)
        found = [n for n, moment in enumerate(moments[:-1], 1) if moment.pc == pc]
        number = found[0] if words.startswith("-next") else found[-1]
        if words.startswith("-next"):
            client.monitor("trace goto begin")
            client.ask("s")
    assert client.monitor(f"trace goto {words}")[-1].startswith(f"[{number} of 700]")
    assert client.ask("s").startswith("T05")
    assert client.place() == moments[number - 1].pc
    assert client.monitor("trace position") == [f"In the past, at instruction {number} of 700."]
    client.ask("s")
    assert client.place() == moments[number].pc if number < 700 else True


def test_the_writer_of_a_register(served: Served, client: Packets) -> None:
    moments = served.moments
    writer = max(n for n in range(1, len(moments)) if moments[n].x[2] != moments[n - 1].x[2])
    assert f"[{writer} of 700]" in client.monitor("trace goto -wrote $sp")[-1]
    client.ask("s")
    earlier = max(n for n in range(1, writer) if moments[n].x[2] != moments[n - 1].x[2])
    assert any(line.startswith(f"{earlier}\t") for line in client.monitor("trace who-wrote sp"))


def test_values_are_those_of_the_moment(served: Served, client: Packets) -> None:
    for number in (3, 400, 690):
        client.monitor(f"trace goto {number}")
        client.ask("s")
        moment = served.moments[number - 1]
        for name, index in (("sp", 2), ("a0", 10), ("s1", 9)):
            assert client.monitor(f"trace print /x ${name}") == [f"= {moment.x[index]:#x}"]
        signed = moment.x[10] - (moment.x[10] >> 63 << 64)
        assert client.monitor("trace print /d $a0, $pc") == [f"$a0 = {signed}", f"$pc = {moment.pc}"]
    code = loaded(0x80000000, 20)
    lines = client.monitor("trace print 0x80000000,20")
    assert lines == [f"0x80000000: {code[:16].hex(' ')}", f"0x80000010: {code[16:].hex(' ')}"]
    assert client.monitor("trace print 0x1000,4") == ["0x1000: -- -- -- --"]
    assert client.monitor("trace print *(int *)0x1000") == ["= <unavailable>"]
    for words in ("print", "print /q $a0", "print nope", "print 1 +", "print 0x1000,0", "print 0x1000,99999999"):
        assert len(client.monitor(f"trace {words}")) == 1, words


def loaded(address: int, size: int) -> bytes:
    """What the program file has there."""
    with open(DEMO, "rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            at = address - segment["p_paddr"]
            if 0 <= at < segment["p_filesz"]:
                return bytes(segment.data()[at : at + size])
    raise LookupError(f"{address:#x}")


def test_notes_are_kept_in_the_file(tmp_path: Path, served: Served) -> None:
    file = tmp_path / "noted.rvt"
    file.write_bytes(served.file.read_bytes())
    with serving(file) as server, server.client() as client:
        client.ask("?")
        assert client.monitor("trace note") == ["There are no notes: `monitor trace note TEXT` makes one."]
        client.monitor("trace goto 17")
        client.ask("s")
        (line,) = client.monitor("trace note it is \x1b[31m wrong here")
        assert line.startswith("1\t@17  0x") and line.endswith("it is \\x1b[31m wrong here")
        client.monitor("trace note -at 5 'this, too'")
        assert "[note 1: it is" in client.monitor("trace history 17")[0]
        assert client.monitor("trace note -delete 1") == ["Note 1 is deleted."]
        for words in ("-at", "-at 0 x", "-at 701 x", "-at 5", "-delete 1", "-delete 2 x", "-all", "-hart 3 x"):
            assert len(client.monitor(f"trace note {words}")) == 1, words
    said = rvtrace("note", file, "--quiet").stdout.splitlines()
    assert [line.split(None, 2)[:2] for line in said] == [["2", "@5"]] and said[0].endswith("this, too")


def test_ctrl_c_ends_a_command_with_one_line(client: Packets) -> None:
    assert client.interrupted("trace history 1,700") == ["interrupted"]
    assert client.monitor("trace history 5,5")[0].startswith("5\t")


def test_every_command_answers_in_lines_and_none_takes_a_file(client: Packets, tmp_path: Path) -> None:
    listed = [line.split()[0] for line in client.monitor("help")[6:]]
    assert set(listed) >= {*OWN, "functions", "calls", "find", "events", "gaps", "who-wrote", "values", "status"}
    assert {row.name for row in verbs(COMMANDS)} <= set(listed) and not set(ELSEWHERE) & (set(listed) - set(OWN))
    file = tmp_path / "out"
    for name in listed:
        said = "\n".join(client.monitor(f"trace help {name}")) if name != "size" else "Usage"
        assert re.search("[Uu]sage", said) and not re.search(r" FILE\b(?!:)", said) and "rvtrace " not in said, said
        words = {"find": "find leaf", "intervals": "intervals leaf", "who-wrote": "who-wrote $a0"}.get(name, name)
        words = "why $a0" if name == "why" else words
        said = "\n".join(client.monitor(f"trace {words}"))
        assert said and "Traceback" not in said, name
    for row in verbs(COMMANDS):
        parser, open_to_clients = CommandParser(prog=row.name), parser_of(row)._option_string_actions
        row.add_arguments(parser)
        for option, action in parser._option_string_actions.items():
            if action.metavar and re.search("FILE|DIR|PATH|OUT|ADDRESS", str(action.metavar)):
                assert option not in open_to_clients, f"{row.name} {option}"
    for words in ("report --html", "coverage --output", "functions --elf"):
        assert "unrecognized arguments" in client.monitor(f"trace {words} {file}")[0]
    assert not file.exists()


def test_what_is_wrong_is_a_line(client: Packets) -> None:
    for words, problem in {
        "trace nonsense": "there is no command `monitor trace nonsense`",
        "trace goto nowhere": "nowhere: neither a function of the program, nor an address",
        "trace goto 701": "there is no number 701 in the history, which has 1 to 700",
        "trace functions /x": "Invalid modifier: x.",
        "trace functions 900,905": "Range out of bounds: numbers go from 1 to",
        "trace 'functions": "there is no command `monitor trace 'functions`",
        "reset halt": "there is no target, only its trace: `monitor trace help`",
        "trace size x": "trace size: give a number of rows",
        "trace who-wrote": "the following arguments are required: PLACE",
    }.items():
        (line,) = client.monitor(words)
        assert problem in line


WORDS = (
    "1,5", "-", "+", "0", "-1", "9,1", "1,+99999999", "/c", "/zz", "/", "-from", "--from", "--at", "--hart", "7",
    "leaf", "demo.c:14", "*0x80000062", "*", "", "'", "--", "-next", "event", "trap", "first", "last", "--json",
    "--count",
    "$sp", "$", "sink", "0x80001130,64", "0x10,0", ",", "\\", "\x1b[31m", "\u202e", "x" * 3000, "begin", "end",
    "live", "-wrote",
)  # fmt: skip


@each_seed(range(150))
def test_whatever_is_sent_is_answered_in_lines(client: Packets, seed: int) -> None:
    random = Random(seed)
    names = [*OWN, *(row.name for row in verbs(COMMANDS)), "help", "size"]
    words = [random.choice(names), *random.choices(WORDS, k=random.randrange(5))]
    said = client.monitor(f"trace {' '.join(words)}")
    assert not any("internal error" in line or "Traceback" in line for line in said), said
    assert all(line.replace("\t", "").isprintable() for line in said)
    client.monitor("trace goto end")
    assert client.ask("s").startswith("T05")


def test_pages_of_another_size(client: Packets) -> None:
    assert client.monitor("trace size 3") == ["A page has 3 rows."]
    try:
        assert [line.split()[0] for line in client.monitor("trace dump")[:3]] == ["1", "2", "3"]
        assert [line.split()[0] for line in client.monitor("trace dump")[:3]] == ["4", "5", "6"]
        assert [line.split()[0] for line in client.monitor("trace dump -")[:3]] == ["1", "2", "3"]
        assert len(client.monitor("trace history 1")) == 3
    finally:
        client.monitor("trace size 10")


def test_a_client_leaves_nothing_to_the_next(server: Server, served: Served) -> None:
    lists = ("trace functions", "trace history", "trace dump")
    with server.client() as first:
        first.ask("?")
        shown = [first.monitor(words) for words in lists]
        first.monitor("trace size 5")
        first.monitor("trace goto 17")
    with server.client() as other:
        other.ask("?")
        assert other.place() == served.moments[-1].pc
        assert [other.monitor(words) for words in lists] == shown
        other.ask("bs")
        assert other.place() == served.moments[-2].pc


def test_each_hart_has_a_thread_with_a_past_of_its_own(tmp_path: Path) -> None:
    trace, words = two_harts(tmp_path)
    pcs = retired("median")
    with serving(trace, *words) as server, server.client() as client:
        client.ask("?")
        client.ask("qXfer:features:read:target.xml:0,3000")
        threads = client.ask("qfThreadInfo").removeprefix("m").split(",")
        assert len(threads) == 2
        for number, thread in enumerate(threads, 5):
            assert [client.ask(f"H{kind}{thread}") for kind in "gc"] == ["OK", "OK"]
            assert (client.place() == pcs[-1]) == (number == 5), "the second hart ran half as long"
            assert f"[{number} of " in client.monitor(f"trace goto {number}")[-1]
            assert f"thread:{thread};" in client.ask("s")
            assert client.place() == pcs[number - 1]
        for thread, number, time in ((threads[0], 5, 100), (threads[1], 6, 155)):
            client.ask(f"Hg{thread}")
            assert client.place() == pcs[number - 1]
            happened, line = client.monitor("trace history 1,1")
            assert f"time {time}" in happened and f"{pcs[0]:#018x}" in line
        assert {line.split("\t")[0] for line in client.monitor("trace functions 1,4")} == {"1", "2", "3", "4"}
        assert {"hart 1", "hart 2"} <= set(re.findall(r"hart \d", " ".join(client.monitor("trace status"))))


def test_a_fork_goes_on_as_the_hart_did_and_can_be_changed(served: Served, client: Packets) -> None:
    moments = served.moments
    assert client.monitor("trace fork 400")[-1].startswith("The next step goes there")
    client.ask("s")
    assert client.place() == moments[399].pc
    assert client.monitor("trace position") == ["In a fork, made at instruction 400."]
    for moment in moments[400:410]:
        assert client.ask("s").startswith("T05") and client.place() == moment.pc
    assert client.ask("Pa=0500000000000000") == "OK" and client.ask("pa") == "0500000000000000"
    client.monitor("trace fork -end")
    client.ask("s")
    assert client.place() == moments[399].pc and client.ask("Pa=0500000000000000").startswith("E")
    assert client.monitor("trace fork -check 1,+9")[0].startswith("Fork at #1")
    for words in ("fork x", "fork -end 5", "fork -nothing", "fork 99999", "fork -end"):
        assert len(client.monitor(f"trace {words}")) == 1, words
