"""OpenOCD's first target is another core than a RISC-V one: what hart it is, and which number has to be written.

Reported of boards with an Arm core beside. The real OpenOCD has a target of type `testee` before the simulated hart.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import HartUnreachable
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.survey.harts import find
from rvtrace_gdb.session.target.link import csrs_of
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.session.board import DEMO

FIRST = "target create other.core testee -chain-position sim.cpu -gdb-port disabled\n"
SAID = (
    "hart 0 cannot be reached: OpenOCD's target other.core is not a RISC-V core (testee): write `hart = 1` (sim.cpu) in"
    " the target description"
)


class WithOther(Rig):
    """The simulated target, and a core before it."""

    def hold_ports(self, held: ExitStack) -> None:
        super().hold_ports(held)
        self.openocd_commands = "init; targets sim.cpu; halt"

    def start_simulator(self) -> None:
        super().start_simulator()
        configuration = self.folder / "openocd.cfg"
        text = configuration.read_text()
        configuration.write_text(text.replace("target create", f"{FIRST}target create", 1))


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with WithOther(DEMO, tmp_path_factory.mktemp("other")) as rig:
        yield rig


def test_the_message_names_the_number_to_write(rig: Rig) -> None:
    session, context = Session(environ={}), Context(str(DEMO), str(rig.target_file))
    with pytest.raises(HartUnreachable) as caught:
        session.start(context)
    assert str(caught.value) == SAID
    right = rig.folder / "right.toml"
    right.write_text(rig.target_file.read_text().replace("hart = 0", "hart = 1"))
    lines = session.start(replace(context, target_file=str(right)))
    assert lines[0].startswith("tracing:  encoder0")
    session.stop()
    session.close()


def test_csrs_and_the_survey_say_so_too(rig: Rig) -> None:
    with OpenOcd(port=rig.tcl_port) as link:
        first, second = find(link)
        assert not first.available and "testee: no RISC-V core" in first.text
        assert second.available and second.name == "sim.cpu"
        with pytest.raises(HartUnreachable, match="write `hart = 1`"):
            csrs_of(link, 0, {})
