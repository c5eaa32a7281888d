"""The compose files: valid, and in step with what they mount and with the server's settings."""

import re
import sys
from pathlib import Path
from typing import Any

from support.deploy_tools import (
    DEPLOY,
    dockerfile_stages,
    image_settings,
    read_yaml,
    run,
    variables,
)

COMPOSE = DEPLOY / "compose.yaml"
FILES = (COMPOSE, DEPLOY / "compose.gpu.yaml")


def services() -> dict[str, Any]:
    return dict(read_yaml(COMPOSE)["services"])


def test_they_are_valid() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    run(checker, "--builtin-schema", "vendor.compose-spec", *FILES)


def test_settings_are_those_of_the_server() -> None:
    for path in FILES:
        given = read_yaml(path)["services"]["dragoman"]["environment"]
        assert set(given) <= set(variables()), path


def test_what_is_mounted_is_there() -> None:
    for service in services().values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), volume


def test_nothing_is_published_beyond_this_machine() -> None:
    ports = [port for service in services().values() for port in service["ports"]]
    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_everything_has_limits() -> None:
    for service in services().values():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    gpu = read_yaml(FILES[1])["services"]["dragoman"]["deploy"]["resources"]["limits"]
    assert {"cpus", "memory"} <= set(gpu)
    assert services()["dragoman"]["environment"]["DRAGOMAN_RESERVE_MEMORY"] == "true"


def test_workers_have_a_place_to_share_weights() -> None:
    """A volume of the directory itself, whose owner Docker takes over from the image."""
    place = image_settings("cpu")["DRAGOMAN_CACHE_DIR"]
    assert f"cache:{place}" in services()["dragoman"]["volumes"]
    assert "cache" in read_yaml(COMPOSE)["volumes"]
    for target in ("cpu", "gpu"):
        stage = dockerfile_stages()[target]
        (user,) = re.findall(r"^USER (\d+):", stage, re.MULTILINE)
        assert f"install --directory --owner={user} --group={user} --mode=0700 {place}" in stage


def test_the_server_has_time_to_drain() -> None:
    server = services()["dragoman"]
    stop = float(server["stop_grace_period"].removesuffix("s"))
    assert stop > float(server["environment"]["DRAGOMAN_GRACE"]) + 5


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = read_yaml(provisioning / "datasources" / "prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"  # a service of compose, and its port
    assert "127.0.0.1:9090:9090" in services()["prometheus"]["ports"]
    (provider,) = read_yaml(provisioning / "dashboards" / "dragoman.yaml")["providers"]
    mounts = [volume.split(":")[:2] for volume in services()["grafana"]["volumes"]]
    assert ["./grafana/dashboards", provider["options"]["path"]] in mounts
    # Rates are over four scrapes: Grafana must know how far apart these are.
    scrapes = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scrapes
