"""Each shipped target by its name: the simulator with its limits, real OpenOCD, gdb; what is listed is what ran."""

from pathlib import Path

from rvtrace_gdb.session.description.library.shipped import target_names
from tests.endtoend.targets.boards import recorded

ELSEWHERE = {
    "chipyard-tacit": "tests/endtoend/targets/test_tacit.py",
    "microblaze-v": "tests/endtoend/targets/test_microblaze_v.py",
    "microblaze-v-mdm": "tests/endtoend/targets/test_microblaze_v.py",
    "esp32": "tests/endtoend/trace/test_esp32.py",
    "spacemit-k3": "tests/endtoend/targets/test_spacemit_k3.py",
    "neorv32": "tests/endtoend/targets/test_neorv32.py",
    "hifive-premier-p550": "tests/transport/simulated/sifive_v0/test_p550.py",
}
"""Where the other targets are traced."""


def test_qemu_with_e_trace(tmp_path: Path) -> None:
    board = recorded(tmp_path, "qemu-etrace", 2)
    board.check_all_harts()
    assert "E-Trace" in board.said["trace status"] and "N-Trace" not in board.said["trace info"]
    assert "buffers in system memory" in board.said["trace info"]


def test_xuantie(tmp_path: Path) -> None:
    board = recorded(tmp_path, "xuantie", 1)
    board.check_all_harts()
    assert "memory of its own" not in board.said["trace info"]


def test_no_target_is_without_a_test() -> None:
    here = Path(__file__).read_text()
    for name in target_names():
        where = Path(__file__).parents[3] / ELSEWHERE[name] if name in ELSEWHERE else None
        assert f'"{name}"' in (here if where is None else where.read_text()), name
