"""Prometheus on this machine, with the configuration of ``deploy/monitoring``; built with Go."""

import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.daemons import Daemon, Server
from tests.downloads import ROOT, built

MONITORING = ROOT / "deploy" / "monitoring"
MODULE = "github.com/prometheus/prometheus/cmd"


def program(name: str) -> Path:
    """Return ``prometheus`` or ``promtool``, without what finds targets in clouds, which is most of it."""
    return built(name, Path(__file__).with_name("promtool"), f"{MODULE}/{name}", "-tags=remove_all_sd")


@dataclass
class Prometheus(Server):
    """Prometheus, which asks its targets every second.

    Attributes:
        targets: Host and port of each.
    """

    targets: Sequence[str] = ()

    def _command(self, port: int) -> Daemon:
        shutil.copy(MONITORING / "alerts.yaml", self.folder)
        configuration = (MONITORING / "prometheus.yaml").read_text(encoding="utf-8")
        file = self.folder / "prometheus.yaml"
        file.write_text(configuration.replace("interval: 15s", "interval: 1s"), encoding="utf-8")
        targets = yaml.safe_dump([{"targets": list(self.targets)}])
        (self.folder / "targets.yaml").write_text(targets, encoding="utf-8")
        arguments = [f"--config.file={file}", f"--storage.tsdb.path={self.folder / 'data'}"]
        command = [str(program("prometheus")), *arguments, f"--web.listen-address=127.0.0.1:{port}"]
        return Daemon(command, self.folder / "prometheus.log")

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.endpoint}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[float]:
        """Return the value of each series of an expression, now."""
        result = self._ask(f"query?{urllib.parse.urlencode({'query': expression})}")["result"]
        return [float(series["value"][1]) for series in result]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {alert["labels"]["alertname"] for alert in self._ask("alerts")["alerts"] if alert["state"] == "firing"}
