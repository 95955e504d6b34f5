"""Registers and memory of a part of a history, from the instructions that ran and what is known at its two ends."""
