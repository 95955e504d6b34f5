"""In which of the programs that ran the functions of call trees are.

Processes may have different functions at the same address, and the functions of a kernel are in the programs of all of
them: a function is the same one if it comes from the same file.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.program.image import Image


def by_program(steps: Mapping[CallStep, int]) -> dict[int, dict[CallStep, int]]:
    """Return steps by the numbers of the programs that ran (`CallHistory.images`)."""
    found: dict[int, dict[CallStep, int]] = defaultdict(dict)
    for step, times in steps.items():
        found[step.state.program][step] = times
    return dict(sorted(found.items()))


def image_of_function(images: Sequence[Image], image: Image, start: int) -> Image:
    """Return the image of a function that ran in *image*, or called something there: another one of *images* if it has
    no function that begins at *start*.
    """
    if start == UNKNOWN or image.function(start) == start:
        return image
    return next((other for other in images if other.function(start) == start), image)


class FunctionPrograms:
    """The programs of functions, by the numbers of *images*, which are those of the programs that ran. A function that
    several of them have from the same file is in the first one that was asked for.
    """

    def __init__(self, images: Sequence[Image]) -> None:
        self.images = images
        self._numbers: dict[tuple[int, int], int] = {}
        self._firsts: dict[Hashable, int] = {}

    def number(self, program: int, function: int) -> int:
        """Return the number of the program of a function that ran in the one numbered *program*, or called something
        there.
        """
        if len(self.images) < 2 or function == UNKNOWN:
            return 0
        key = program, function
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._number_of_function(program, function)
        return found

    def image(self, program: int, function: int) -> Image:
        """Return the image of such a function."""
        return self.images[self.number(program, function)]

    def _number_of_function(self, program: int, function: int) -> int:
        image = image_of_function(self.images, self.images[program], function)
        file = image.file_at(function)
        origin = image.origin(function) if file is None else (file[0].path, file[1])
        number = next(number for number, other in enumerate(self.images) if other is image)
        return self._firsts.setdefault((function, origin, image.symbol(function)), number)
