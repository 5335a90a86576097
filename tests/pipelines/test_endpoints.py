"""What --from and --to name, and what each command says of it. Brokers themselves are in tests/cluster."""

from pathlib import Path

import pytest

from pipelines.cluster import cluster_options
from pipelines.endpoints import check_whole, parse_source
from pipelines.jobs import JobError
from pipelines.outputs import prepare_results, send_specs
from schemas.collection import CollectionSpec
from transforms.kafkatopic import KafkaTopic
from transforms.pubsubname import Subscription

EXAMPLE = Path(__file__).parents[2] / "examples" / "manhattan" / "spec.yaml"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("stream", Path),
        ("archive/2026.avro", Path),
        ("kafka:broker:9092/reports", KafkaTopic),
        ("kafka:one:9092,two:9093/reports", KafkaTopic),
        ("pubsub:projects/project/subscriptions/reports", Subscription),
    ],
)
def test_a_source_is_told_by_how_it_begins(text: str, kind: type) -> None:
    source = parse_source(text)
    assert isinstance(source, kind)
    assert str(source) == text


@pytest.mark.parametrize(
    "text", ["kafka:broker/reports", "kafka:broker:9092", "pubsub:reports", "pubsub:projects/p/topics/t"]
)
def test_what_begins_like_a_stream_and_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="; "):
        parse_source(text)


def test_a_subscription_has_no_end() -> None:
    with pytest.raises(ValueError, match="has no end to read to; follow it with uldp stream"):
        check_whole(parse_source("pubsub:projects/project/subscriptions/reports"))


@pytest.mark.parametrize("arguments", [[], ["--runner=DirectRunner"]])
def test_a_broker_needs_a_runner_with_checkpoints(arguments: list[str]) -> None:
    with pytest.raises(JobError, match="needs a runner that takes checkpoints: add --runner=FlinkRunner"):
        cluster_options(arguments)


def test_flink_is_told_to_take_checkpoints_unless_a_user_says_otherwise() -> None:
    options = cluster_options(["--runner=FlinkRunner", "--checkpointing_interval=60000"])
    told = options.get_all_options(retain_unknown_options=True)
    assert (told["streaming"], told["save_main_session"]) == (True, False)
    assert (int(told["checkpointing_interval"]), told["checkpointing_mode"]) == (60000, "EXACTLY_ONCE")


def test_a_mistyped_option_is_noticed_unless_a_job_server_may_know_it() -> None:
    with pytest.raises(JobError, match="unknown option --parallelismm"):
        cluster_options(["--runner=DataflowRunner", "--parallelismm=2"])
    cluster_options(["--runner=FlinkRunner", "--parallelism=2"])


def test_specs_are_sent_as_they_are_put_into_a_folder(tmp_path: Path) -> None:
    specs = [CollectionSpec.load(EXAMPLE)]
    prepare_results(tmp_path / "put", specs)
    send_specs(str(tmp_path / "sent"), specs)
    put, sent = (
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (tmp_path / "put", tmp_path / "sent")
    )
    assert len(put) > 1
    assert put == sent
