"""A file of statistics from before their cells could be null is still read."""

import io
from typing import Any

import fastavro
import pytest

from tests import build
from uldp.schemas.codec.blocks import Container, ContainerError
from uldp.schemas.framing import load_schema, parse_schema
from uldp.schemas.statistic import Statistic

STATISTIC = build.pane([5, 0, 2], flags=("incomplete",))


def before(kind: Any = None) -> Any:
    """The schema of statistics, with another type of its cells: by default, the one that they had."""
    shipped = load_schema("statistic")
    cells = next(field["type"][1] for field in shipped["fields"] if field["name"] == "cells")
    fields = [field | {"type": kind or cells} if field["name"] == "cells" else field for field in shipped["fields"]]
    return parse_schema({"type": "record", "name": shipped["name"], "fields": fields})


def test_cells_that_could_not_be_null() -> None:
    file = io.BytesIO()
    fastavro.writer(file, before(), [STATISTIC.to_avro()])
    file.seek(0)
    assert [Statistic.from_avro(value) for value in Container.open(file).records()] == [STATISTIC]


def test_no_other_type_is_read() -> None:
    file = io.BytesIO()
    fastavro.writer(file, before("bytes"), [STATISTIC.to_avro() | {"cells": b""}])
    file.seek(0)
    with pytest.raises(ContainerError, match="a schema that uldp does not know"):
        Container.open(file)
