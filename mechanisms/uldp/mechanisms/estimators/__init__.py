"""The estimators: each computes published shares from the support counts of a window."""
