"""Tests of `decode/tandem/logs/`."""
