"""Linear maps over large arrays, which several mechanisms share."""
