"""What kustomize makes of the manifests: valid by Kubernetes' schemas, and what it should be."""

import copy
import json
import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from dragoman_server.grpc_api.handlers import SERVICE
from support import ROOT
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


def combined(tmp_path: Path, overlay: str, *components: str) -> Objects:
    """An overlay with components on top, as these say to use them."""
    own = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(KUBERNETES / "overlays" / overlay, tmp_path)],
        "components": [
            os.path.relpath(KUBERNETES / "components" / name, tmp_path) for name in components
        ],
        "images": [{"name": "dragoman-bundle", "newName": "mine", "newTag": "2"}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    return built(tmp_path)


VARIANTS = {
    "cpu": (),
    "gpu": (),
    "cpu tls": ("tls",),
    "gpu tls": ("tls",),
    "cpu image": ("bundle-image",),
    "gpu image": ("bundle-image",),
    "cpu volume ingress": ("bundle-volume", "ingress"),
    "cpu gateway": ("gateway",),
}
"""Components on top of an overlay, which is the first word."""


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """An overlay by itself, or with components on top."""
    overlay, components = request.param.partition(" ")[0], VARIANTS[request.param]
    if not components:
        return built(KUBERNETES / "overlays" / overlay)
    return combined(tmp_path_factory.mktemp("kustomize"), overlay, *components)


_VALID: set[tuple[str, str]] = set()
"""Objects that were found to be valid, and for which version: most are in all variants alike."""


def validate(found: dict[str, Any], version: str) -> None:
    key = json.dumps(found, sort_keys=True), version
    if key in _VALID or found["apiVersion"].startswith("gateway."):  # which has no schema here
        return
    kubernetes_validate.validate(found, version, strict=True)
    _VALID.add(key)


def container(variant: Objects) -> dict[str, Any]:
    (only,) = variant["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def environment(variant: Objects) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(variant)["env"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_valid(variant: Objects, version: str) -> None:
    for each in variant.values():
        validate(each, version)


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
        "http": image["DRAGOMAN_HTTP"].rpartition(":")[2],
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
    for each in (container(variant), *pod.get("initContainers", ())):
        assert each["securityContext"] == container(variant)["securityContext"]
        assert each["resources"]["limits"] == each["resources"]["requests"]
    assert pod["enableServiceLinks"] is False  # or its variables would look like settings


def test_workers_have_a_place_to_share_weights(variant: Objects) -> None:
    """A directory that the server makes itself, below one that the pod may write to."""
    given, pod = environment(variant), variant["Deployment"]["spec"]["template"]["spec"]
    mounts = {each["mountPath"]: each for each in container(variant)["volumeMounts"]}
    parent = str(Path(given["DRAGOMAN_CACHE_DIR"]).parent)
    assert "readOnly" not in mounts[parent]
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert set(volumes[mounts[parent]["name"]]["emptyDir"]) == {"sizeLimit"}  # not in memory
    assert given["DRAGOMAN_RESERVE_MEMORY"] == "true"


def test_bundles_are_where_the_server_looks(variant: Objects, request: Any) -> None:
    pod = variant["Deployment"]["spec"]["template"]["spec"]
    given = environment(variant).get("DRAGOMAN_BUNDLES")
    name = request.node.callspec.params["variant"]
    if not {"gpu", "image", "volume"} & set(name.split()):
        assert given is None  # the image's own
        return
    (mount,) = [
        each for each in container(variant)["volumeMounts"] if each["mountPath"] == "/bundles"
    ]
    assert given is not None
    assert given.startswith("/bundles/")
    assert mount["readOnly"] is True
    (volume,) = [each for each in pod["volumes"] if each["name"] == mount["name"]]
    if "image" in name:
        (copying,) = pod["initContainers"]
        assert copying["image"] == "mine:2"
        assert copying["volumeMounts"] == [{"name": mount["name"], "mountPath": "/bundles"}]
        assert set(volume) == {"name", "emptyDir"}
    else:
        claim = variant["PersistentVolumeClaim"]["metadata"]["name"]
        assert volume["persistentVolumeClaim"] == {"claimName": claim, "readOnly": True}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_claim_can_be_filled(version: str) -> None:
    """By a job that is allowed in the namespace, and writes what servers read, as their user."""
    filling, servers = built(KUBERNETES / "fill"), built(KUBERNETES / "overlays" / "gpu")
    for each in filling.values():
        validate(each, version)
    for kind in ("Namespace", "PersistentVolumeClaim"):
        assert filling[kind] == servers[kind]
    assert filling["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    pod, serving = (
        each["spec"]["template"]["spec"] for each in (filling["Job"], servers["Deployment"])
    )
    assert pod["securityContext"] == serving["securityContext"]
    (writing,) = pod["containers"]
    assert writing["securityContext"] == container(servers)["securityContext"]
    assert writing["volumeMounts"] == [{"name": "models", "mountPath": "/bundles"}]
    (volume,) = pod["volumes"]
    claim = filling["PersistentVolumeClaim"]["metadata"]["name"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim}
    assert filling["Job"]["spec"]["template"]["metadata"]["labels"] != LABELS  # no traffic for it


@pytest.mark.parametrize("way", ["ingress", "gateway"])
def test_what_is_reached_from_outside_wants_keys(tmp_path: Path, way: str) -> None:
    objects = combined(tmp_path, "cpu", way)
    assert environment(objects)["DRAGOMAN_KEYS"] == "/security/keys"
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "security"]
    assert volume["secret"]["secretName"] == "dragoman-keys"
    *_, rule = objects["NetworkPolicy"]["spec"]["ingress"]
    assert rule == {
        "from": [{"namespaceSelector": {"matchLabels": {"dragoman.ingress": "true"}}}],
        "ports": [{"port": "grpc"}],
    }
    (listening,) = objects["dragoman-proxied"]["spec"]["ports"]
    assert listening["appProtocol"] == "kubernetes.io/h2c"
    if way == "ingress":
        spec = objects["Ingress"]["spec"]
        hosts = spec["tls"][0]["hosts"]
        paths = spec["rules"][0]["http"]["paths"]
        services = [each["backend"]["service"] for each in paths]
        backends = {(each["name"], each["port"]["name"]) for each in services}
        served = [each["path"].strip("/") for each in paths]
        assert backends == {("dragoman-proxied", listening["name"])}
        annotations = objects["Ingress"]["metadata"]["annotations"]
        assert annotations["nginx.org/grpc-services"] == "dragoman-proxied"
        scheme = "traefik.ingress.kubernetes.io/service.serversscheme"
        assert objects["dragoman-proxied"]["metadata"]["annotations"] == {scheme: "h2c"}
    else:
        (listener,) = objects["Gateway"]["spec"]["listeners"]
        assert (listener["protocol"], listener["port"]) == ("HTTPS", 443)
        spec = objects["GRPCRoute"]["spec"]
        hosts = spec["hostnames"]
        assert hosts == [listener["hostname"]]
        assert spec["parentRefs"] == [{"name": objects["Gateway"]["metadata"]["name"]}]
        (rule,) = spec["rules"]
        served = [each["method"]["service"] for each in rule["matches"]]
        assert rule["backendRefs"] == [{"name": "dragoman-proxied", "port": listening["port"]}]
    assert hosts == ["translate.example.com"]
    assert served == [SERVICE, "grpc.health.v1.Health"]


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


def test_the_page_has_every_part() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    parts = [path.parent for path in KUBERNETES.rglob("kustomization.yaml")]
    names = {str(path.relative_to(KUBERNETES)) for path in parts} - {"namespace", "components/keys"}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_the_operator_names_the_job_as_the_alerts_do() -> None:
    monitor = read_yaml(KUBERNETES / "components" / "prometheus-operator" / "podmonitor.yaml")
    spec = monitor["spec"]
    assert spec["selector"]["matchLabels"] == LABELS
    assert LABELS[spec["jobLabel"]] == "dragoman"
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == "metrics"
