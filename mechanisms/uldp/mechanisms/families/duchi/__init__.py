"""The mean of a number, by one bit."""
