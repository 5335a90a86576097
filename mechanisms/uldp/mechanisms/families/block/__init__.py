"""The distribution of a number, by outputs near its bin."""
