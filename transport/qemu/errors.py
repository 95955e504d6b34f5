"""What can go wrong with QEMU."""

from rvtrace_gdb.support.errors import RvtraceError


class QemuError(RvtraceError):
    """QEMU cannot be started as asked, or does not do what was asked of it."""


class QemuGone(QemuError):
    """QEMU has ended, or what `rvtrace qemu` wrote about it is of an earlier run. *folder*: where its recorder was."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"{folder}: QEMU is not running there any more: start it anew with `rvtrace qemu`")
