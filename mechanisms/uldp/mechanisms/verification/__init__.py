"""Tests of clients by two sorts of reports: of two values, and two of each device."""
