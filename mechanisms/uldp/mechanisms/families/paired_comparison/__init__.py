"""Rankings by one drawn pair of candidates."""
