"""Tables of several attributes of a record, pooled from views."""
