"""`monitor trace reverse-step` and the like, from all over a history: the rules of gdb's commands for lines hold.

What is right is worked out from the list of what ran, objdump's line table, and calls (`line_rules`, `walk_model`).
"""

import random
import re
from collections import Counter
from itertools import islice
from pathlib import Path

from tests.console.commands.serve.served import Packets, capture, serving
from tests.endtoend.reverse.line_rules import Lines, LineWalk
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.helpers.amounts import LONG
from tests.helpers.example_captures import RUN, example_capture
from tests.session.board import DEMO, executed

LINE_STEPS = ("reverse-step", "reverse-next")
PLACES = 400 if LONG else 40


def test_steps_backward_keep_the_rules_from_place_to_place(tmp_path: Path) -> None:
    served, chance = capture(tmp_path), random.Random(36)
    walk = Walk(Code(DEMO), [it.pc for it in served.moments[:-1]], frozenset())
    rules, entered, here = LineWalk(walk, Lines(DEMO), optimization="-Og"), Counter[str](), walk.present
    with serving(served.file) as server, server.client() as client:
        for number in range(PLACES):
            calls = walk.called_at[here]
            assert led(client, "reverse-finish") == (calls[-1] if calls else None)
            assert led(client, "reverse-stepi") == (here - 1 if here else None)
            reached = {command: led(client, command) for command in LINE_STEPS}
            for command, there in reached.items():
                if there is None:
                    assert here == 0
                else:
                    assert not rules.wrong(command, here, there), f"{command} from {here + 1} to {there + 1}"
                    entered[command] += len(walk.called_at[there]) > len(calls)
            command = chance.choice(["reverse-step"] * 3 + ["reverse-next"])
            if not here or number % 4 == 0:
                command = f"goto {chance.randrange(2, walk.present)}"
            here = led(client, command) or 0
            client.ask("s")
    assert entered["reverse-step"] and not entered["reverse-next"]


def test_traps_one_after_another_are_gone_over(tmp_path: Path) -> None:
    """A load that traps does not run: the handlers of the next tries follow each other."""
    file = example_capture(tmp_path, "trap_loop")
    [elf] = tmp_path.glob("*.elf")
    code = Code(elf)
    walk = Walk(code, list(islice(executed(elf), RUN["trap_loop"])), frozenset({code.symbols["on_trap"]}))
    rules, numbers = LineWalk(walk, Lines(elf), optimization="-Og"), range(walk.present // 2, walk.present, 37)
    with serving(file) as server, server.client() as client:
        for number in numbers:
            client.monitor(f"trace goto {number}")
            client.ask("s")
            there = led(client, "reverse-next")
            assert there is not None
            assert not rules.wrong("reverse-next", number - 1, there), (number, there + 1)


def led(client: Packets, command: str) -> int | None:
    """The position to which the next step leads after a command, None: nowhere. The last command counts."""
    found = re.search(r"^\[(\d+) of", "\n".join(client.monitor(f"trace {command}")), re.M)
    return None if found is None else int(found[1]) - 1
