"""CSRs of QEMU 10 through a real gdb: by name, by number, and through rvtrace's proxy.

What is read was written by a plain client of the remote protocol, and the other way round
(tests.helpers.remote_protocol).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ctr_model.programs import build
from tests.gdbext.csrs.csr_questions import (
    MCTRCTL,
    SCTRCTL,
    SCTRDEPTH,
    SIREG,
    SISELECT,
    Request,
    ask,
    asking_gdb,
    entries,
)
from tests.gdbext.gdb_process import GDB, GDBS, NEWEST_GDB, KeptGdb
from tests.helpers.amounts import crossed
from tests.helpers.qemu10 import Qemu10, running
from tests.helpers.remote_protocol import Rsp

CONNECTIONS = {"direct": "target extended-remote :{}", "proxy": "trace connect localhost:{}"}
WAYS = ("packets", "named")
DEEPEST = 4
U_MODE = 0

every_connection = pytest.mark.parametrize("connect", list(CONNECTIONS))
in_pairs = pytest.mark.parametrize(("way", "connect"), crossed(WAYS, list(CONNECTIONS)))
in_other_pairs = pytest.mark.parametrize(("way", "connect"), crossed(WAYS, list(CONNECTIONS)[::-1]))
"""Each way is tried through each connection, in some of the tests; in all of them in the long run."""


INTERRUPTIONS = [
    pytest.param(*gdb.values, connect, id=f"{gdb.id}-{connect}") for gdb, connect in crossed(GDBS, list(CONNECTIONS))
]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("programs"), "jumps")


@pytest.fixture(scope="module")
def machine(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Qemu10]:
    """Stopped at reset; its 256 entries hold numbers."""
    with running(elf, tmp_path_factory.mktemp("qemu")) as machine:
        with Rsp(machine.port) as stub:
            stub.set_csr(SCTRDEPTH, DEEPEST)
            for entry in range(256):
                stub.set_csr(SISELECT, 0x200 + entry)
                for register, value in enumerate(content(entry)):
                    stub.set_csr(SIREG + register, value)
            stub.set_csr(SISELECT, 0)
        yield machine


@pytest.fixture(scope="module")
def largest(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Qemu10]:
    """With Smstateen, which closes CSRs, and with vector registers, which the stub numbers before them."""
    with running(elf, tmp_path_factory.mktemp("max"), cpu="max") as machine:
        yield machine


@pytest.fixture(scope="module")
def pair(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Qemu10]:
    """With two harts."""
    with running(elf, tmp_path_factory.mktemp("pair"), harts=2) as machine:
        yield machine


@pytest.fixture(scope="module", params=NEWEST_GDB)
def kept(request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptGdb]:
    """One gdb, which each test connects, and disconnects."""
    with asking_gdb(request.param, elf, tmp_path_factory.mktemp("gdb")) as kept:
        yield kept


def content(entry: int) -> tuple[int, int, int]:
    """Every bit that ctrsource, ctrtarget and ctrdata of QEMU keep is used somewhere."""
    return entry << 56 | 0x1234_5678 | 1, entry << 48 | 0x0EAD_BEEE, entry & 0xF | 1 << 15


@in_pairs
def test_all_256_entries(kept: KeptGdb, way: str, connect: str, machine: Qemu10, elf: Path, tmp_path: Path) -> None:
    batches = [entries(range(first, first + 16)) for first in range(0, 256, 16)]
    request = Request(*batches, [[SISELECT, 0]], way=way)
    found = ask(kept, elf, tmp_path, CONNECTIONS[connect].format(machine.port), request).answer()
    read = [answers[5 * n + 2 : 5 * n + 5] for answers in found["answers"][:-1] for n in range(16)]
    assert read == [list(content(entry)) for entry in range(256)]
    selected = [answers[5 * n + 1] for answers in found["answers"][:-1] for n in range(16)]
    assert selected == list(range(0x200, 0x300))


def test_auto_takes_packets_where_there_is_no_openocd(
    kept: KeptGdb, machine: Qemu10, elf: Path, tmp_path: Path
) -> None:
    asked = ask(kept, elf, tmp_path, CONNECTIONS["direct"].format(machine.port), Request([["pc", None]]))
    assert asked.answer()["name"] == "gdb's register packets"


@in_pairs
def test_pc_mode_width_and_writes(
    kept: KeptGdb, way: str, connect: str, machine: Qemu10, elf: Path, tmp_path: Path
) -> None:
    batch = [["pc", None], ["priv", None], [MCTRCTL, 0x3_0000_0007], [MCTRCTL, None]]
    found = ask(kept, elf, tmp_path, CONNECTIONS[connect].format(machine.port), Request(batch, way=way)).answer()
    with Rsp(machine.port) as stub:
        assert found["answers"] == [[stub.pc, 3, 0, 0x2_0000_0007]], "bit 32 does not exist"
        assert stub.csr(MCTRCTL) == 0x2_0000_0007
    assert found["xlen"] == 64


@every_connection
def test_numbers_are_derived_and_not_assumed(
    kept: KeptGdb, connect: str, largest: Qemu10, elf: Path, tmp_path: Path
) -> None:
    """Here CSRs begin at 98, and some are not named at all because Smstateen hides them."""
    with Rsp(largest.port) as stub:
        assert stub.csr_base == 98
        stub.set_csr(SCTRDEPTH, 3)
    request = Request([[SCTRDEPTH, None], [SCTRCTL, 3], [SCTRCTL, None]], way="packets")
    asked = ask(kept, elf, tmp_path, CONNECTIONS[connect].format(largest.port), request)
    assert asked.answer()["answers"] == [[3, 0, 3]]


def test_an_unknown_name_is_refused_and_makes_no_variable(
    kept: KeptGdb, largest: Qemu10, elf: Path, tmp_path: Path
) -> None:
    """For gdb `set $sctrctl = 3` makes a variable where there is no such register."""
    before = Request([[SCTRCTL, 0], [SCTRCTL, None]], way="packets")
    request = Request([[SCTRCTL, 3], [SCTRCTL, None]], way="named")
    after = Request([[SCTRCTL, None]], way="packets")
    connection = CONNECTIONS["direct"].format(largest.port)
    asked = ask(kept, elf, tmp_path, connection, before, request, "output $sctrctl", after)
    assert asked.answer(1)["answers"] == [["gdb has no such register"]]
    assert asked.printed("output $sctrctl") == "void"
    assert asked.answer(2)["answers"] == [[0]]


@every_connection
def test_a_refused_write_may_be_answered_ok_and_a_refused_read_is_an_error(
    kept: KeptGdb, connect: str, largest: Qemu10, elf: Path, tmp_path: Path
) -> None:
    """In U mode Smstateen closes siselect."""
    steps = [["priv", U_MODE], ["priv", None], [SISELECT, 0x201], [SISELECT, None]]
    request = Request(steps, [["priv", 3], [SISELECT, None]], way="packets")
    asked = ask(kept, elf, tmp_path, CONNECTIONS[connect].format(largest.port), request).answer()
    assert asked["answers"] == [[0, U_MODE, 0, "refused by the stub (E14)"], [0, 0]]


@every_connection
def test_gdb_shows_the_new_values_once_it_forgets_the_old_ones(
    kept: KeptGdb, connect: str, machine: Qemu10, elf: Path, tmp_path: Path
) -> None:
    steps: tuple[Request | str, ...] = (
        "output/x $mctrctl", Request([[MCTRCTL, 5]], way="packets"), "python csrs.flush_registers()",
        "output /x $mctrctl",
    )  # fmt: skip
    with Rsp(machine.port) as stub:
        stub.set_csr(MCTRCTL, 1)
    asked = ask(kept, elf, tmp_path, CONNECTIONS[connect].format(machine.port), *steps)
    assert asked.printed("output/x $mctrctl") == "0x1"
    assert asked.printed("output /x $mctrctl") == "0x5", asked.outputs


def test_a_hart_that_runs(kept: KeptGdb, elf: Path, tmp_path: Path) -> None:
    with running(elf, tmp_path) as machine:
        connection = CONNECTIONS["direct"].format(machine.port)
        requests = [Request([["pc", None]], way=way, hart=hart) for way in WAYS for hart in (None, 0)]
        asked = ask(kept, elf, tmp_path, connection, "continue &", *requests)
    for number in range(len(requests)):
        assert asked.line(number).startswith("the hart runs: stop it first"), number


@in_other_pairs
def test_each_hart_has_its_own(kept: KeptGdb, way: str, connect: str, pair: Qemu10, elf: Path, tmp_path: Path) -> None:
    """Also with another thread selected than the one that is meant; it stays selected."""
    connection = CONNECTIONS[connect].format(pair.port)
    ask(kept, elf, tmp_path, connection, *(Request([[SCTRDEPTH, 0]], way=way, hart=hart) for hart in (0, 1)))
    for hart, depth in ((0, 2), (1, 3)):
        write = Request([[SCTRDEPTH, depth], [SCTRDEPTH, None]], way=way, hart=hart)
        read = [Request([[SCTRDEPTH, None]], way=way, hart=number) for number in (0, 1, None)]
        thread, shown = f"thread {2 - hart}", ("output $_thread", "output $sctrdepth")
        steps: tuple[Request | str, ...] = (thread, write, *read, *shown)
        asked = ask(kept, elf, tmp_path, connection, *steps)
        assert asked.answer(0)["answers"] == [[0, depth]]
        others = [asked.answer(n)["answers"][0][0] for n in (1, 2, 3)]
        expected = [depth, 0] if hart == 0 else [2, depth]
        assert others == [*expected, expected[1 - hart]]
        assert asked.printed("output $_thread") == f"{2 - hart}"
        assert asked.printed("output $sctrdepth") == f"{expected[1 - hart]}"


# Ctrl-C in the middle of what the session needs: only a part of the third piece of the records is read.
INTERRUPTED = """
def interrupted(need, pieces=[]):
    pieces.extend([need] if len(str(need)) > 600 else [])
    if len(pieces) == 3:
        pieces.append(None)
        done({**need, 'packets': need.get('packets', [])[:9], 'accesses': need.get('accesses', [])[:9]})
        raise KeyboardInterrupt
    return done(need)
done = csrs._ACTIONS[WAY]
csrs._ACTIONS[WAY] = interrupted
"""


@pytest.mark.parametrize(("gdb", "connect"), INTERRUPTIONS)
def test_ctrl_c_while_records_are_read(gdb: str, connect: str, elf: Path, tmp_path: Path) -> None:
    """What was selected is selected again, and the next time everything is there."""
    steps = ["break done", "continue"]
    for way, blanks in zip(WAYS, (" ", "  "), strict=True):
        code = INTERRUPTED.replace("WAY", repr("registers" if way == "named" else "packets"))
        steps += [f"set trace ctr-access {way}", "set $siselect=0x2f7", "set $sctrdepth=4", f"python exec({code!r})"]
        steps += [f"trace ctr show{blanks}0,1", f"output/x{blanks}$siselect", f"trace ctr show{blanks}0,1 "]
    with running(elf, tmp_path) as machine:
        asked = ask(gdb, elf, tmp_path, CONNECTIONS[connect].format(machine.port), *steps)
    for blanks in (" ", "  "):
        assert asked.printed(f"trace ctr show{blanks}0,1").endswith("Quit"), asked.outputs
        assert asked.printed(f"output/x{blanks}$siselect") == "0x2f7"
        assert "taken branch" in asked.printed(f"trace ctr show{blanks}0,1 ")


@pytest.mark.parametrize("setting", ["ctr-access", "ctr-version"])
def test_settings_offer_what_there_is(setting: str, tmp_path: Path) -> None:
    known = {"ctr-access": ["auto", "named", "openocd", "packets", "usb"], "ctr-version": ["0.1.4", "1.0", "auto"]}
    choices = known[setting]
    wrong = f"set trace {setting} smoke"
    asked = ask(GDB, None, tmp_path, "echo", f"complete set trace {setting} ", f"show trace {setting}", wrong,
                f"set trace {setting} {choices[0]}", f"show  trace {setting}")  # fmt: skip
    offered = asked.printed(f"complete set trace {setting} ").split("\n")
    assert offered == [f"set trace {setting} {choice}" for choice in choices]
    assert asked.printed(f"show trace {setting}") == f"The trace {setting} is auto."
    assert asked.printed(wrong) == 'Undefined item: "smoke".'
    assert asked.printed(f"show  trace {setting}") == f"The trace {setting} is {choices[0]}."


def test_the_settings_are_part_of_the_way(machine: Qemu10, elf: Path, tmp_path: Path) -> None:
    commands = ["python print(csrs.access_params())", "set trace ctr-access named", "set trace ctr-version 0.1.4"]
    connection = CONNECTIONS["direct"].format(machine.port)
    asked = ask(GDB, elf, tmp_path, connection, *commands, "python print(csrs.access_params() )")
    assert asked.printed(commands[0]) == "{'way': 'packets', 'openocd': False, 'version': None, 'connection': 1}"
    named = "{'way': 'named', 'openocd': False, 'version': '0.1.4', 'connection': 1}"
    assert asked.printed("python print(csrs.access_params() )") == named
