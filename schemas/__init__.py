"""What crosses a wire or a disk: Avro schemas, framing, typed records, collection specs.

Imports nothing of the other packages.
"""
