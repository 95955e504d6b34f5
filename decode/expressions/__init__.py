"""Expressions over a program's variables, as gdb has them, evaluated by its debug information."""
