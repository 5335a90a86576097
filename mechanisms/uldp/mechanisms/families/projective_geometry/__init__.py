"""A point of a projective geometry."""
