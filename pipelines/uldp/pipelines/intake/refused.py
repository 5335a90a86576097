"""A sample of the messages that were refused for good, as a job keeps rejected ones: a bad client is seen by them."""

import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from uldp.pipelines.intake.edge import RateLimit
from uldp.pipelines.intake.judging import Refusal
from uldp.schemas.file_errors import file_error_text
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected
from uldp.transforms.io.durable_files import container_bytes, encode_record, write_file
from uldp.transforms.io.listing import paths_below

_LOG = logging.getLogger(__name__)
#: So many messages of each reason are kept in an hour, and so many bytes of files in all; the oldest go.
_EACH, _HOUR, _MOST_BYTES = 100, 3600, 64 << 20


class RefusedSample:
    """Writes files of rejected messages into a folder, made with the first, which only their owner may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left = RateLimit(_EACH, _HOUR)
        self._software = metadata.version("uldp-stream")

    def keep(self, refused: Sequence[tuple[Message, Refusal]]) -> None:
        """Write some of the messages, or log why they cannot be written."""
        records = [self._record(*each) for each in refused if not self._left.take(each[1].reason, 1)]
        if not records:
            return
        name = f"{records[0].publish_time:015d}-{secrets.token_hex(4)}.avro"
        encoded = [encode_record("rejected", record.to_avro()) for record in records]
        try:
            write_file(str(self._folder / name), container_bytes("rejected", encoded, deflated=True), private=True)
            self._remove_oldest()
        except OSError as error:
            _LOG.warning("%s", file_error_text(error))

    def _record(self, message: Message, refusal: Refusal) -> Rejected:
        return Rejected(
            stage="intake",
            reason=refusal.reason.value,
            detail=refusal.detail,
            bodies=(message.data,),
            attributes=dict(message.attributes),
            publish_times=(message.publish_time,),
            source=f"intake-{secrets.token_hex(8)}",
            attempt=1,
            software=self._software,
        )

    def _remove_oldest(self) -> None:
        sizes = {path: path.stat().st_size for path in sorted(paths_below(self._folder, "*.avro"))}
        excess = sum(sizes.values()) - _MOST_BYTES
        for path, size in sizes.items():
            if excess <= 0:
                return
            with suppress(FileNotFoundError):
                path.unlink()
            excess -= size
