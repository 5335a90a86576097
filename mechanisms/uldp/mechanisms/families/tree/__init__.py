"""Ranges and quantiles of ordered values and of numbers, by counts of blocks of several widths."""
