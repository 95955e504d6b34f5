"""Tests of `reports.profile`."""
