"""What the operating system refuses, for people: what it is, and with what."""

import errno
import os

_REMEDIES = {
    errno.EMFILE: "; `ulimit -n` says how many one process may have open",
    errno.ENFILE: "; that is the limit of the whole machine",
    errno.ENOMEM: "; less at once needs less memory",
    errno.EAGAIN: "; `ulimit -u` says how many processes there may be",
}
_OF_THE_MACHINE = {*_REMEDIES, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}


def refusal(error: OSError) -> str:
    """What has gone wrong, and with which file, if the system says."""
    why = error.strerror or str(error)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    where = "" if name is None else f"{name}: "
    return f"{where}{why}{_REMEDIES.get(error.errno or 0, '')}"


def is_refusal(error: OSError) -> bool:
    """Whether a user can do something about it: it is of a file with a name, or a limit of the machine. What else the
    system refuses was not to be asked.
    """
    return error.filename is not None or error.errno in _OF_THE_MACHINE
