"""A pipeline's graph as text: what decides whether a job that runs can be updated in place, and nothing else.

Dataflow matches the steps of a new job with those of the old one by their full names, and refuses the new one when
the coders of what lies in state or is under way have changed; Flink restores a savepoint by the same names. So the
text has names, edges, coders, windowing, state, timers and side inputs. It leaves out code, ids, display data and
environments, which may change, and is sorted, because steps may be written down in another order.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from apache_beam.coders import Coder
from apache_beam.portability.api import standard_window_fns_pb2 as windows
from apache_beam.portability.api.org.apache.beam.model.pipeline.v1 import beam_runner_api_pb2 as api
from apache_beam.runners.pipeline_context import PipelineContext

_PARDO = "beam:transform:pardo:v1"
_COMBINE = "beam:transform:combine_per_key:v1"
_PICKLED = "beam:coder:pickled_python:v1"
_WINDOW_FNS: dict[str, Any] = {
    "beam:window_fn:fixed_windows:v1": windows.FixedWindowsPayload,
    "beam:window_fn:sliding_windows:v1": windows.SlidingWindowsPayload,
    "beam:window_fn:session_windows:v1": windows.SessionWindowsPayload,
}


def describe_graph(pipeline: api.Pipeline) -> str:
    """Describe a pipeline, as ``Pipeline.to_runner_api`` gives it: steps that do something, by their full names.

    Each has its URN, and below it where its inputs come from; the coder of its outputs, and their windowing if it is
    not that of all inputs; its state, timers and accumulators. Equal texts mean that Beam's model knows nothing that
    is against an update. What a coder of our own writes is not in the model: that is for the coder to keep, or to
    refuse.
    """
    graph = _Graph(pipeline.components)
    return "\n\n".join("\n  ".join(step) for step in sorted(graph.steps())) + "\n"


class _Graph:
    def __init__(self, components: api.Components) -> None:
        self._components = components
        self._context = PipelineContext(components)
        # A composite that gives its input back has no steps either.
        self._leaves = [
            transform
            for transform in components.transforms.values()
            if not transform.subtransforms and not set(transform.outputs.values()) & set(transform.inputs.values())
        ]
        self._producers = {
            pcollection: f"{leaf.unique_name}{'' if tag == 'None' else f'[{tag}]'}"
            for leaf in self._leaves
            for tag, pcollection in leaf.outputs.items()
        }

    def steps(self) -> Iterator[list[str]]:
        """Yield the lines of each step."""
        combines = (
            one for one in self._components.transforms.values() if one.spec.urn == _COMBINE and one.subtransforms
        )
        for transform in (*self._leaves, *combines):
            yield [f"{transform.unique_name}: {_short(transform.spec.urn)}", *self._details(transform)]

    def _details(self, transform: api.PTransform) -> Iterator[str]:
        is_pardo = transform.spec.urn == _PARDO
        pardo = api.ParDoPayload.FromString(transform.spec.payload) if is_pardo else api.ParDoPayload()
        inputs = transform.inputs.items()
        yield from sorted(f"in {self._producers[name]}" for tag, name in inputs if tag not in pardo.side_inputs)
        for tag, side in sorted(pardo.side_inputs.items()):
            producer = self._producers[transform.inputs[tag]]
            yield f"side input {tag}, {_short(side.access_pattern.urn)}: {producer}"
        for tag, pcollection in sorted(transform.outputs.items()):
            yield f"out{'' if tag == 'None' else f'[{tag}]'} {self._pcollection(pcollection)}"
            windowing = self._windowing(pcollection)
            if {tuple(self._windowing(before)) for before in transform.inputs.values()} != {tuple(windowing)}:
                yield from (f"  {line}" for line in windowing)
        for name, state in sorted(pardo.state_specs.items()):
            yield f"state {name}: {self._state(state)}"
        for name, timer in sorted(pardo.timer_family_specs.items()):
            domain = api.TimeDomain.Enum.Name(timer.time_domain).lower()
            yield f"timer {name}: {domain}, {self._coder(timer.timer_family_coder_id)}"
        if transform.spec.urn == _COMBINE:
            combine = api.CombinePayload.FromString(transform.spec.payload)
            yield f"accumulator: {self._coder(combine.accumulator_coder_id)}"

    def _pcollection(self, name: str) -> str:
        pcollection = self._components.pcollections[name]
        bounded = "bounded" if pcollection.is_bounded == api.IsBounded.BOUNDED else "unbounded"
        return f"{bounded}, {self._coder(pcollection.coder_id)}"

    def _windowing(self, name: str) -> list[str]:
        strategy = self._components.windowing_strategies[self._components.pcollections[name].windowing_strategy_id]
        payload = _WINDOW_FNS.get(strategy.window_fn.urn, windows.GlobalWindowsPayload)
        sizes = _text(payload.FromString(strategy.window_fn.payload))
        rest = api.WindowingStrategy()
        rest.CopyFrom(strategy)
        for shown in ("window_fn", "trigger", "window_coder_id", "environment_id"):
            rest.ClearField(shown)
        return [
            _joined(_short(strategy.window_fn.urn), filter(None, [sizes])),
            f"trigger {_text(strategy.trigger)}",
            _text(rest),
        ]

    def _state(self, state: api.StateSpec) -> str:
        kind = str(state.WhichOneof("spec"))
        fields = getattr(state, kind).ListFields()
        coders = [self._coder(value) for field, value in fields if field.name.endswith("coder_id")]
        return f"{kind.removesuffix('_spec')}, {', '.join(coders)}"

    def _coder(self, name: str) -> str:
        coder = self._components.coders[name]
        if coder.spec.urn == _PICKLED:
            return _python_coder(self._context.coders.get_by_id(name))
        return _joined(_short(coder.spec.urn), map(self._coder, coder.component_coder_ids))


def _python_coder(coder: Coder) -> str:
    """Name the class of a coder that only Python knows, and those of the coders that it is made of."""
    return _joined(
        type(coder).__name__, (_python_coder(part) for part in vars(coder).values() if isinstance(part, Coder))
    )


def _joined(name: str, parts: Iterable[str]) -> str:
    inner = ", ".join(parts)
    return f"{name}({inner})" if inner else name


def _text(message: Any) -> str:
    """Write the fields that are set, by their number."""
    return ", ".join(_field(field, value) for field, value in message.ListFields())


def _field(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return f"{field.name} {field.enum_type.values_by_number[value].name.lower()}"
    if field.message_type is None:
        return f"{field.name} {value}"
    messages = [value] if hasattr(value, "ListFields") else value  # one, or a repeated field
    return _joined(field.name, filter(None, map(_text, messages)))


def _short(urn: str) -> str:
    """Leave out what all of Beam's URNs begin with, and the first version."""
    return urn.split(":", 2)[-1].removesuffix(":v1") if urn.startswith("beam:") else urn
