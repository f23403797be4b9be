#!/usr/bin/env python3
"""docs/monitoring: what dashboards and alert rules ask for is in /metrics of the servers, with these labels, and is a counter where
a rate is taken, and only there."""
# tier: check
import glob
import http.client
import json
import os
import re
import shutil
import signal
import tempfile
import unittest

from expirer import Expirer
from harness import PATIENCE, ROOT, WEEKWHEEL, Case, Redis, Server, check, equal, main, run, until
from sessiond import Sessiond

FOLDER = os.path.join(ROOT, "docs/monitoring")
# Prometheus adds these to each series, and Grafana chooses by them.
ADDED = {"instance", "job"}
SERVERS = ("weekwheeld", "weekwheel_sessiond", "weekwheel_expirer")


class Metric:
    """Of what kind a metric is, and the labels of each of its series."""

    def __init__(self, kind):
        self.kind, self.series = kind, []


def read(text, metrics):
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            for suffix in suffixes:
                metrics[name + suffix] = Metric("counter" if kind == "histogram" else kind)
        elif not line.startswith("#"):
            name, labels = re.match(r"(\w+)(?:\{(.*)\})? ", line).groups()
            metrics[name].series.append(dict(re.findall(r'(\w+)="([^"]*)"', labels or "")))


def all_metrics():
    """Of servers that have something to tell: each has a state."""
    metrics = {}
    with Server("--http", "127.0.0.1:0") as server:
        server.program.run(0, "put", "--tube", "mail", "--code", "1", "x")
        server.process.send_signal(signal.SIGUSR1)
        until(lambda: "weekwheeld_state{" in server.get("/metrics")[1], "it drains")
        read(server.get("/metrics")[1], metrics)
    # Nobody serves there.
    with Sessiond("--http", "127.0.0.1:0", "--expired-to", "beanstalk://127.0.0.1:1/x") as server, server.client() as client:
        client.ask("SET", "a", "b", "PX", "1")
        until(lambda: "weekwheel_sessiond_state{" in server.get("/metrics")[1], "an end waits")
        read(server.get("/metrics")[1], metrics)
    with tempfile.TemporaryDirectory() as folder, Redis(folder=folder) as redis, Expirer(redis.url, "--expired-to", "beanstalk://127.0.0.1:1/x") as expirer:
        expirer.exact()
        read(expirer.get("/metrics")[1], metrics)
    return metrics


def from_yaml(text):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise unittest.SkipTest("there is no yaml: Debian has it in the package python3-yaml") from None
    return yaml.safe_load(text)


def rules():
    with open(os.path.join(FOLDER, "weekwheel.rules.yml"), encoding="utf-8") as file:
        return [rule for group in from_yaml(file)["groups"] for rule in group["rules"]]


def page():
    with open(os.path.join(ROOT, "docs/operating.md"), encoding="utf-8") as file:
        return file.read()


def yaml_of(first):
    """The one of the page's blocks that begins with this word."""
    return from_yaml(re.search(rf"(?s)```yaml\n({first}.*?)```", page())[1])


def prometheus():
    return yaml_of("rule_files")


def status(server, path, **headers):
    """As a node of Kubernetes asks: by the pod's address."""
    port = int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Host": f"10.1.2.3:{port}", **headers})
    answer = connection.getresponse().status
    connection.close()
    return answer


def boards():
    for path in sorted(glob.glob(FOLDER + "/*.json")):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path), json.load(file)


class Monitoring(Case):
    @classmethod
    def setUpClass(cls):
        cls.metrics = all_metrics()

    def judge(self, expression):
        """Return the labels of its result."""
        labels = set(ADDED)
        if expression.startswith("up{"):
            equal(re.findall(r'(\w+)="(\w+)"', expression), [("job", prometheus()["scrape_configs"][0]["job_name"])])
            return labels
        rated = set(re.findall(r"\b(?:rate|increase)\((\w+)[^()\[\]]*\[(?:\d+m|\$__rate_interval)\]\)", expression))
        names = set(re.findall(rf"\b(?:{'|'.join(SERVERS)})_\w+", expression))
        check(names, f"no metric in {expression}")
        for name in names:
            check(name in self.metrics, f"{name} is not in /metrics: {expression}")
            metric = self.metrics[name]
            check(metric.series, f"{name} has no series here: {expression}")
            equal(metric.kind == "counter", name in rated, f"a rate is of counters, and nothing else of them: {expression}")
            own = set.union(*map(set, metric.series))
            for matchers in re.findall(rf"\b{name}\{{([^}}]*)\}}", expression):
                for label, value in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
                    check(label in own | ADDED, f"{name} has no label {label}: {expression}")
                    check(label in ADDED or value in {series.get(label) for series in metric.series}, f"{label}={value}: {expression}")
            labels |= own
        for by in re.findall(r"\bby \(([^)]*)\)", expression):
            check(set(by.split(", ")) <= labels, f"by {by}: {expression}")
        outer = re.match(r"(?:topk\(\d+, )?(?:sum|max) by \(([^)]*)\)", expression)
        if outer:
            return set(outer[1].split(", "))
        if re.match(r"(?:sum|max)\(", expression):
            return set()
        if "histogram_quantile" in expression:
            check(re.search(r"by \([^)]*\ble\) \(rate\(\w+_bucket", expression), expression)
            return set(re.search(r"by \(([^)]*)\)", expression)[1].split(", ")) - {"le"}
        return labels

    def test_rules(self):
        seen = set()
        for rule in rules():
            check(rule["alert"] not in seen, rule)
            seen.add(rule["alert"])
            equal(rule["labels"]["severity"] in ("critical", "warning"), True, rule)
            labels = self.judge(rule["expr"])
            check(rule["annotations"]["summary"], rule)
            for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
                check(label in labels, f"{rule['alert']} has no label {label}, only {labels}")

    def test_boards(self):
        found = list(boards())
        equal([name for name, _ in found], ["weekwheel-expirer.json", "weekwheel-sessiond.json", "weekwheeld.json"])
        for name, board in found:
            equal(board["uid"] + ".json", name)
            equal(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
            for variable in board["templating"]["list"][1:]:
                self.judge(re.match(r"label_values\((\w+), instance\)$", variable["query"])[1])
            for panel in board["panels"]:
                for target in panel["targets"]:
                    labels = self.judge(target["expr"])
                    for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                        check(label in labels, f"{panel['title']}: {label} is not of {labels}")

    def test_every_number_to_alert_on_has_a_rule(self):
        """Of the tables of docs/operating.md, but those that need a threshold of the reader's."""
        section = re.search(r"(?s)## Numbers to alert on(.*?)\n## ", page())[1]
        named = set(re.findall(r"\bweekwheel(?:d|_sessiond)_\w+", "".join(re.findall(r"(?m)^\| ([^|]*)\|", section))))
        of_rules = " ".join(rule["expr"] for rule in rules())
        equal({name for name in named if name not in of_rules}, {"weekwheeld_store_disk_bytes", "weekwheel_sessiond_keys"})

    def test_probes(self):
        probes = yaml_of("startupProbe")
        equal(set(probes), {"startupProbe", "livenessProbe", "readinessProbe"})
        paths = {name: probe["httpGet"]["path"] for name, probe in probes.items()}
        run(0, "sh", "-c", "umask 077; '%s' token --token-file ada.token ada read:'*' >people" % WEEKWHEEL)
        with Server("--http", "0.0.0.0:0", "--http-auth-file", "people", "--insecure") as server:
            equal([status(server, path) for path in (*paths.values(), "/metrics")], [200, 200, 200, 401])
            with open("ada.token", encoding="ascii") as token:
                equal(status(server, "/metrics", Authorization="Bearer " + token.read().strip()), 200)
            # What refuses changes is taken out, and lives on.
            server.process.send_signal(signal.SIGUSR1)
            until(lambda: status(server, paths["readinessProbe"]) == 503, "it drains")
            equal(status(server, paths["livenessProbe"]), 200)

    def test_promtool(self):
        if not shutil.which("promtool"):
            self.skipTest("there is no promtool: Debian has it in the package prometheus, which also starts a server")
        run(0, "promtool", "check", "rules", os.path.join(FOLDER, "weekwheel.rules.yml"))


if __name__ == "__main__":
    main()
