"""A few damaged inputs of every kind, and that the program which tries them sees what goes wrong."""

import io
import json
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter
from typing import Any

import pytest

from rvtrace_gdb.session.rpc import server
from rvtrace_gdb.session.rpc.lists.pages import LISTS
from tests.console.verbs import VERBS, check_all_are_tried, option_names
from tests.fuzz.damage import containers, mutations, texts
from tests.fuzz.exercise import generator, made
from tests.fuzz.findings import CRASH, GROWTH, HANG, HOME, TRACEBACK
from tests.fuzz.kinds import BY_NAME, KINDS
from tests.fuzz.kinds.commands import UNTRIED, UNTRIED_OPTIONS
from tests.fuzz.kinds.requests import ASKED, UNASKED
from tests.fuzz.minimize import smaller
from tests.helpers.amounts import LONG

COUNT = 100 if LONG else 6
"""Inputs of each kind; fewer of those that take a process."""


def output(module: str, *words: str) -> str:
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=900, check=False).stdout


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Of each kind: its line, and below it what was found."""
    blocks = re.split(r"\n(?=\S)", output("tests.fuzz", "--count", str(COUNT), "--seed", "1"))
    return {block.partition(" ")[0]: block for block in blocks}


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_some_of_each_kind(said: dict[str, str], kind: str) -> None:
    """The inputs are saved in build/fuzz, with the command that tries them again."""
    good = r"\S+ +[1-9]\d* inputs: 0 tracebacks, 0 hangs > 10 s CPU, 0 growths > 500 MB, 0 crashes .*\n?"
    assert re.fullmatch(good, said[kind]), said[kind]


@pytest.fixture(scope="module")
def wrong() -> tuple[str, dict[str, dict[str, Any]]]:
    """The line of the inputs that go wrong on purpose, and of each way what was found."""
    line, *findings = output("tests.fuzz.faulty_exercises").splitlines()
    return line, {found["variant"]: found for found in map(json.loads, findings)}


def test_what_goes_wrong_is_seen(wrong: tuple[str, dict[str, dict[str, Any]]]) -> None:
    line, found = wrong
    kinds = {"fail": TRACEBACK, "spin": HANG, "stick": HANG, "grow": GROWTH, "burst": GROWTH, "crash": CRASH}
    assert {way: found[way]["kind"] for way in kinds} == kinds
    assert " 18 inputs: " in line, "they go on after each"


def test_in_threads_and_where_it_is_only_logged_too(wrong: tuple[str, dict[str, dict[str, Any]]]) -> None:
    _, found = wrong
    assert [found[way]["kind"] for way in ("elsewhere", "survive")] == [TRACEBACK, TRACEBACK]


def test_refusals_and_waiting_are_no_findings(wrong: tuple[str, dict[str, dict[str, Any]]]) -> None:
    assert not {"refuse", "wait"} & wrong[1].keys()


def test_a_finding_is_made_small_and_says_which_input_it_was(wrong: tuple[str, dict[str, dict[str, Any]]]) -> None:
    found = wrong[1]["fail"]
    assert bytes.fromhex(found["data"]) == b"!"
    assert found["text"].endswith("KeyError: 'wrong'\n")
    exercise_seed, number = 1, found["number"]
    assert generator(exercise_seed, "wrong", number).random() == generator(1, "wrong", number).random()


def test_smaller() -> None:
    assert smaller(bytes(100) + b"ab" + bytes(50) + b"c", lambda data: b"ab" in data and b"c" in data) == b"abc"
    assert smaller(b"abc", lambda data: False) == b"abc"


def test_an_input_follows_from_seed_kind_and_number() -> None:
    exercise = BY_NAME["typed"].factory()()
    first = [made(exercise, generator(7, "typed", number)) for number in range(50)]
    assert first == [made(exercise, generator(7, "typed", number)) for number in range(50)]
    assert first != [made(exercise, generator(8, "typed", number)) for number in range(50)]
    exercise.close()


def test_every_verb_is_tried() -> None:
    exercise = BY_NAME["command"].factory()()
    check_all_are_tried([json.loads(seed.data.partition(b"\n")[0]) for seed in exercise.seeds], UNTRIED)
    assert UNTRIED_OPTIONS.keys() <= set(option_names(VERBS.keys() - UNTRIED.keys()))
    exercise.close()


def test_every_method_and_list_of_the_session_is_requested() -> None:
    asked = [request for requests in ASKED for request in requests]
    assert sorted({method for method, _ in asked} | UNASKED.keys()) == sorted([*server.METHODS, *server.MODULES])
    assert {params["what"] for method, params in asked if method == "page"} == LISTS.keys()


def test_containers_stay_containers() -> None:
    """Most damaged ones can be opened: their checksums are right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as container:
        container.writestr("capture.json", json.dumps({"a": [1, {"b": "c"}], "d": None}))
        container.writestr("it.bin", bytes(100))
    whole = 0
    for seed in range(200):
        damaged = containers.mutated_zip(random.Random(seed), buffer.getvalue())
        try:
            with zipfile.ZipFile(io.BytesIO(damaged)) as container:
                whole += container.testzip() is None
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, OSError):
            continue
    assert whole > 150


def test_damage_of_each_sort_happens() -> None:
    data = bytes(range(64))
    sizes = Counter(len(mutations.mutated(random.Random(seed), data, data)) - len(data) for seed in range(500))
    assert sizes[0] > 100 and min(sizes) < -20 and max(sizes) > 60
    damaged = {texts.mutated(random.Random(seed), b"a = 1\nb = 2\n", b"c = 3\n", ("word",)) for seed in range(300)}
    assert len(damaged) > 200 and any(b"word" in text for text in damaged) and any(b"c" in text for text in damaged)
