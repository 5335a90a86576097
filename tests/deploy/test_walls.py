"""What a container may do, and whom it reaches: nothing that it does not need, on Kubernetes and with compose."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.dockerfile import USER
from tests.deploy.test_compose import PROJECT, SERVICES
from tests.deploy.test_kubernetes import CONFIG, FLINK, JOB, SERVER, SERVICE, load, task_manager
from tests.deploy.tools import DEPLOY

PART_OF, COMPONENT = "app.kubernetes.io/part-of", "app.kubernetes.io/component"
POLICIES = {policy["metadata"]["name"]: policy["spec"] for policy in load("network.yaml")}
ACCOUNT, ROLE, BINDING = load("account.yaml")
FLINK_POD = FLINK["spec"]["podTemplate"]
SERVER_POD, JOB_POD = SERVER["spec"]["template"], JOB["spec"]["template"]
#: The ports of Flink that are the same at each start: some by themselves, the others by its configuration.
RPC_OF_JOB_MANAGER, BLOBS, RPC_OF_TASK_MANAGER, REST = 6123, 6124, 6122, 8081
DATA, QUERIES = int(CONFIG["taskmanager.data.port"]), int(CONFIG["metrics.internal.query-service.port"])
(METRICS,) = {port["containerPort"] for port in FLINK_POD["spec"]["containers"][0]["ports"]}
JOBS = {port["port"] for port in SERVICE["spec"]["ports"]}
#: Who opens a connection to whom, at which ports.
CONNECTIONS = {
    ("jobmanager", "taskmanager"): {RPC_OF_TASK_MANAGER, QUERIES},
    ("taskmanager", "jobmanager"): {RPC_OF_JOB_MANAGER, BLOBS},
    ("taskmanager", "taskmanager"): {DATA},
    ("jobserver", "jobmanager"): {REST},
    ("job", "jobserver"): JOBS,
}
#: Who else is let in.
GUESTS = {("OPERATOR", "jobmanager"): {REST}, ("MONITORING", "jobmanager"): {METRICS}}
GUESTS[("MONITORING", "taskmanager")] = {METRICS}
NAMESPACE = "kubernetes.io/metadata.name"


def component(role: str) -> dict[str, Any]:
    labels: dict[str, Any] = FLINK["spec"][role]["podTemplate"]["metadata"]["labels"]
    return {**FLINK_POD["metadata"]["labels"], **labels}


PODS = {
    "jobmanager": component("jobManager"),
    "taskmanager": component("taskManager"),
    "jobserver": SERVER_POD["metadata"]["labels"],
    "job": JOB_POD["metadata"]["labels"],
}


def ports(rule: dict[str, Any]) -> set[int]:
    return {port["port"] for port in rule["ports"]}


def peers(rule: dict[str, Any], side: str) -> Iterator[str]:
    """Yield components, and namespaces of others."""
    for peer in rule[side]:
        if "namespaceSelector" in peer:
            yield peer["namespaceSelector"]["matchLabels"][NAMESPACE]
        elif "podSelector" in peer:
            labels = peer["podSelector"]["matchLabels"]
            assert labels[PART_OF] == PODS[labels[COMPONENT]][PART_OF]
            yield labels[COMPONENT]


def allowed(direction: str, side: str) -> dict[tuple[str, str], set[int]]:
    """Return by peer and component the ports that the policies of components allow."""
    found: dict[tuple[str, str], set[int]] = {}
    for name in PODS:
        for rule in POLICIES[f"uldp-stream-{name}"].get(direction, []):
            for peer in peers(rule, side):
                found.setdefault((peer, name), set()).update(ports(rule))
    return found


def test_each_pod_is_under_the_policy_that_allows_nothing() -> None:
    everything = POLICIES["uldp-stream"]
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    (names,) = everything["egress"]
    assert ports(names) == {53}
    for name, labels in PODS.items():
        assert everything["podSelector"]["matchLabels"].items() <= labels.items()
        assert POLICIES[f"uldp-stream-{name}"]["podSelector"]["matchLabels"].items() <= labels.items()
        assert labels[COMPONENT] == name


def test_pods_are_let_in_by_those_that_call_them_alone() -> None:
    assert allowed("ingress", "from") == CONNECTIONS | GUESTS


def test_pods_are_let_out_to_those_that_they_call_alone() -> None:
    assert {(caller, called): opened for (called, caller), opened in allowed("egress", "to").items()} == CONNECTIONS


@pytest.mark.parametrize("name", ["jobmanager", "taskmanager", "job"])
def test_brokers_and_buckets_are_reached_where_they_are_used(name: str) -> None:
    (selected,) = POLICIES["uldp-stream-brokers"]["podSelector"]["matchExpressions"]
    assert name in selected["values"]
    assert "jobserver" not in selected["values"]


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "flink", FLINK_POD["spec"]["containers"][0]
    yield "pool", task_manager("pool")
    yield "jobserver", SERVER_POD["spec"]["containers"][0]
    yield "job", JOB_POD["spec"]["containers"][0]


@pytest.mark.parametrize(("name", "container"), list(containers()), ids=lambda value: value if value is str else "")
def test_a_container_of_kubernetes_is_confined(name: str, container: dict[str, Any]) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }, name
    assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("pod", [FLINK_POD, SERVER_POD, JOB_POD])
def test_a_pod_is_no_root_and_has_scratch_alone(pod: dict[str, Any]) -> None:
    assert pod["spec"]["securityContext"].items() >= {"runAsNonRoot": True, "runAsUser": USER, "fsGroup": USER}.items()
    assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert [volume for volume in pod["spec"]["volumes"] if volume.keys() != {"name", "emptyDir"}] == []


def test_only_the_job_manager_may_make_pods() -> None:
    account = ACCOUNT["metadata"]["name"]
    task_managers = FLINK["spec"]["taskManager"]["podTemplate"]["spec"]
    assert CONFIG["kubernetes.taskmanager.service-account"] == account
    for pod in (SERVER_POD["spec"], JOB_POD["spec"]):
        assert pod["serviceAccountName"] == account
        assert pod["automountServiceAccountToken"] is False
    assert ACCOUNT["automountServiceAccountToken"] is task_managers["automountServiceAccountToken"] is False
    assert BINDING["roleRef"]["name"] == ROLE["metadata"]["name"]
    assert [subject["name"] for subject in BINDING["subjects"]] == [account]
    assert ROLE["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]


def test_the_pool_has_no_token_and_flink_beside_it_has() -> None:
    assert [mount["name"] for mount in task_manager("flink-main-container")["volumeMounts"]] == ["token"]
    assert [mount["name"] for mount in task_manager("pool")["volumeMounts"]] == ["tmp-of-pool"]


def test_containers_of_flink_are_merged_by_name() -> None:
    # Merged by position, the pool would be Flink's own container.
    assert CONFIG["kubernetes.operator.pod-template.merge-arrays-by-name"] == "true"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_of_compose_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges"]
    assert name == "data" or ("cap_add" not in service and service.get("user") != "root")


@pytest.mark.parametrize("name", ["pool-1", "pool-2", "job", "jobserver"])
def test_what_takes_bytes_or_jobs_cannot_write_beside_its_scratch(name: str) -> None:
    assert SERVICES[name]["read_only"] is True
    assert SERVICES[name]["tmpfs"] == ["/tmp"]


def test_only_a_service_that_publishes_a_port_reaches_other_networks() -> None:
    assert PROJECT["networks"]["default"] == {"internal": True}
    outside = {name for name, service in SERVICES.items() if "published" in service.get("networks", [])}
    assert outside == {name for name, service in SERVICES.items() if "ports" in service}


def test_the_page_of_ports_has_each_port_of_the_manifests() -> None:
    page = (DEPLOY.parent / "docs" / "ports.md").read_text(encoding="utf-8")
    named = {*set().union(*CONNECTIONS.values(), *GUESTS.values()), 50000}
    assert {port for port in named if str(port) not in page} == set()
