"""Which shipped target a chip is: what /proc/cpuinfo of boards, OpenOCD and device trees say of real ones."""

import base64

import pytest

from rvtrace_gdb.session.description.library.proposal import ChipIdentity, proposed
from rvtrace_gdb.session.queries.hardware.known_chip import lines
from tests.session.description.devicetrees import compiled

P550 = "hifive-premier-p550"
AMD = ["microblaze-v", "microblaze-v-mdm"]


@pytest.mark.parametrize(
    ("chip", "names", "surely"),
    [
        (ChipIdentity(harts=((0x489, 0x8000000000000008),)), [P550], True),
        (ChipIdentity(harts=((0x489, 0x8000000000000007),)), [], False),  # a U74
        (ChipIdentity(idcodes=(0x0000DC25,)), ["esp32"], False),  # ESP32-C6
        (ChipIdentity(idcodes=(0x00012C25, 0x20000913)), ["esp32"], False),  # ESP32-P4, and what OpenOCD's examples use
        (ChipIdentity(harts=((0x710, 0x8000000058000002),)), ["spacemit-k3"], True),
        (ChipIdentity(harts=((0x710, 0x8000000058000001),)), [], False),  # a K1
        (ChipIdentity(harts=((0x5B7, 0),)), ["xuantie"], False),
        (ChipIdentity(idcodes=(0x00000093,)), AMD, False),
        (ChipIdentity(compatible=("x", "eswin,eic7700")), [P550], True),
        (ChipIdentity(compatible=("riscv-virtio",)), ["qemu-etrace"], True),
        (ChipIdentity(idcodes=(0x93,), compatible=("eswin,eic7700",)), [P550, *AMD], True),
        (ChipIdentity(), [], False),
    ],
)
def test_which_target_a_chip_is(chip: ChipIdentity, names: list[str], surely: bool) -> None:
    found = proposed(chip)
    assert [proposal.target.name for proposal in found] == names
    assert [proposal.surely for proposal in found][:1] == [surely][: len(names)]


def test_what_is_said_of_it() -> None:
    tree = base64.b64encode(compiled('/dts-v1/; / { compatible = "eswin,eic7700"; };')).decode()
    [line] = lines({"idcodes": [0x93], "harts": [], "device_tree": tree})
    assert line == (
        "No target description is set, and it is SiFive HiFive Premier P550 (ESWIN EIC7700X) (its device tree is"
        f' compatible with "eswin,eic7700"), which rvtrace knows as {P550}: `set trace target {P550}` takes its'
        " description."
    )
    [line] = lines({"idcodes": [0x0000DC25]})
    assert line.endswith("which rvtrace knows as esp32: `rvtrace targets show esp32` says what to do.")


def test_trace_components_of_a_tree_are_said() -> None:
    tree = base64.b64encode(compiled('/dts-v1/; / { e { compatible = "riscv,trace-encoder"; }; };')).decode()
    assert lines({"device_tree": tree}) == [
        "The device tree that the chip was booted with has trace components: `rvtrace init` reads it."
    ]


@pytest.mark.parametrize("tree", [None, 3, "", "!", "0A3+7Q==", base64.b64encode(bytes(64)).decode()])
@pytest.mark.parametrize("pairs", [None, 3, [3], [[1]], [[0x489, "8"]], [[1, 2, 3]], [[-1, 2]]])
def test_what_is_no_chip_says_nothing(tree: object, pairs: object) -> None:
    assert lines({"idcodes": pairs, "harts": pairs, "device_tree": tree}) == []
