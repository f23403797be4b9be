#!/usr/bin/python3
"""scripts/bench-plots draws results: its page shows all of them, and its plots are files that need no others."""
# tier: long, no-sanitizers
import copy
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree
from html.parser import HTMLParser

from harness import BUILD, ROOT, Case, main

SCRIPT = os.path.join(ROOT, "scripts", "bench-plots")
BENCH = os.path.join(BUILD, "bin", "weekwheel-bench")
METRICS = {"A": "ns_per_op", "B": "ns_per_op", "O": "ns_per_op", "C30": "ns_per_op", "C1800": "ns_per_op", "Cweek": "ns_per_op", "F": "ns_per_op",
           "D": "ns_per_timer", "R": "ns_per_timer", "G": "bytes_per_timer"}


def result(structure, workload, n, median, metric=None, low=None, high=None, repetitions=3):
    metric = metric or METRICS[workload]
    unit = {"bytes_per_timer": "bytes", "max_tick_us": "us"}.get(metric, "ns")
    return {"structure": structure, "workload": workload, "n": n, "metric": metric, "unit": unit, "median": median,
            "min": median / 2 if low is None else low, "max": median * 2 if high is None else high, "repetitions": repetitions}


def sizes(workload, metric=None, repetitions=3):
    """Weekwheel twice as fast as linked lists with many timers, and not in order of size."""
    return [result("weekwheel", workload, 1000000, 15, metric, repetitions=repetitions), result("weekwheel", workload, 10000, 2, metric),
            result("linked", workload, 10000, 3, metric), result("linked", workload, 1000000, 30, metric)]


def made(results=(), **more):
    names = ["weekwheel", "linked"] + [row["structure"] for row in results if row["structure"] not in ("weekwheel", "linked")]
    data = {"command": "weekwheel-bench --json", "machine": "a machine", "seed": 1, "interrupted": False,
            "structures": [{"structure": name, "summary": "what it is", "empty_bytes": {}} for name in dict.fromkeys(names)],
            "results": list(results), "left_out": [], "checked": [], "ticks": []}
    data.update(more)
    return data


def draw(data, *options):
    return subprocess.run([SCRIPT, *options], input=data if isinstance(data, str) else json.dumps(data), capture_output=True, text=True,
                          check=False, timeout=120)


class Tags(HTMLParser):
    """Fails if a closed tag is not the last opened one, or if one stays open."""

    def __init__(self, text):
        super().__init__()
        self.opened = []
        self.feed(text)
        assert not self.opened, self.opened

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.opened.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.opened and self.opened.pop() == tag, (tag, self.getpos())


class Plots(Case):
    def saved(self, data):
        path = os.path.join(self.folder, "results.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(data if isinstance(data, str) else json.dumps(data))
        return path

    def page(self, data):
        text = bench_plots.page(bench_plots.load(self.saved(data)))
        Tags(text)
        self.assertNotRegex(text, r"\b(nan|inf)\b")
        # The page loads nothing.
        self.assertNotRegex(text, r'src=|<link|@import|url\((?!#)|href="(?!#)')
        return text

    def test_a_figure_has_names_values_whiskers_and_a_sentence(self):
        text = self.page(made(sizes("A")))
        self.assertEqual(text.count("<figure"), 1)
        self.assertIn("<h3>Schedule</h3>", text)
        self.assertRegex(text, r">weekwheel +15 ns</text>")
        self.assertRegex(text, r">linked +30 ns</text>")
        self.assertIn("At 1 million timers: weekwheel 15 ns; linked, 30 ns (2.0 times).", text)
        self.assertIn("weekwheel at 10,000: 2 ns (1 ns to 4 ns)", text)
        # A whisker is a line from the most down to the least. Each structure has two.
        ours = re.findall(r'<g class="s s0">(.*?)</g>', text, re.S)
        self.assertEqual(sum(len(re.findall(r'd="M ([\d.]+) [\d.]+ L \1 [\d.]+ "', group)) for group in ours), 2)
        self.assertNotIn("Left out", text)

    def test_without_spread_there_is_no_whisker_and_none_below_zero(self):
        text = self.page(made([result("weekwheel", "A", 1000, 5, low=0, high=5), result("linked", "A", 1000, 5, low=5, high=4)]))
        self.assertIn("weekwheel at 1,000: 5 ns<", text)
        self.assertIn("linked at 1,000: 5 ns<", text)

    def test_each_workload_has_its_figure(self):
        rows = [row for workload in METRICS for row in sizes(workload)] + sizes("D", "max_tick_us")
        rows += [result("weekwheel", "E", 1, 1.5, "ns_per_tick"), result("weekwheel", "E", 1, 300, "jump_ns")]
        text = self.page(made(rows, structures=[{"structure": "weekwheel", "summary": "this", "empty_bytes": {"60": 4000, "3600": 5000}},
                                                {"structure": "linked", "summary": "that", "empty_bytes": {}}]))
        self.assertEqual(text.count("<figure"), 13)
        self.assertEqual(len(set(re.findall(r' id="([^"]+)"', text))), len(re.findall(r' id="', text)))

    def test_the_empty_structure_is_shown_for_what_it_can_hold(self):
        rows = [result(name, "G", 10000, 48) for name in ("weekwheel", "linked", "flat", "heap4")]
        text = self.page(made(rows, structures=[
            {"structure": "weekwheel", "summary": "", "empty_bytes": {"60": 300, "604800": 15000}},
            {"structure": "linked", "summary": "", "empty_bytes": {"60": 4000, "604800": 4000}},
            {"structure": "flat", "summary": "", "empty_bytes": {"31536000": 31536000}},
            {"structure": "heap4", "summary": "", "empty_bytes": {"60": 48}},
            {"structure": "scan", "summary": "", "empty_bytes": {"60": 77000}}]))
        self.assertEqual(text.count("<figure"), 2)
        self.assertIn("linked at 1 min: 4 kB\n1 week: 4 kB<", text)
        self.assertIn("flat at 1 year: 32 MB", text)
        self.assertNotIn("heap4 at 1 min", text)
        self.assertNotIn("scan at 1 min", text)

    def test_where_weekwheel_loses_is_marked(self):
        rows = sizes("A") + [result("heap4", "A", 1000000, 5), result("flat", "A", 1000000, 15), result("scan", "A", 10000, 1)]
        text = self.page(made(rows))
        glance = text[text.index("At a glance: 1 million timers"):text.index("</table>")]
        self.assertIn("<tr><th>weekwheel</th><td><b>15 ns</b></td></tr>", glance)
        self.assertIn('<tr><th>linked</th><td class="w2">2.0</td></tr>', glance)
        self.assertIn('<tr><th>heap4</th><td class="o2">0.3</td></tr>', glance)
        self.assertIn("<tr><th>flat</th><td>1.0</td></tr>", glance)
        # scan was not measured with the most timers.
        self.assertNotIn("scan", glance)
        for shade in ("o1", "o2", "o3", "w1", "w2", "w3", "w4"):
            self.assertEqual(len(re.findall(rf"\.{shade}{{background:#", text)), 1)

    def test_what_was_given_up_is_a_gap(self):
        rows = sizes("A") + sizes("B")[:3]
        text = self.page(made(rows, left_out=[{"structure": "linked", "workload": "B", "n": 1000000, "why": "not <done> in 5 s"},
                                              {"structure": "linked", "workload": "E", "n": 1, "why": "of no use"}]))
        self.assertIn('<tr><th>linked</th><td class="w2">2.0</td><td class="none">–</td></tr>', text)
        self.assertIn("<b>linked</b>, B, 1,000,000 timers: not &lt;done&gt; in 5 s", text)
        self.assertIn("<b>linked</b>, E, 1 timer: of no use", text)
        # Its line ends earlier and has its name there, and the sentence does not mention it.
        self.assertRegex(text, r">linked +3 ns</text>")
        self.assertEqual(text.count("linked, 30 ns"), 1)

    def test_what_is_wrong_is_said(self):
        text = self.page(made([result("weekwheel", "A", 1000, 5)], interrupted=True, checked=[
            {"structure": "weekwheel", "late_s": 0, "wrong": None}, {"structure": "linked", "late_s": 3, "wrong": None},
            {"structure": "<b>&\"\x1b", "late_s": 0, "wrong": "it <never> expired"}]))
        self.assertIn("<b>weekwheel</b>: never early, never late</li>", text)
        self.assertIn("<b>linked</b>: never early, up to 3 s late</li>", text)
        self.assertIn("<b>&lt;b&gt;&amp;&quot;?</b>: <b>WRONG</b>, so not timed: it &lt;never&gt; expired", text)
        self.assertIn("The run was interrupted", text)

    def test_text_is_escaped(self):
        odd = '<i>&"\x1b\ufffe'
        text = self.page(made([result(odd, "A", 1000, 5), result("weekwheel", "A", 1000, 5)], machine="a < b",
                              command='weekwheel-bench <script>alert(1)</script> "&" --save x.json -j'))
        self.assertIn("weekwheel-bench &lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&quot;</code>", text)
        self.assertNotIn("<script", text)
        self.assertNotIn("\x1b", text)
        self.assertIn("&lt;i&gt;&amp;&quot;??", text)

    def test_a_caption_says_that_too_few_repetitions_filter_nothing(self):
        for repetitions in (1, 2, 3):
            text = self.page(made(sizes("D") + sizes("D", "max_tick_us", repetitions)))
            self.assertEqual(text.count("fewer than 3 repetitions"), repetitions < 3)

    def test_captions_claim_nothing_of_results(self):
        with open(SCRIPT, encoding="utf-8") as file:
            text = file.read()
        for claim in ("the least to do", "Every line", "A line that rises", "Most of it", "flat wheel", "A heap", "nothing to speak of"):
            self.assertNotIn(claim, text)

    def test_nothing_is_a_page_too(self):
        text = self.page(made())
        self.assertEqual((text.count("<figure"), text.count("<table")), (0, 0))

    def test_values_that_have_no_place_are_left_out(self):
        text = self.page(made([result("weekwheel", "A", 10000, 0), result("linked", "A", 10000, -1), result("weekwheel", "B", 10000, 0),
                               result("linked", "B", 10000, 5), result("linked", "G", 10000, 24)]))
        self.assertEqual(text.count("<figure"), 2)
        self.assertNotIn("At a glance", text)
        self.assertEqual(text.count("<b>At "), 0)

    @staticmethod
    def ticks(name, at, ns):
        """Ticks of a microsecond each, except one long tick and one shorter than the clock can tell."""
        every = [1000] * 14400
        every[at], every[100] = ns, 0
        return {"structure": name, "n": 1000000, "ns": every}

    def test_ticks_around_the_end_of_a_day_are_shown(self):
        data = made(sizes("D"), ticks=[self.ticks("weekwheel", 7199, 60000), self.ticks("linked", 14390, 200000000),
                                       self.ticks("libuv", 5, 900000000)])
        text = self.page(data)
        self.assertEqual(text.count("<figure"), 3)
        self.assertIn("longest: 60 µs", text)
        self.assertIn("longest: 200 ms", text)
        self.assertRegex(text, r">weekwheel +60 µs</text>")
        self.assertNotIn("900 ms", text)
        self.assertEqual(draw(data, "--plots", self.folder).returncode, 0)
        with open(os.path.join(self.folder, "day-boundary.svg"), encoding="utf-8") as file:
            self.assertIn("time of each tick around it, with 1 million timers", file.read())

    def test_files_stand_alone_and_are_the_same_each_time(self):
        data = made(sizes("C30") + sizes("D") + sizes("G"), machine="m" * 400)
        kept = []
        for _ in range(2):
            self.assertEqual(draw(data, "--plots", self.folder).returncode, 0)
            names = [name for name in os.listdir(self.folder) if name.endswith(".svg")]
            self.assertEqual(sorted(names), ["heartbeat.svg", "life.svg", "memory.svg"])
            kept.append({})
            for name in names:
                path = os.path.join(self.folder, name)
                with open(path, encoding="utf-8") as file:
                    kept[-1][name] = file.read()
                self.assertEqual(xml.etree.ElementTree.parse(path).getroot().tag, "{http://www.w3.org/2000/svg}svg")
                self.assertIn("weekwheel-bench<", kept[-1][name])
                self.assertNotRegex(kept[-1][name], r"var\(|<metadata|<image")
        self.assertEqual(*kept)
        self.assertIn("30-second", kept[0]["heartbeat.svg"])
        self.assertEqual(draw(made(sizes("C30") + sizes("C1800")), "--plots", self.folder).returncode, 0)
        with open(os.path.join(self.folder, "heartbeat.svg"), encoding="utf-8") as file:
            self.assertIn("30-minute", file.read())

    def refused(self, data, *options):
        done = draw(data, *options)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def refused_to_load(self, data):
        with self.assertRaises(SystemExit) as raised:
            bench_plots.load(self.saved(data))
        return raised.exception.code

    def test_other_json_is_an_error(self):
        whole, page = made(sizes("A")), os.path.join(self.folder, "page.html")
        self.assertRegex(self.refused("{}", "--html", page), "^bench-plots: -: .*'structures' is missing\n$")
        for data, why in (("", "Expecting value"), ("[]", "not what weekwheel-bench"), ("{}", "'structures' is missing"), ("[1", "Expecting"),
                          ('"text"', "not what weekwheel-bench"), ("null", "not what weekwheel-bench"),
                          (json.dumps(whole).replace('"linked"', "5"), "not what weekwheel-bench")):
            self.assertIn(why, self.refused_to_load(data))
        for key in whole:
            less = copy.deepcopy(whole)
            del less[key]
            if key != "seed":
                self.assertIn(f"'{key}' is missing", self.refused_to_load(less))
        for field in whole["results"][0]:
            less = copy.deepcopy(whole)
            del less["results"][0][field]
            self.assertIn(f"'{field}' is missing", self.refused_to_load(less))
        less = copy.deepcopy(whole)
        less["results"][1]["median"] = "fast"
        self.assertIn("this is not what weekwheel-bench --json writes: ", self.refused_to_load(less))
        self.assertFalse(os.path.exists(page))

    def test_files_that_cannot_be_read_or_written_are_errors(self):
        data = made(sizes("D"))
        self.assertIn("/nowhere/page.html: No such file", self.refused(data, "--html", "/nowhere/page.html"))
        self.assertIn("/nowhere/life.svg: No such file", self.refused(data, "--plots", "/nowhere"))
        self.assertIn("/nowhere.json: No such file", self.refused(data, "--plots", self.folder, "/nowhere.json"))
        self.assertIn("no plot was written", self.refused(made(sizes("A")), "--plots", self.folder))
        self.assertIn("give --html FILE", self.refused(data))
        if os.path.exists("/dev/full"):
            self.assertIn("No space left on device", self.refused(data, "--html", "/dev/full"))

    def test_without_matplotlib_a_sentence_names_the_package(self):
        with open(os.path.join(self.folder, "matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError\n")
        done = subprocess.run([SCRIPT, "--help"], env=dict(os.environ, PYTHONPATH=self.folder), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^bench-plots: matplotlib is missing: .*python3-matplotlib\n$")

    @unittest.skipUnless(os.access(BENCH, os.X_OK), "there is no weekwheel-bench")
    def test_a_real_run_is_drawn(self):
        saved = os.path.join(self.folder, "saved.json")
        run = subprocess.run([BENCH, "-n", "1e3,2e3", "-r", "1", "-w", "A,B,C1800,D,E,G", "-s", "weekwheel,linked,flat,floor,rounds300",
                              "--save", saved], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        with open(saved, encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual(data["command"], f"weekwheel-bench -n 1e3,2e3 -r 1 -w A,B,C1800,D,E,G -s weekwheel,linked,flat,floor,rounds300 --save {saved}")
        self.assertEqual([len(row["ns"]) for row in data["ticks"]], [14400] * len(data["ticks"]))
        self.assertEqual({row["n"] for row in data["ticks"]}, {2000})
        self.assertIn("rounds300", {row["structure"] for row in data["checked"]})
        text = self.page(data)
        self.assertEqual(text.count("<figure"), 11)
        for name in ("weekwheel", "linked", "flat", "floor", "rounds300"):
            self.assertRegex(text, rf">{name} +[\d.]+ ns</text>")
        page = os.path.join(self.folder, "page.html")
        done = draw(data, "--plots", self.folder, "--html", page, saved)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(page, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        self.assertEqual(len([name for name in os.listdir(self.folder) if name.endswith(".svg")]), 4)


# The interpreter of the script, which need not be the first in PATH.
if sys.executable != "/usr/bin/python3":
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
loader = importlib.machinery.SourceFileLoader("bench_plots", SCRIPT)
bench_plots = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_plots", loader))
try:
    loader.exec_module(bench_plots)
except SystemExit:
    Plots = unittest.skip("there is no matplotlib: Debian has it in the package python3-matplotlib")(Plots)
main()
