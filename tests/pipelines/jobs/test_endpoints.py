"""Sources and results of jobs: what each command accepts and refuses. Brokers themselves are in tests/cluster."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.cli import main
from uldp.pipelines.jobs.cluster import BrokerJob, cluster_options, follow_broker
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.local import backfill, pipeline_options
from uldp.pipelines.jobs.outputs import claimed
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.process import run_apart
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.errors import RequestError
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.endpoints import Endpoint, Following, parse_endpoint
from uldp.transforms.io.kafka.endpoint import KafkaEndpoint
from uldp.transforms.io.local.stream import LocalStream

EXAMPLE = Path(__file__).parents[3] / "examples" / "manhattan" / "spec.yaml"


@pytest.mark.parametrize("arguments", [[], ["--runner=DirectRunner"]])
def test_a_broker_needs_a_runner_with_checkpoints(arguments: list[str]) -> None:
    with pytest.raises(
        RequestError, match=r"checkpoints: for Flink, add --runner=PortableRunner --job_endpoint="
    ) as refused:
        cluster_options(arguments)
    assert "docs/running.md" in str(refused.value)
    shown = (EXAMPLE.parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    options = re.findall(r"--[a-z_]+(?:=\w+Runner)?", str(refused.value))
    assert len(options) == 5
    assert [option for option in options if option not in shown] == []


def test_flink_is_told_to_take_checkpoints_unless_a_user_says_otherwise() -> None:
    options = cluster_options(["--runner=FlinkRunner", "--checkpointing_interval=60000"])
    told = options.get_all_options(retain_unknown_options=True)
    assert (told["streaming"], told["save_main_session"]) == (True, False)
    assert (int(told["checkpointing_interval"]), told["checkpointing_mode"]) == (60000, "EXACTLY_ONCE")


def test_a_mistyped_option_is_noticed_unless_a_job_server_may_know_it() -> None:
    with pytest.raises(RequestError, match="unknown option --parallelismm"):
        cluster_options(["--runner=DataflowRunner", "--parallelismm=2"])
    cluster_options(["--runner=FlinkRunner", "--parallelism=2"])


@pytest.mark.parametrize(("given", "slots"), [([], 0), (["--parallelism=20"], 20), (["--parallelism=-1"], 0)])
def test_a_source_learns_for_how_many_slots_it_is_read(given: list[str], slots: int) -> None:
    job = BrokerJob([], parse_endpoint("kafka:broker:9092/reports"), JobSettings(watermark_delay_ms=5))
    assert job.following(cluster_options(["--runner=FlinkRunner", *given])) == Following(5, slots=slots)


@pytest.mark.parametrize(("shards", "warned"), [(None, True), (8, True), (20, False)])
def test_workers_without_a_shard_are_named(shards: int | None, warned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaEndpoint, "check_following", lambda *_: None)
    said = list[str]()
    job = BrokerJob([], parse_endpoint("kafka:broker:9092/reports"), JobSettings(shards=shards, say=said.append))
    job.check(cluster_options(["--runner=FlinkRunner", "--parallelism=20"]))
    assert [f"of 20 workers, {shards or 16} remove copies and count" in line for line in said] == [True] * warned


def test_shards_are_refused_on_this_machine(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="--shards divides ids among the workers of a cluster; leave it out"):
        backfill([build.spec()], tmp_path / "in", tmp_path / "out", pipeline_options([]), JobSettings(shards=4))


@pytest.mark.parametrize("location", [[], ["--prism_location=nowhere"]])
def test_prism_is_never_downloaded(location: list[str]) -> None:
    with pytest.raises(
        RequestError, match=r"^--runner=PrismRunner needs --prism_location=FILE, .* go install .*@v2\.\d+\.0$"
    ):
        pipeline_options(["--runner=PrismRunner", *location])


def test_prism_would_lose_what_it_has_acknowledged(tmp_path: Path) -> None:
    (program := tmp_path / "prism").touch()
    options = cluster_options(["--runner=PrismRunner", f"--prism_location={program}"])
    subscription = parse_endpoint("pubsub:projects/project/subscriptions/reports")
    with pytest.raises(
        RequestError,
        match=r"reports: .* keeps only in memory; leave out --runner to .* this machine, or use Flink or Dataflow$",
    ):
        follow_broker(BrokerJob([], subscription), "out", options, run_apart=run_apart)


def identity(*specs: CollectionSpec, resumes: bool = True) -> JobIdentity:
    job = JobIdentity.of("stream", "kafka:broker:9092/reports", "topic", specs, resumes=resumes)
    return replace(job, shard_key=1)


def begin(out: str, *specs: CollectionSpec) -> str:
    with claimed(out, specs, identity(*specs)) as (results, _):
        return results


def test_workers_find_results_wherever_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert begin("out", CollectionSpec.load(EXAMPLE)) == str(tmp_path / "out")
    assert (tmp_path / "out" / "specs").is_dir()


MISMATCH = r"^mem://out: holds .* version 1 with another mechanism\.epsilon; .* or choose another --to$"


def test_results_elsewhere_are_not_mixed_with_those_of_another_device_half(far_away: dict[str, bytes]) -> None:
    """Backgrounds are no part of the device half, and are read with the spec that names them."""
    spec = CollectionSpec.load(EXAMPLE)
    fields = spec.model_dump(mode="json", exclude_none=True)
    other = CollectionSpec.parse(fields | {"mechanism": {"name": "urr", "epsilon": 1.0}}, base=EXAMPLE.parent)
    retired, next_version = spec.model_copy(update={"retired": True}), other.model_copy(update={"version": 2})
    for accepted in (spec, spec, retired, next_version):
        assert begin("mem://out", accepted) == "mem://out"
    before = dict(far_away)
    with pytest.raises(ResultsError, match=MISMATCH):
        begin("mem://out", next_version, other)
    assert before == far_away
    begin("mem://another", other)


def test_results_elsewhere_are_of_one_job(far_away: dict[str, bytes]) -> None:
    spec = CollectionSpec.load(EXAMPLE)
    begin("mem://out", spec)
    for job in (identity(spec, resumes=False), replace(identity(spec), source="other", content="other")):
        with (
            pytest.raises(ResultsError, match=r"^mem://out: holds the results of another job, uldp stream --from "),
            claimed("mem://out", [spec], job),
        ):
            pass
    del far_away["mem://out/job.json"]
    with pytest.raises(ResultsError, match=r"^mem://out: holds results, but no job\.json "):
        begin("mem://out", spec)


def test_an_archive_elsewhere_is_counted_into_results_elsewhere(tmp_path: Path, far_away: dict[str, bytes]) -> None:
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    for hour in range(2):
        reports = [build.report(1000 * hour + number, number % 5, START + hour * HOUR) for number in range(200)]
        stream.append([*map(build.message, [*reports, reports[0]]), Message(b"no report", START + hour * HOUR)])
    stream.close()
    far_away.update({f"mem://archive/{each.name}": each.read_bytes() for each in stream.segments()})

    def count(source: Path | Endpoint, out: Path | str) -> None:
        backfill([build.spec()], source, out, pipeline_options([]))

    count(stream.path, tmp_path / "here")
    for _ in range(2):
        count(parse_endpoint("mem://archive"), "mem://out")
    here = {str(file.relative_to(tmp_path / "here")): file for file in (tmp_path / "here").rglob("*.avro")}
    names = [name for name in here if name.startswith(("counts", "estimates"))]
    assert len(names) > 1
    assert {name: here[name].read_bytes() for name in names} == {name: far_away[f"mem://out/{name}"] for name in names}
    far_away["mem://archive/another.avro"] = stream.segments()[0].read_bytes()
    with pytest.raises(ResultsError, match=r"^mem://out: holds results of mem://archive, which has changed since then"):
        count(parse_endpoint("mem://archive"), "mem://out")


def test_what_is_elsewhere_cannot_be_followed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--spec", str(EXAMPLE), "--from", "mem://archive", "--to", "out"]
    monkeypatch.setattr("sys.argv", ["uldp", "stream", *arguments])
    with pytest.raises(SystemExit):
        main()
    remedy = "count its messages with uldp backfill (see uldp stream --help)"
    assert capsys.readouterr().err == f"error: mem://archive: cannot be followed; {remedy}\n"
