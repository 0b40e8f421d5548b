"""Whether the trace page tells the truth about a run that loses events, stands
still, or has messages of known times."""
import json
import re
import struct
import time
import unittest

import trace_files
import webdriver
from pages import Watched
from support import BUILD, TINY, Case, Process, until

BEST_OF_N = TINY.parent / "best_of_n"


class State(Watched):
    def test_dropped_events_are_counted_and_shown(self):
        folder = self.trace_folder("drops", "running")
        status = json.loads((folder.parent / "status.json").read_text())
        (folder.parent / "status.json").write_text(json.dumps(
            status | {"eta_s": 4000}))
        files = [trace_files.TraceFile(folder, name, number) for number, name
                 in enumerate(("master", "worker 0", "worker 1"))]

        def drop(count):
            for number, file in enumerate(files, 1):
                file.record(5, struct.pack("<Q", count * number))
                file.file.flush()
        files[0].tasks(0, "gen", 0, [(1000, 2000)])
        drop(1000)
        header = "return document.querySelector('header').innerText"
        with self.served("drops") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: "2 events, 6,000 dropped" in browser.run(header),
                  "the page says how many")
            self.assertEqual(self.lost(browser), [1000, 2000, 3000])
            self.assertRegex(browser.run(header), r"1 h \d+ min left")
            drop(1001)
            until(lambda: "6,006 dropped" in browser.run(header),
                  "and how many more while the run goes on")
            browser.picture(self.pictures / "dropped.png")
        for file in files:
            file.file.close()
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/drops", "--json").stdout)
        self.assertEqual(summary["dropped_events"], 6006)

    def lost(self, browser):
        """Dropped events of the processes that have some, as health shows."""
        last = re.compile(r"^(?:master|worker \d)\s.*\s([\d,]+)$", re.M)
        found = last.findall(self.panel(browser, "health"))
        return [int(n.replace(",", "")) for n in found if n != "0"]

    def test_latencies_are_those_of_the_messages(self):
        folder = self.trace_folder("latency", "done")
        master = trace_files.TraceFile(folder, "master", 0)
        worker = trace_files.TraceFile(folder, "worker 0", 1)
        us, flow = 1000, 0
        at = time.monotonic_ns()
        # 100 messages each way: 98 alike, two a hundred times as late
        for file, wait, work in ((master, 20 * us, 50 * us),
                                 (worker, 3000 * us, 700 * us)):
            sender, reader = master.track("call a"), file.track("reader")
            for i in range(100):
                times = 100 if i in (30, 60) else 1
                flow, at = flow + 1, at + 10**9
                there = at + times * wait
                master.events([master.event(trace_files.SEND, at, sender,
                                            master.name("run"), 1, flow)])
                name = file.name("run")
                file.events(file.event(kind, when, reader, name, 1, flow)
                            for kind, when in (
                                (trace_files.BEGIN, there),
                                (trace_files.RECEIVE, there),
                                (trace_files.END, there + times * work)))
        master.close()
        worker.close()
        with self.served("latency") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.arrows.length") == 200,
                  "every message")
            row, = re.findall(r"^run\s.*", self.panel(browser, "latency"), re.M)
            self.assertEqual(
                re.findall(r"[\d.]+ [mu]?s|\d+", row),
                ["200", "20.0 us", "2.00 ms",  # queue: within the master
                 "3.00 ms", "300 ms",          # wire: from master to worker
                 "700.0 us", "70.00 ms"])      # handling: in both
            bars = browser.run("""
                return [...document.querySelectorAll('#panel svg')].map((svg) =>
                  [...svg.querySelectorAll('rect title')].map(
                    (t) => t.textContent));""")
            self.assertEqual(bars, [["16.0 us: 98", "1.45 ms: 2"],
                                    ["2.90 ms: 98", "262 ms: 2"],
                                    ["45.3 us: 98", "512.0 us: 98",
                                     "4.10 ms: 2", "65.54 ms: 2"]])


    def test_idle_gaps_carry_their_reason(self):
        folder = self.trace_folder("gaps", "done")
        calls = {"a": [0], "c": [1], "d": [1], "b": [0, 1]}
        (self.run_folder("gaps") / "dataflow.json").write_text(json.dumps(
            {"calls": [{"name": name, "kind": "inference", "role": "",
                        "reads": [], "writes": [], "devices": devices,
                        "strategy": "", "lag": 0}
                       for name, devices in calls.items()],
             "edges": [{"from": "a", "to": to, "keys": ["k"]} for to in "bd"]}))
        now, ms = time.monotonic_ns(), 10**6
        file = trace_files.TraceFile(folder, "worker 0", 1)
        for device, name, step, begin, end in (
                (0, "a", 0, 0, 20), (1, "c", 0, 0, 5), (1, "d", 0, 23, 30),
                (0, "b", 0, 30, 40), (1, "b", 0, 30, 40),
                (0, "a", 1, 45, 50), (1, "c", 1, 45, 50), (1, "d", 1, 61, 70),
                (0, "b", 1, 80, 90), (1, "b", 1, 82, 92),
                (0, "a", 2, 190, 195)):
            file.tasks(device, name, step, [(now + begin * ms, now + end * ms)])
        master = trace_files.TraceFile(folder, "master", 0)
        call, shard = master.track("call d"), file.track("shard r@d/1")
        said = master.track("waits of device 0")
        for out, kind, at, track, name, flow in (
                (master, trace_files.SEND, 51, call, "fetch", 1),
                (file, trace_files.RECEIVE, 52, shard, "fetch", 1),
                (file, trace_files.SEND, 60, shard, "reply",
                 1 | trace_files.REPLY),
                (master, trace_files.RECEIVE, 61, call, "reply",
                 1 | trace_files.REPLY),
                (master, trace_files.BEGIN, 91, said, "waits for e (data)", 0),
                (master, trace_files.END, 189, said, "waits for e (data)", 0)):
            out.events([out.event(kind, now + at * ms, track, out.name(name),
                                  1, flow)])
        master.close()
        file.close()
        with self.served("gaps") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 3)
            rows = re.findall(r"^(waits for .*?)\s+([\d.]+ m?s)$",
                              self.panel(browser, "waits"), re.M)
            self.assertEqual(dict(rows), {
                "waits for e": "100 ms",              # as the master reported
                "waits for device 1 (d)": "40.00 ms", # twice, for b
                "waits for a": "18.00 ms",            # d in step 1
                "waits for messages": "12.00 ms",     # b in step 2
                "waits for bytes": "11.00 ms",        # d in step 2
                "waits for the step to commit": "10.00 ms"})
            browser.picture(self.pictures / "gaps.png")


class StateInChromium(State, Case):
    browser = webdriver.Chromium

    def test_a_stalled_run_names_its_waits(self):
        process = Process(self, [
            "train", BEST_OF_N / "best_of_n.yaml", "run.steps=1",
            "models.actor.path=data/base", "data.train=data/prompts.jsonl",
            "data.batch_size=8", "rollout.max_new_tokens=12",
            "best_of_n.tool=sleep 1000", "best_of_n.deadline_ms=600000",
            "cluster.own_actor_timeout_s=20"],
            program=BUILD / "examples/best_of_n")
        token = self.run_folder("best_of_n") / ".page_token"
        until(lambda: token.exists(), "a page")
        url = until(lambda: json.loads(self.troupe(
            "status", "runs/best_of_n", "--json").stdout)["trace_url"], "a page")
        with self.browser() as browser:
            browser.open(url)
            until(lambda: "no progress" in self.banner(browser),
                  "the page says that nothing goes on")
            banner = self.banner(browser)
            self.assertRegex(browser.run("return document.getElementById("
                                         "'verdict').innerText"), r"(?m)^Stalled\.")
            until(lambda: self.model(browser, "window.troupe.map.stalled.length"),
                  "the asks that wait glow on the map")
            browser.picture(self.pictures / "stuck.png")
            for words in (r"^no progress for \d+ s; ",
                          r"master waits for call check \(run\)",
                          r"samples of check waits for checker "
                          r"\(run, \d+ times\)"):
                self.assertRegex(banner, words)
        self.assertEqual(process.finish().code, 1)


class StateInFirefox(State, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
