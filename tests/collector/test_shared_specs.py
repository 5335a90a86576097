"""Specs of a job are pickled once, and are one object in each process."""

import gc
import pickle
import subprocess
import sys

import pytest

from tests import build
from uldp.collector.shared_specs import SharedSpecs

SPECS = [build.spec(collection=name) for name in ("a", "b")]


def test_all_copies_in_a_process_are_one_object() -> None:
    shared = SharedSpecs(SPECS)
    assert pickle.loads(pickle.dumps(shared)) is shared
    assert pickle.loads(pickle.dumps([shared, shared])) == [shared, shared]


def test_copies_of_a_job_outlive_an_earlier_job_with_the_same_specs() -> None:
    earlier, shared = SharedSpecs(SPECS), SharedSpecs(SPECS)
    pickle.dumps(earlier)
    pickled = pickle.dumps(shared)
    del earlier
    gc.collect()
    assert pickle.loads(pickled) is shared


def test_another_process_builds_them_once() -> None:
    pickled = [pickle.dumps((step, SharedSpecs(SPECS))).hex() for step in ("decode", "count")]
    program = """
import pickle, sys
(_, first), (_, second) = (pickle.loads(bytes.fromhex(each)) for each in sys.argv[1:])
assert first is second and pickle.loads(pickle.dumps(first)) is first
print(*first.served)
"""
    ended = subprocess.run([sys.executable, "-c", program, *pickled], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["('a',", "1)", "('b',", "1)"]


def test_specs_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="two specs have collection a and version 1"):
        SharedSpecs([SPECS[0], SPECS[0]])
