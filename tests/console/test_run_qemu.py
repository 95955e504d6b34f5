"""`rvtrace run` on QEMU, with and without Control Transfer Records: a target whose stub is not OpenOCD's."""

from pathlib import Path

from tests import qemu10
from tests.compiling import demo
from tests.console.scripted import run_script
from tests.session.proxy import qemu


def test_running_to_places(tmp_path: Path) -> None:
    text = """connect
        run until main within 20s
        assert value $pc == &main
        break fib
        repeat 3
            run within 20s
        end
        assert value n == 5
        delete
        run until finish within 20s
        assert value value == 257735
        run for 200ms
        run until main within 300ms"""
    with qemu.running(demo(tmp_path), tmp_path, logged=False) as target:
        done = run_script(tmp_path, text, "--elf", demo(tmp_path), "--connect", f":{target.port}")
    assert done.asserts == [True, True, True]
    assert done.err == "x.rvts:13: run until main within 300ms: main was not reached within 0.3 s: " \
        "the program is in done (start.S:25)\n"  # fmt: skip
    assert done.status == 1


def test_what_the_hart_recorded_itself(tmp_path: Path) -> None:
    """Its last transfers are a trace as any other: what ran, in which order; the rest is a gap, and nobody's absence
    is believed."""
    text = """connect
        run until fib within 20s
        trace ctr start -depth 64
        run until finish within 20s
        trace ctr show
        assert ran classify
        assert order classify finish
        save"""
    elf = demo(tmp_path)
    with qemu10.running(elf, tmp_path) as target:
        done = run_script(tmp_path, text, "--elf", elf, "--connect", f":{target.port}", "-o", tmp_path / "o.rvt")
    assert "assert ran classify" in done.err + done.out, done
    assert (done.status, done.err) == (1, "x.rvts:7: assert order classify finish: finish did not run\n")
    offline = run_script(tmp_path, f"open {tmp_path / 'o.rvt'}\nassert ran classify\nassert ran fib", "--elf", elf)
    assert offline.asserts == [True, False]
