"""What can be said in one line. Bad trace bytes are no errors: they are losses in a trace."""

from rvtrace_gdb.decode.tandem.group import Element
from rvtrace_gdb.support.errors import RvtraceError


class BadElement(RvtraceError):
    """No trace can have this element, or not in this place. *words*: the element in words, where there are some."""

    def __init__(self, element: Element | None, why: str, words: str = "") -> None:
        self.element, self.why = element, why
        super().__init__(f"a tandem trace cannot have {words or element}: {why}" if element is not None else why)
