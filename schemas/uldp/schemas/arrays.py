"""Type names for the arrays that modules exchange, each with its element type and the meaning of its rows."""

import numpy as np
import numpy.typing as npt

#: Support counts: shape (k,).
Counts = npt.NDArray[np.int64]
#: The number of reports of one window; or those of k windows, shape (k, 1), beside k rows of counts.
Reports = int | Counts
#: Probabilities, estimates, errors.
Floats = npt.NDArray[np.float64]
#: True values, as indices of the domain.
Values = npt.NDArray[np.integer]
#: True strings.
Texts = npt.NDArray[np.object_]
#: Symbols as indices.
Symbols = npt.NDArray[np.int64]
#: Shape (n,) uint32 for symbols, (n, width) uint8 for packed bits.
Payloads = npt.NDArray[np.uint32] | npt.NDArray[np.uint8]
#: Rows of packed bits: shape (n, width).
Packed = npt.NDArray[np.uint8]
#: A selection from n elements.
Mask = npt.NDArray[np.bool_]
#: Indices of rows.
Rows = npt.NDArray[np.intp]
#: Milliseconds since 1970 UTC.
Times = npt.NDArray[np.int64]
#: Shape (n, 2): the 16 bytes of each id as two little-endian words.
ReportIds = npt.NDArray[np.uint64]
#: Signals about each report's device: shape (n,).
SignalBits = npt.NDArray[np.uint8]
#: Digests of sender keys: shape (n,), 0 for no key.
Digests = npt.NDArray[np.uint64]
#: Words of eight bytes.
Words = npt.NDArray[np.uint64]
#: Bytes of encoded messages.
Bytes = npt.NDArray[np.uint8]
