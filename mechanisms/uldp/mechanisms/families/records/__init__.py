"""Records: one attribute, or tables of several attributes, pooled from views."""
