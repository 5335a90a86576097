"""A few bits of a unary encoding."""
