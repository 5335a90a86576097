"""What this project replaces or reads of Beam's ``BundleBasedDirectRunner``, which only jobs of this machine import.

A new version of Beam may change these names without notice; a job on a cluster must not fail by that. All are older
than the versions that are supported.

- ``EvaluationContext``: where the runner keeps the state of keys, which ``small_state`` of ``lighter_runner`` tidies.
- ``DirectUnmergedState``: what it keeps of a key, which ``copied_state`` copies.
- ``TransformWatermarks``: where it looks for timers that are due, for ``next_timers``.
- ``transform_evaluator``: where it pickles steps, which ``copied_steps`` copies.
- ``direct_runner``: where it takes its clock from, which ``uldp.transforms.clock`` reads.
"""

from apache_beam.runners.direct import direct_runner, transform_evaluator
from apache_beam.runners.direct.evaluation_context import DirectUnmergedState, EvaluationContext
from apache_beam.runners.direct.watermark_manager import _TransformWatermarks as TransformWatermarks
