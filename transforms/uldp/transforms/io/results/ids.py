"""Files of the ids of counted reports: by these alone two folders of results show that they share no report.

A bundle that is tried again may write its ids again, in other files. The ids of a slice are a set, so that changes
nothing.
"""

from collections.abc import Iterator

import numpy as np

from uldp.collector.columns import MixedColumns
from uldp.transforms.io.durable_files import encode_record
from uldp.transforms.io.folders import IDS
from uldp.transforms.io.results.filing import File, Filing, Joined

#: The ids of a record, which take 64 kB.
_IDS = 1 << 12


class IdsFiling(Filing[MixedColumns]):
    """Files the ids of the reports of a bundle together, those of a time slice in records of their own."""

    def __init__(self) -> None:
        self._joined = Joined(IDS, "ids")

    def add(self, record: MixedColumns) -> Iterator[File]:
        for part in record:
            order = np.argsort(part.slices, kind="stable")
            slices, ids = part.slices[order], part.report_ids[order]
            starts, firsts = np.unique(slices, return_index=True)
            for start, of_slice in zip(starts.tolist(), np.split(ids, firsts[1:]), strict=True):
                for cut in range(0, len(of_slice), _IDS):
                    record_of = {
                        "collection": part.collection,
                        "version": part.version,
                        "slice": start,
                        "ids": of_slice[cut : cut + _IDS].astype("<u8").tobytes(),
                    }
                    yield from self._joined.add(encode_record("ids", record_of))

    def rest(self) -> Iterator[File]:
        return self._joined.rest()
