"""Profiles: how many instructions ran in which calls, for programs that draw or list that."""
