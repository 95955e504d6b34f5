"""Tests of `reports.html`."""
