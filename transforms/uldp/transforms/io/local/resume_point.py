"""The point at which a job of a local stream goes on after a restart, in a file beside its results."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from uldp.collector.collections import YEAR_9000
from uldp.schemas.errors import DataError
from uldp.schemas.regular_files import read_regular
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.strict import Strict
from uldp.transforms.io.local.journal import JournalEnd

#: The file of the resume point of a job, beside its results.
RESUME = "resume.json"
SegmentName = Annotated[str, Field(pattern=r"^[0-9]{12}\.avro$")]
Watermark = Annotated[int, Field(gt=-YEAR_9000, lt=YEAR_9000)] | None


class ResumePoint(Strict):
    """Where a job goes on. Watermarks are in milliseconds, and None before the first message."""

    job: str  # A digest of the properties of the job that decide what it writes
    #: The first segment to read. No window that can change, and no id that matters to it, needs one before.
    first: SegmentName
    first_watermark: Watermark  # the watermark before this segment
    #: The first segment of the event that the job was reading. What follows from those before is written.
    segment: SegmentName
    watermark: Watermark  # the watermark before this segment
    last: SegmentName  # the last segment of this event
    journal: JournalEnd  # how far the journal went

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if not self.first <= self.segment <= self.last:
            raise ValueError("segments do not ascend")
        return self

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the point that ``ResumePoints`` wrote; None if there is none; DataError if it is damaged."""
        try:
            return cls.model_validate_json(read_regular(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise DataError(
                f"{plain(str(path))}: not a resume point; remove the file, and the job reads its stream from its start"
            ) from None
