"""Where Flink runs a reader: on the worker to which it assigns the hash of the reader's element.

Flink divides the hashes into key groups, and assigns an equal share of the key groups, in their order, to each worker.
Needs one of the extras ``[kafka]`` and ``[gcp]``.
"""

#: The number of key groups of our jobs, which Flink calls the maximum parallelism.
KEY_GROUPS = 128


def key_group(element: bytes) -> int:
    """Return the key group of an encoded element: half a word of Murmur3, behind its length, hashed again by Flink."""
    import mmh3
    from apache_beam.coders import VarIntCoder

    hashed = mmh3.hash_bytes(VarIntCoder().encode(len(element)) + element)
    return abs(mmh3.hash(hashed[:4])) % KEY_GROUPS


def wanted_key_group(reader: int, readers: int) -> int:
    """Return the first key group of a worker of ``readers``; fewer have equal or nearly equal shares of them."""
    return -(-reader * KEY_GROUPS // readers)
