"""The mean of a number, by noise that is added to it."""
