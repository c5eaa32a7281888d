"""The compose files: valid, and in step with what they mount and with the server's settings."""

import sys
from pathlib import Path
from typing import Any

from support.deploy_tools import DEPLOY, read_yaml, run, variables

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
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


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
