"""A program that speaks the machine interface as it is told: for what a real gdb does too seldom.

    fake_gdb.py SCENARIO

Each scenario is what one command is answered; others are answered ^done.
"""

import os
import signal
import sys
import time
from collections.abc import Callable


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def slow(token: str) -> None:
    """The answer comes late, in pieces, after the answer to the command behind it would have been expected."""
    for part in (f"{token}^do", 'ne,value="', "late", '"\n(gdb) \n'):
        say(part)
        time.sleep(0.1)


def alive(token: str) -> None:
    """Signs of life for longer than a silence is borne."""
    for percent in range(0, 100, 10):
        os.write(2, f"\r\033[Kreading trace: {percent}/100".encode())
        time.sleep(0.1)
    os.write(2, b"\r\033[K")
    say(f"{token}^done\n")


def silent(token: str) -> None:
    time.sleep(30)


def gone(token: str) -> None:
    os.write(2, b"fatal: the sky is falling\n")
    sys.exit(1)


def twice(token: str) -> None:
    """As for a file that lets the program run and then fails."""
    say(f'{token}^running\n*running,thread-id="all"\n*stopped,reason="breakpoint-hit"\n')
    time.sleep(0.05)
    say(f'{token}^error,msg="later"\n')


def odd(token: str) -> None:
    """Text that is not a record, a program's output, a string with all kinds of characters."""
    say('plain text\n@"from the target\\n"\n~"a \\"quoted\\" \\303\\274\\t\\\\\\n"\n')
    say('+download,{section=".text",total-sent="10",total-size="20"}\n' + f"{token}^done\n")


def done(token: str) -> None:
    say(f"{token}^done\n")


def interrupted(number: int, frame: object) -> None:
    os.write(1, b'@"interrupted\\n"\n')  # it may come while `say` is at work, which does not bear another one


SCENARIOS: dict[str, Callable[[str], None]] = {
    "-slow": slow, "-alive": alive, "-silent": silent, "-gone": gone, "-twice": twice, "-odd": odd,
}  # fmt: skip


def main() -> None:
    signal.signal(signal.SIGINT, interrupted)
    say("(gdb) \n")
    for line in sys.stdin:
        digits = len(line) - len(line.lstrip("0123456789"))
        token, command = line[:digits], line[digits:].strip()
        if command == "-gdb-exit":
            say(f"{token}^exit\n")
            return
        SCENARIOS.get(command, done)(token)
        say("(gdb) \n")


main()
