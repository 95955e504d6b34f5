"""Tests of `decode/branches/`."""
