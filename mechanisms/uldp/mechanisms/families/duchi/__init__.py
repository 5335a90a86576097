"""The mean of a number, by one bit, or by a bit or a symbol near the number."""
