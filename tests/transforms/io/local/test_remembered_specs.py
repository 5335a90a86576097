"""What Beam remembers of a class of ``DoFn`` is what it would read again."""

from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.transforms import core, userstate
from apache_beam.typehints.typecheck import TypeCheckWrapperDoFn

from uldp.transforms.io.local.lighter_runner import remembered_specs

#: As Beam has them: this is read before a fixture of all tests remembers their answers.
READ, READ_ARGUMENTS = userstate.get_dofn_specs, core.get_function_arguments
COUNT, OTHER = (userstate.ReadModifyWriteStateSpec(name, VarIntCoder()) for name in ("count", "other"))


class Counting(beam.DoFn):
    def process(self, element: Any, count: Any = beam.DoFn.StateParam(COUNT)) -> None: ...


class Other(Counting):
    def process(self, element: Any, other: Any = beam.DoFn.StateParam(OTHER)) -> None: ...


@dataclass
class Unhashable:
    """A function that no dictionary takes as a key."""

    factor: int = 2

    def __call__(self, element: int, times: int = 1) -> list[int]:
        return [self.factor * element] * times


def made(kind: Any) -> Any:
    return kind()


def declared(dofn: beam.DoFn) -> tuple[set[Any], set[Any]]:
    return userstate.get_dofn_specs(dofn)  # by its module, as Beam does


@pytest.mark.parametrize("dofn", [made(Counting), made(Other), made(beam.DoFn), beam.Map(str).fn])
def test_specs_are_those_that_beam_reads(dofn: beam.DoFn) -> None:
    read = READ(dofn)
    with remembered_specs():
        assert [declared(dofn), declared(dofn)] == [read, read]
        declared(dofn)[0].clear()
        assert declared(dofn) == read


@pytest.mark.parametrize("method", ["process", "start_bundle"])
@pytest.mark.parametrize(
    "dofn", [made(Counting), made(Other), beam.Map(lambda a, b=3: a).fn, beam.FlatMap(Unhashable()).fn]
)
def test_arguments_are_those_that_beam_reads(dofn: beam.DoFn, method: str) -> None:
    read = READ_ARGUMENTS(dofn, method)
    with remembered_specs():
        others = made(Counting), made(Other), beam.Map(str).fn
        found = [core.get_function_arguments(each, method) for each in (*others, dofn, dofn)]
        assert found[3:] == [read, read]
        found[3][0].clear()
        assert core.get_function_arguments(dofn, method) == read


def test_a_wrapper_declares_what_the_dofn_in_it_does() -> None:
    with remembered_specs():
        found = [
            declared(TypeCheckWrapperDoFn(each, each.get_type_hints()))[0] for each in map(made, (Counting, Other))
        ]
    assert found == [{COUNT}, {OTHER}]


def test_beam_asks_as_before_when_the_context_ends() -> None:
    before = userstate.get_dofn_specs, core.get_function_arguments
    with remembered_specs():
        assert userstate.get_dofn_specs is not before[0]
        assert core.get_function_arguments is not before[1]
    assert (userstate.get_dofn_specs, core.get_function_arguments) == before
