"""Trials of the clients: a program of ten lines makes a report, and ``uldp decode`` counts it."""

import re
from pathlib import Path
from xml.etree import ElementTree

from tests.release.readme import README, first_spec
from tests.release.trial import Trial

_NODE = """\
import { readFileSync } from "node:fs";
import { Device } from "uldp-client";
import { FileStore } from "uldp-client/node";

const table = JSON.parse(readFileSync("table.json", "utf8"));
const device = new Device(table, { ledger: new FileStore("store") });
console.log(Buffer.from(await device.report("often")).toString("hex"));
"""
_JAVA = """\
import java.io.File;
import java.nio.file.*;
import java.time.Clock;
import java.util.*;
import uldp.*;

class Report {
  public static void main(String[] arguments) throws Exception {
    var table = new DeviceTable(Files.readString(Path.of("table.json")));
    var ledger = new StoredLedger(new FileStorage(new File("ledger.json")));
    var device = new Device(table, Map.of(), ledger, null, 3_600_000L, Clock.systemUTC(), new SystemDraws());
    byte[] report = device.report(new Value.Text("often"), System.currentTimeMillis(), null);
    System.out.println(HexFormat.of().formatHex(report));
  }
}
"""
#: A project that names the client alone; Maven has to find what the client needs.
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>invalid.trial</groupId>
  <artifactId>trial</artifactId>
  <version>1</version>
  <properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties>
  <dependencies>
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>uldp-client</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""
_CLASSPATH = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


def _spec_and_table(trial: Trial) -> Path:
    """Write the README's first spec and its table for devices, and return ``uldp`` of the wheel alone."""
    uldp = trial.environment("collector", trial.artefact("*.whl")) / "uldp"
    files, _ = first_spec(README.read_text(encoding="utf-8"))
    (trial.folder / "survey.yaml").write_text(files["survey.yaml"], encoding="utf-8")
    table = trial.run(uldp, "device-table", "survey.yaml", "--json")
    (trial.folder / "table.json").write_text(table, encoding="utf-8")
    return uldp


def _decode(trial: Trial, uldp: Path, printed: str) -> None:
    """Let the collector judge a report: ``uldp decode`` fails if it would reject it."""
    report = printed.strip()
    if not re.fullmatch("(?:[0-9a-f]{2})+", report):
        raise trial.fail("the program of ten lines", f"does not print a report in hexadecimal digits, but\n{printed}")
    trial.expect("verdict     counted", uldp, "decode", report, "--spec", "survey.yaml")


def npm(trial: Trial) -> str:
    """Install the package alone, and let Node report by it."""
    uldp = _spec_and_table(trial)
    (trial.folder / "package.json").write_text('{"type": "module", "private": true}\n', encoding="utf-8")
    trial.run("npm", "install", "--no-audit", "--no-fund", "--silent", trial.artefact("uldp-client-*.tgz"))
    (trial.folder / "report.mjs").write_text(_NODE, encoding="utf-8")
    _decode(trial, uldp, trial.run("node", "report.mjs"))
    return "installed alone; a report of it by Node, decoded by uldp"


def jar(trial: Trial) -> str:
    """Let Maven find the jar by its coordinates in an empty repository, and let Java report by it."""
    uldp = _spec_and_table(trial)
    found, pom = trial.artefact("uldp-client-*[0-9].jar"), trial.artefact("uldp-client-*.pom")
    root = ElementTree.fromstring(pom.read_bytes())
    group, version = (root.findtext(f"{{*}}{name}") for name in ("groupId", "version"))
    maven = ["mvn", "--batch-mode", "--quiet", f"-Dmaven.repo.local={trial.folder / 'repository'}"]
    trial.run(*maven, "install:install-file", f"-Dfile={found}", f"-DpomFile={pom}", cwd=trial.folder)
    (trial.folder / "pom.xml").write_text(_POM.format(group=group, version=version), encoding="utf-8")
    sources = trial.folder / "src" / "main" / "java"
    sources.mkdir(parents=True)
    (sources / "Report.java").write_text(_JAVA, encoding="utf-8")
    trial.run(*maven, "compile", _CLASSPATH, "-Dmdep.outputFile=classpath")
    path = (trial.folder / "classpath").read_text(encoding="utf-8").strip()
    _decode(trial, uldp, trial.run("java", "-cp", f"target/classes:{path}", "Report"))
    return f"found as {group}:uldp-client:{version}; a report of it by Java, decoded by uldp"
