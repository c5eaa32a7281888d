"""What kustomize makes of the manifests: valid by Kubernetes' schemas, and what it should be."""

import copy
import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from support.deploy_tools import DEPLOY, image_settings, read_yaml, run, tool, variables

KUBERNETES = DEPLOY / "kubernetes"
VERSIONS = ("1.27", "1.37")
"""The oldest with stable gRPC probes and budgets that let go of what is ill; the newest known."""
LABELS = {"app.kubernetes.io/name": "dragoman"}


Objects = dict[str, Any]
"""By kind; of services, by name."""


def built(directory: Path) -> Objects:
    kustomize = tool("kubectl, or by itself", "kubectl", "kustomize")
    word = "kustomize" if Path(kustomize).name == "kubectl" else "build"
    return {
        each["metadata"]["name"] if each["kind"] == "Service" else each["kind"]: each
        for each in yaml.safe_load_all(run(kustomize, word, directory))
    }


@pytest.fixture(scope="module", params=["cpu", "gpu", "cpu-tls", "gpu-tls"])
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """An overlay by itself, or with TLS on top as the component says to use it."""
    tmp_path = tmp_path_factory.mktemp("kustomize")
    name, _, tls = request.param.partition("-")
    overlay = KUBERNETES / "overlays" / name
    if not tls:
        return built(overlay)
    own = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(overlay, tmp_path)],
        "components": [os.path.relpath(KUBERNETES / "components" / "tls", tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    return built(tmp_path)


def container(variant: Objects) -> dict[str, Any]:
    (only,) = variant["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def environment(variant: Objects) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(variant)["env"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_valid(variant: Objects, version: str) -> None:
    for each in variant.values():
        kubernetes_validate.validate(each, version, strict=True)


def test_the_validator_sees_what_is_wrong(variant: Objects) -> None:
    deployment = copy.deepcopy(variant["Deployment"])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["livenessProbe"]["period"] = container["livenessProbe"].pop("periodSeconds")
    with pytest.raises(kubernetes_validate.ValidationError, match="period"):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


def test_everything_selects_the_pods_and_nothing_else(variant: Objects) -> None:
    assert variant["Deployment"]["spec"]["template"]["metadata"]["labels"] == LABELS
    assert variant["Deployment"]["spec"]["selector"]["matchLabels"] == LABELS
    assert variant["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == LABELS
    assert variant["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == LABELS
    for name in ("dragoman", "dragoman-proxied"):
        assert variant[name]["spec"]["selector"] == LABELS
    # Clients need not be servers.
    client = variant["NetworkPolicy"]["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
    assert client == {"dragoman.client": "true"}


def test_it_ends_later_than_it_drains(variant: Objects) -> None:
    pod = variant["Deployment"]["spec"]["template"]["spec"]
    (word, pause) = container(variant)["lifecycle"]["preStop"]["exec"]["command"]
    assert word == "sleep"
    grace = float(environment(variant)["DRAGOMAN_GRACE"])
    assert pod["terminationGracePeriodSeconds"] >= grace + float(pause) + 10


def test_probes_ask_for_health(variant: Objects) -> None:
    """Which knows of the engine's heartbeat, and not of queues; Kubernetes' own can't speak TLS."""
    with_tls = "DRAGOMAN_TLS_KEY" in environment(variant)
    port = next(p for p in container(variant)["ports"] if p["name"] == "grpc")["containerPort"]
    expected: dict[str, Any] = {"grpc": {"port": port}}
    if with_tls:
        expected = {"exec": {"command": ["dragoman", "health"]}}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container(variant)[name]
        asked = {
            key: probe[key] for key in ("grpc", "exec", "httpGet", "tcpSocket") if key in probe
        }
        assert asked == expected, name
    start, live = container(variant)["startupProbe"], container(variant)["livenessProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 300
    # The server itself gives up on an engine first, and says why.
    stall = float(environment(variant)["DRAGOMAN_STALL"])
    assert live["periodSeconds"] * live["failureThreshold"] > stall


def test_settings_and_ports_are_those_of_the_server(variant: Objects) -> None:
    assert set(environment(variant)) <= set(variables())
    has_gpu = "nvidia.com/gpu" in container(variant)["resources"]["limits"]
    image = image_settings("gpu" if has_gpu else "cpu")
    ports = {each["name"]: str(each["containerPort"]) for each in container(variant)["ports"]}
    assert ports == {
        "grpc": image["DRAGOMAN_LISTEN"].rpartition(":")[2],
        "metrics": image["DRAGOMAN_METRICS"].rpartition(":")[2],
    }
    annotations = variant["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == ports["metrics"]


def test_it_is_open_only_where_it_has_no_tls(variant: Objects) -> None:
    given = environment(variant)
    assert (given["DRAGOMAN_ALLOW_OPEN"] == "true") == ("DRAGOMAN_TLS_KEY" not in given)


def test_it_is_confined(variant: Objects) -> None:
    """As the strictest of Kubernetes' pod security standards wants it, and read-only besides."""
    assert variant["Namespace"]["metadata"]["labels"] == {
        "pod-security.kubernetes.io/enforce": "restricted"
    }
    pod = variant["Deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(variant)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    resources = container(variant)["resources"]
    assert resources["limits"] == resources["requests"]


def test_clients_find_every_pod_and_scaling_keeps_some(variant: Objects) -> None:
    assert variant["dragoman"]["spec"]["clusterIP"] == "None"
    assert (
        "replicas" not in variant["Deployment"]["spec"]
    )  # or each apply would undo the autoscaler
    scaler = variant["HorizontalPodAutoscaler"]["spec"]
    assert scaler["minReplicas"] > variant["PodDisruptionBudget"]["spec"]["maxUnavailable"]


def test_the_adapter_offers_what_the_autoscaler_asks_for(variant: Objects) -> None:
    (metric,) = variant["HorizontalPodAutoscaler"]["spec"]["metrics"]
    (rule,) = read_yaml(KUBERNETES / "prometheus-adapter.yaml")["rules"]
    assert metric["pods"]["metric"]["name"] == rule["name"]["as"]


def test_the_operator_names_the_job_as_the_alerts_do() -> None:
    monitor = read_yaml(KUBERNETES / "components" / "prometheus-operator" / "podmonitor.yaml")
    spec = monitor["spec"]
    assert spec["selector"]["matchLabels"] == LABELS
    assert LABELS[spec["jobLabel"]] == "dragoman"
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == "metrics"
