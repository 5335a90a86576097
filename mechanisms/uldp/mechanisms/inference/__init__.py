"""Inference beside the estimates: intervals, tests of reports, and forecasts of errors."""
