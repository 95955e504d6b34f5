"""The times that a viewer gets are those of the exported file, as pyvcd and GTKWave's converter read it."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.waves.viewer_axis import ViewerAxis, ViewerScale, viewer_axis
from rvtrace_gdb.session.waves.waveform_file import WaveformFile, waveform_file
from tests.helpers.amounts import LONG
from tests.session.exports.exported import PROGRAMS, export, opened, options, stream, two_harts
from tests.session.exports.timelines.dumps import Waves

PARTS: list[tuple[str, ...]] = [("--time", "100,500"), ("--hart", "2", "--range", "700,+1100"), *([()] if LONG else [])]
STREAM = ["--src-bits", "2", "--timestamps"]


class Shown:
    """Two harts with times, and without: the histories, and what files have been exported of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.timed, self._timed_words = two_harts(folder)
        self.plain = folder / "plain.nex"
        self.plain.write_bytes(stream(PROGRAMS[0]).read_bytes())

    def histories(self, trace: Path) -> dict[int, History]:
        more = STREAM if trace == self.timed else []
        session = opened(trace, "median" if trace == self.timed else PROGRAMS[0], *more)
        return dict(session.harts().harts.histories)

    def file(self, trace: Path, form: str, *part: str) -> tuple[WaveformFile, Waves]:
        out = self._folder / f"it.{form}"
        export(form, out, trace, self._timed_words if trace == self.timed else options(PROGRAMS[0]), *part)
        return waveform_file(str(out)), Waves(out, form)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("axis"))


def compared(axis: ViewerAxis, history: History, waves: Waves, hart: str) -> None:
    """Each instruction of the file has its time, up to the next one, and is found by it."""
    moments = waves.instructions(hart)
    assert len(moments) > 1000
    for moment, following in pairwise(moments):
        number = moment.levels["number"]
        assert isinstance(number, int) and axis.time(history, number - 1) == moment.time
        assert axis.position(history, moment.time) == number - 1
        if following.time // 10**9 == moment.time // 10**9:
            assert axis.position(history, following.time - 1) == number - 1


@pytest.mark.parametrize("form", ["vcd", "fst"])
@pytest.mark.parametrize("part", PARTS)
def test_times_are_those_of_the_file(shown: Shown, form: str, part: tuple[str, ...]) -> None:
    """A part may be drawn with other units than the whole."""
    histories = shown.histories(shown.timed)
    file, waves = shown.file(shown.timed, form, *part)
    assert file.is_ours and not file.is_numbered
    axis = viewer_axis(list(histories.values()), file, ViewerScale())
    for hart in waves.harts:
        compared(axis, histories[int(hart.removeprefix("hart"))], waves, hart)


@pytest.mark.parametrize("form", ["vcd", "fst"])
def test_without_times_they_are_numbers(shown: Shown, form: str) -> None:
    [history] = shown.histories(shown.plain).values()
    file, waves = shown.file(shown.plain, form, "--range", "501,+1100")
    axis = viewer_axis([history], file, ViewerScale())
    compared(axis, history, waves, "hart0")
    assert axis.position(history, 0) is None and axis.position(history, len(history) + 1) is None


def test_nothing_is_before_and_behind_the_trace(shown: Shown) -> None:
    histories = shown.histories(shown.timed)
    file, waves = shown.file(shown.timed, "vcd", "--hart", "2")
    axis = viewer_axis(list(histories.values()), file, ViewerScale())
    history, moments = histories[2], waves.harts["hart2"]
    assert axis.position(history, moments[0].time - 1) is None
    assert axis.position(history, moments[-1].time) is None, "the end of the file"


def test_another_file_has_its_own_axis(shown: Shown) -> None:
    """Ticks of the trace are those of the messages, 10 apart from 100 on; time 0 of the trace is at 35, 5/2 a tick."""
    history = shown.histories(shown.timed)[1]
    other = WaveformFile(exponent=-12)
    assert viewer_axis([history], other, ViewerScale()).time(history, 0) == 100
    axis = viewer_axis([history], other, ViewerScale(Fraction(35), Fraction(5, 2)))
    positions, times = history.times.arrays
    assert times[0] == 100 and set(map(int, (b - a for a, b in pairwise(times)))) == {10}
    for position, time in zip(positions[1:500], times[1:500], strict=True):
        assert axis.time(history, position) == 35 + time * 5 // 2
    for time in range(35 + 250, 35 + 2500):
        found = axis.position(history, time)
        assert found is not None
        assert axis.time(history, found) <= time < axis.time(history, found + 1)
