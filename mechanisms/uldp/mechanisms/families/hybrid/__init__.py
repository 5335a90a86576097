"""The mean of a number, by the bit of Duchi et al. or by a symbol near it, as the device draws."""
