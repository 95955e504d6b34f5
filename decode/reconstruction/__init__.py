"""Registers and memory of a history whose trace has only addresses: from the instructions that ran, executed again."""
