"""Control Transfer Records 1.0 read by plain register packets, where a program says so, and what should be there."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.ctr_model.model import Entry, Event, Model, Write
from tests.ctr_model.programs import looks, symbols
from tests.helpers.qemu10 import Qemu10
from tests.helpers.remote_protocol import Rsp


class Seen(NamedTuple):
    """Registers, and all entries of the depth, youngest first."""

    status: int
    control: int
    depth: int
    entries: list[Entry]


def seen(stub: Rsp) -> Seen:
    """What a hart in M mode has now; siselect is put back."""
    selected = stub.csr(0x150)
    depth = 16 << (stub.csr(0x15F) & 7)
    found = Seen(stub.csr(0x14F), stub.csr(0x34E), depth, [_entry(stub, number) for number in range(depth)])
    stub.set_csr(0x150, selected)
    return found


def _entry(stub: Rsp, number: int) -> Entry:
    select, source, target, data = stub.selected(0x150, 0x200 + number, (0x150, 0x151, 0x152, 0x153))
    assert select == 0x200 + number
    return source, target, data


def run_and_look(elf: Path, machine: Qemu10, every: int = 1) -> dict[str, Seen]:
    """What is seen at *every* look_NAME so far apart when the hart first comes there; the hart ends at `done`."""
    left = dict(sorted(looks(elf).items())[::every])
    found: dict[str, Seen] = {}
    with Rsp(machine.port) as stub:
        while left:
            name = left.pop(stub.go(*left))
            found[name] = seen(stub)
        stub.go(symbols(elf)["done"])
    return found


def expected(elf: Path, events: Iterable[Event], model: Model) -> dict[str, Seen]:
    """The same from a model that is fed what ran."""
    names = looks(elf)
    found: dict[str, Seen] = {}
    for event in events:
        model.run([event])
        name = "" if isinstance(event, Write) else names.get(event.pc, "")
        if name and name not in found:
            found[name] = Seen(model.status, model.control, model.depth, model.entries())
    return found
