"""Call stacks: their frames, the stack that runs, those that wait, and whose each is."""
