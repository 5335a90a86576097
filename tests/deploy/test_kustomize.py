"""The manifests as a base with an overlay: the overlay gives each name, changes nothing else, and loses no object."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_kubernetes import FOLDER, KUBERNETES, NAMESPACES, PLACEHOLDERS
from tests.deploy.tools import complaints, needs_downloads, tools

OVERLAY = FOLDER.parent / "overlays" / "example"
KUSTOMIZATION = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text(encoding="utf-8"))
NAMES = yaml.safe_load((OVERLAY / "names.yaml").read_text(encoding="utf-8"))
RESOURCES = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
BASE = [each for name in RESOURCES for each in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))]
JOB = "app.kubernetes.io/component"
PLACEHOLDER = re.compile(rf"\b({'|'.join(PLACEHOLDERS | NAMESPACES)})\b")

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which has kustomize, is missing")


def kustomize(folder: Path) -> str:
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def identity(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each value that is neither a map nor a list, with its path."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if items is None:
        yield path, node
    else:
        for key, value in items:
            yield from leaves(value, (*path, key))


def at(manifest: dict[str, Any], path: str) -> str:
    """Return the text that a path of kustomize names: maps by key, lists by number or by a field's value."""
    node: Any = manifest
    for part in re.findall(r"\[[^]]*\]|[^.\[\]]+", path):
        key, equals, value = part.strip("[]").partition("=")
        if equals:
            (node,) = [each for each in node if each[key] == value]
        else:
            node = node[int(key) if isinstance(node, list) else key]
    assert isinstance(node, str)
    return node


def test_the_base_lists_each_manifest() -> None:
    assert sorted(RESOURCES) == sorted(path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
    assert len({identity(each) for each in BASE}) == len(BASE)


def test_what_the_overlay_names_is_there() -> None:
    assert all((OVERLAY / each).exists() for each in KUSTOMIZATION["resources"])
    manifests = {identity(each): each for each in BASE}
    for replacement in KUSTOMIZATION["replacements"]:
        assert at(NAMES, replacement["source"]["fieldPath"])
        for target in replacement["targets"]:
            manifest = manifests[target["select"]["kind"], target["select"]["name"]]
            for path in target["fieldPaths"]:
                text, options = at(manifest, path), target.get("options")
                replaced = text.split(options["delimiter"])[options["index"]] if options else text
                assert PLACEHOLDER.fullmatch(replaced), path


@needs_kubectl
def test_the_overlay_gives_each_name_and_changes_nothing_else() -> None:
    made = {identity(each): each for each in yaml.safe_load_all(kustomize(OVERLAY))}
    assert made.keys() == {identity(each) for each in BASE}
    for manifest in BASE:
        before, after = dict(leaves(manifest)), dict(leaves(made[identity(manifest)]))
        added = after.keys() - before.keys()
        assert {path[-1] for path in added} == {"namespace"}
        assert {after[path] for path in added} == {KUSTOMIZATION["namespace"]}
        assert before.keys() <= after.keys()
        for path, value in before.items():
            assert (after[path] != value) == bool(PLACEHOLDER.search(str(value))), path
            assert not PLACEHOLDER.search(str(after[path])), path


@needs_kubectl
def test_the_base_is_what_the_files_say() -> None:
    made = {identity(each): each for each in yaml.safe_load_all(kustomize(FOLDER))}
    assert made == {identity(each): each for each in BASE}


def test_a_label_tells_the_job_from_what_it_needs() -> None:
    labels = {identity(each): each["metadata"].get("labels", {}).get(JOB) for each in BASE}
    assert {name for name, label in labels.items() if label == "job"} == {("Job", "uldp-stream")}


@needs_kubectl
@needs_downloads
def test_kubernetes_takes_what_the_overlay_makes(tmp_path: Path) -> None:
    made = [each for each in yaml.safe_load_all(kustomize(OVERLAY)) if each["kind"] != "FlinkDeployment"]
    file = tmp_path / "made.yaml"
    file.write_text(yaml.safe_dump_all(made), encoding="utf-8")
    validate = [str(tools() / "bin" / "kubernetes-validate"), "--strict", f"--kubernetes-version={KUBERNETES}"]
    assert complaints([*validate, str(file)]) == ""
