"""Messages that are decoded while memory runs out: the process is at fault, and never the message."""

import fastavro
import pytest

from uldp.schemas.framing import report_store
from uldp.schemas.records import Report


@pytest.mark.parametrize("step", ["schemaless_reader", "schemaless_writer"])
def test_a_lack_of_memory_is_no_malformed_body(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(*_: object) -> None:
        raise MemoryError

    message = Report("c", 1, bytes(16), 0, 1).encode()
    monkeypatch.setattr(fastavro, step, without_memory)
    with pytest.raises(MemoryError):
        report_store().decode(message)
