"""How scripts are read: docs/scripts.md. Nothing is started here."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.console.shell import CommandBlock
from rvtrace_gdb.console.scripts.language import (
    Expected,
    If,
    Node,
    Repeat,
    ScriptError,
    ScriptStep,
    Within,
    comparison,
    file_name,
    filled,
    parse,
    seconds,
    within,
    without_comment,
)
from rvtrace_gdb.console.scripts.runner import load
from rvtrace_gdb.console.scripts.verbs import VERBS, listing, read
from rvtrace_gdb.support.errors import RvtraceError


def shown(nodes: tuple[Node, ...]) -> list[object]:
    """The tree as plain lists, with lines."""
    found: list[object] = []
    for node in nodes:
        if isinstance(node, ScriptStep):
            found.append((node.place.line, node.verb, node.arguments))
        elif isinstance(node, Repeat):
            found.append((node.place.line, "repeat", node.times, node.name, shown(tuple(node.body))))
        else:
            assert isinstance(node, If)
            found.append((node.place.line, "if", node.condition, shown(tuple(node.body)), shown(tuple(node.other))))
    return found


def test_names_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    given = ["x.rvt", '"a b.rvt"', "'a b.rvt'", "~/x.rvt", '"~/a b.rvt"', '"', "~nobody-of-this-name/x", "a 'b'.rvt"]
    found = [
        "x.rvt",
        "a b.rvt",
        "a b.rvt",
        "/home/me/x.rvt",
        "/home/me/a b.rvt",
        '"',
        "~nobody-of-this-name/x",
        "a 'b'.rvt",
    ]
    assert [file_name(text) for text in given] == found


def test_the_tree_of_a_script() -> None:
    text = """# a comment
    load     # another
repeat 2 * $n as round

    if $round == 1
        start  -range main,+100
    else
        repeat 3
            gdb printf "# %d\\n", 1
        end
    end
    trace start -timestamps \\
        -range main,+100   # goes on
end
stop
"""
    assert shown(parse(text, "x.rvts", lambda verb, rest: rest)) == [
        (2, "load", ""),
        (3, "repeat", "2 * $n", "round", [
            (5, "if", "$round == 1",
             [(6, "start", "-range main,+100")],
             [(8, "repeat", "3", "", [(9, "gdb", 'printf "# %d\\n", 1')])]),
            (12, "trace", "start -timestamps         -range main,+100"),
        ]),
        (15, "stop", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load\nrepeat 3\nload\n", "x.rvts:2: `repeat 3` has no `end`"),
        ("if 1\nload\n", "x.rvts:1: `if 1` has no `end`"),
        ("if 1\nelse\nelse\nend", "x.rvts:3: `else` without `if`"),
        ("repeat 1\nelse\nend", "x.rvts:2: `else` without `if`"),
        ("load\nend", "x.rvts:2: `end` without `repeat` or `if`"),
        ("repeat 1\nend 2", "x.rvts:2: `end` stands alone on its line, got: end 2"),
        ("\n\nrepeat\nend", "x.rvts:3: expected: repeat EXPRESSION [as NAME]"),
        ("if\nend", "x.rvts:1: expected: if EXPRESSION"),
        ("load \\", "x.rvts:1: the last line ends with `\\`: its continuation is missing"),
        ("run until", "x.rvts:1: expected: run [until LOCATION] [within TIME] | run for TIME"),
        ("run main", "x.rvts:1: expected: run [until LOCATION] [within TIME] | run for TIME"),
        ("run for", "x.rvts:1: expected a time as 500ms, 2s or 3min, got: nothing"),
        ("run for 5h", "x.rvts:1: expected a time as 500ms, 2s or 3min, got: 5h"),
        ("run until main within soon", "x.rvts:1: expected a time as 500ms, 2s or 3min, got: soon"),
        ("stop now", "x.rvts:1: expected: stop"),
        ("break", "x.rvts:1: expected: break LOCATION"),
        ("delete all", "x.rvts:1: expected: delete [NUMBER]"),
        ("connect a b", "x.rvts:1: expected: connect [HOST:PORT]"),
        ("open", "x.rvts:1: expected: open FILE"),
        ("gdb", "x.rvts:1: expected: gdb COMMAND"),
        ("timeout", "x.rvts:1: expected a time as 500ms, 2s or 3min, got: nothing"),
        ("set 3 = 4", "x.rvts:1: expected: set NAME = EXPRESSION | calls LOCATION | instructions | losses"
         " | interrupt latency ... | intervals ..."),
        ("assert calls fib",
         "x.rvts:1: expected: assert calls LOCATION >= EXPRESSION, with spaces around the operator"),
        ("assert calls fib>=3",
         "x.rvts:1: expected: assert calls LOCATION >= EXPRESSION, with spaces around the operator"),
        ("assert calls >= 3", "x.rvts:1: expected: assert calls LOCATION >= EXPRESSION"),
        ("assert interrupt latency > 3", "x.rvts:1: expected: assert interrupt latency [of HANDLER] < EXPRESSION"
         " [instructions|ticks], or with <="),
        ("assert instructions in main > 3", "x.rvts:1: expected: assert instructions >= EXPRESSION"),
        ("assert order main", "x.rvts:1: expected: assert order LOCATION LOCATION ..."),
    ],
)  # fmt: skip
def test_an_error_names_its_line_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(text, "x.rvts", read)
    assert str(caught.value) == message


@pytest.mark.parametrize("line", ["assert", "assert rann fib", "assert losses", "assert not run fib", "assert ran"])
def test_what_can_be_asserted_is_said(line: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(line, "x.rvts", read)
    assert "expected" in str(caught.value)


def test_an_unknown_verb_is_answered_with_all_of_them() -> None:
    with pytest.raises(ScriptError) as caught:
        parse("lode", "x.rvts", read)
    said = str(caught.value)
    assert said.startswith("x.rvts:1: there is no verb `lode`; expected one of: ")
    assert {*VERBS, "repeat", "if"} <= set(said.replace(",", " ").split())


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("load # x", "load "), ("# x", ""), ("load#x", "load#x"), ('echo "# x" # y', 'echo "# x" '),
        ("echo 'a # b' # c", "echo 'a # b' "), ("echo it's # here", "echo it's "), ("echo # it's", "echo "),
    ],
)  # fmt: skip
def test_comments(line: str, left: str) -> None:
    assert without_comment(line) == left


def test_times() -> None:
    assert [seconds(text) for text in ("500ms", "2s", "1.5s", "3min", "130")] == [0.5, 2.0, 1.5, 180.0, 130.0]
    assert within("until main within 2s") == Within("until main", 2.0)
    assert within("within 2s") == Within("", 2.0)
    assert within("until within_limits") == Within("until within_limits", None)
    for text in ("", "2 s", "-1s", "s", "2h"):
        with pytest.raises(Expected):
            seconds(text)


def test_comparisons_need_spaces_so_that_operators_can_be_names() -> None:
    found = comparison("calls operator<(A, B) <= $n + 1")
    assert found == ("calls operator<(A, B)", "<=", "$n + 1")
    assert comparison("calls operator<") is None


def test_variables_in_text() -> None:
    values = {"i": "3", "name": "x"}
    assert filled("run-$i.rvt costs $$5 of $name.", values.__getitem__) == "run-3.rvt costs $5 of x."


@pytest.mark.parametrize(
    "text", ["\ufeffload\nrun until main\n", "load\r\nrun until main", "\tload\n\n run\tuntil  main\t# x\n"]
)
def test_files_as_editors_write_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.rvts").write_bytes(text.encode())
    nodes = load(tmp_path / "x.rvts")
    assert [(node.place.text.split(), isinstance(node, ScriptStep)) for node in nodes] == [
        (["load"], True), (["run", "until", "main"], True),
    ]  # fmt: skip


def test_an_empty_script_is_one(tmp_path: Path) -> None:
    (tmp_path / "x.rvts").write_text("")
    assert load(tmp_path / "x.rvts") == ()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, problem in (("nonsense", "No such file or directory"), ("binary", "no text"), (".", "Is a directory")):
        with pytest.raises(RvtraceError, match=f"cannot be read: {problem}$"):
            load(tmp_path / name)


def test_the_list_of_verbs_has_each() -> None:
    text = listing()
    for verb in VERBS.values():
        assert verb.usage in text and verb.explained in text
    assert max(map(len, text.splitlines())) <= 120


# Commands of gdb that go on over several lines. Source: gdb's manual, "Command Files", "Break Commands"


@pytest.mark.parametrize(
    "lines",
    [
        ["print 1"],
        ["define hello", "if 1", "while 0", "end", "else", "end", "end"],
        ["commands 1", "silent", "python", "if True:", "  print('end of it')", "end", "end"],
        ["document hello", "if this stands here", "it is text", "end"],
        ["python", "while False:", "    pass", "end"],
        ["print 1 + \\", "2"],
        ["while-stepping 3", "collect $regs", "end"],
        ["python print(1)"],
        ["ifconfig"],
        ["define-prefix abc"],
        ["guile", "(if #t", "end"],
    ],
)
def test_blocks_end_where_they_end(lines: list[str]) -> None:
    block = CommandBlock()
    for line in lines[:-1]:
        block.add(line)
        assert not block.complete, line
    block.add(lines[-1])
    assert block.complete
    assert block.text.split("\n") == lines
