"""Whether the trace page shows the whole of a run and nothing that never was:
runs of two attempts, more messages than pixels, traces that gave up their
oldest steps, and what stands there while it reads."""
import json
import re
import signal
import time
import unittest

import long_traces
import trace_files
import webdriver
from pages import Watched
from support import Case, until

MS, SECOND = 10**6, 10**9
# The texts that the next frame writes on the canvas.
TEXTS = """
const canvas = document.getElementById('timeline');
const g = canvas.getContext('2d'), texts = [];
const was = g.fillText;
g.fillText = function (text, ...rest) { texts.push(text); was.call(g, text, ...rest); };
window.troupe.timeline.draw();
delete g.fillText;
return texts;
"""
# The messages of the bundles in each tenth of the timeline, by where they begin.
BUNDLED = """
const {timeline} = window.troupe;
timeline.draw();
const found = new Array(10).fill(0), wide = (timeline.width - timeline.left) / 10;
for (const b of timeline.bundled.list)
  found[Math.min(9, Math.floor((b.x0 - timeline.left) / wide))] += b.count;
return found;
"""
# Texts of the dataflow that leave their boxes.
OUT_OF_BOX = """
return [...document.querySelectorAll('#dataflow .dag g')].flatMap((box) => {
  const rect = box.querySelector('rect').getBBox();
  return [...box.querySelectorAll('text')].filter((text) => {
    const own = text.getBBox();
    return own.x < rect.x || own.x + own.width > rect.x + rect.width
           || own.y < rect.y || own.y + own.height > rect.y + rect.height;
  }).map((text) => text.textContent);
});
"""


class Whole(Watched):
    def dataflow(self, name, calls):
        """A dataflow without edges: [(call, devices)]."""
        (self.run_folder(name) / "dataflow.json").write_text(json.dumps(
            {"calls": [{"name": call, "kind": "inference", "role": "",
                        "reads": [], "writes": [], "devices": devices,
                        "strategy": f"d{len(devices)}", "lag": 0}
                       for call, devices in calls], "edges": []}))

    def said(self, browser):
        return browser.run("return document.getElementById('said').innerText")

    def header(self, browser):
        return browser.run("return document.querySelector('header').innerText")

    def fit(self, browser, *buttons):
        for button in ("fit", *buttons):
            browser.run(f"document.getElementById('{button}').click()")
        time.sleep(0.3)

    # -- two attempts --------------------------------------------------------

    def attempt(self, folder, number, begin, steps, lost):
        """Master asks worker 0 once a step, which works for 50 ms. The numbers
        of messages begin anew in each attempt. `lost`: the run is killed while
        the last message is on its way and a task runs."""
        master = trace_files.TraceFile(folder, "master", 0, number)
        worker = trace_files.TraceFile(folder, "worker 0", 1, number)
        call, shard = master.track("call gen"), worker.track("shard 0")
        device = worker.track("device 0", True)
        for flow, step in enumerate(steps, 1):
            at = begin + flow * 100 * MS
            arrives = not lost or step != steps[-1]
            master.events([master.event(trace_files.SEND, at, call,
                                        master.name("run"), step, flow)])
            if arrives:
                name = worker.name("run")
                worker.events(worker.event(kind, at + MS + kind, shard, name,
                                           step, flow)
                              for kind in (trace_files.BEGIN,
                                           trace_files.RECEIVE,
                                           trace_files.END))
            name = worker.name("gen")
            worker.events([worker.event(trace_files.BEGIN, at + 5 * MS, device,
                                        name, step)]
                          + [worker.event(trace_files.END, at + 55 * MS, device,
                                          name, step)] * arrives)
        for file in (master, worker):
            file.file.close() if lost else file.close()

    def test_nothing_joins_two_attempts(self):
        folder = self.trace_folder("twice", "done")
        self.dataflow("twice", [("gen", [0])])
        begin = time.monotonic_ns()
        self.attempt(folder, 1, begin, range(0, 5), lost=True)
        self.attempt(folder, 2, begin + 600 * SECOND, range(4, 12), lost=False)
        with self.served("twice") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 12)
            spans = self.model(browser, "m.arrows.map((a) => [a.from.file.attempt,"
                               " a.to.file.attempt, a.t1 - a.t0])")
            self.assertEqual(len(spans), 4 + 8)
            for sent, handled, ns in spans:
                self.assertEqual(sent, handled)
                self.assertLess(ns, 2 * MS)
            self.assertEqual(self.model(browser, "m.inFlight().length"), 0)
            self.assertEqual(
                self.model(browser, "m.files.map((f) => [f.offset, f.clockError])"),
                [[0, 0]] * 4, "one host has one clock")
            # the step that both did is that of the second, as in metrics
            self.assertRegex(self.detail_of(browser, "gen", 5),
                             r"began\s+600\.\d+ s [^§]*took\s+50\.00 ms")
            ends = self.model(browser, "m.tracks.filter((t) => t.isDevice)"
                              ".map((t) => t.tasks().map((s) => s.e - s.b))")
            self.assertLess(max(ends[0]), SECOND, "killed with its attempt")
            self.fit(browser, "actors")
            texts = browser.run(TEXTS)
            self.assertIn("0 s", texts, "the axis begins with the run")
            self.assertIn("600 s", texts)
            self.assertNotIn("700 s", texts)
            browser.picture(self.pictures / "twice.png")
            self.assertEqual(browser.errors(), [])

    # -- many messages -------------------------------------------------------

    def test_messages_too_dense_to_draw_are_bundles_with_their_number(self):
        folder = self.trace_folder("busy", "done")
        master = trace_files.TraceFile(folder, "master", 0)
        worker = trace_files.TraceFile(folder, "worker 0", 1)
        call, shard = master.track("call gen"), worker.track("shard 0")
        name, other = master.name("run"), worker.name("run")
        begin, many = time.monotonic_ns(), 20_000
        master.events(master.event(trace_files.SEND, begin + i * 5 * MS, call,
                                   name, 1, i + 1) for i in range(many))
        worker.events(worker.event(kind, begin + i * 5 * MS + MS + kind, shard,
                                   other, 1, i + 1)
                      for i in range(many)
                      for kind in (trace_files.BEGIN, trace_files.RECEIVE,
                                   trace_files.END))
        master.close()
        worker.close()
        with self.served("busy") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.arrows.length") == many,
                  "every message")
            self.fit(browser, "actors")
            bundles = self.model(browser, "window.troupe.timeline.bundled.list.length")
            self.assertIn(f"{many:,} messages in view, as {bundles} bundles with "
                          "their number", self.said(browser))
            self.assertLess(bundles, 200)
            columns = browser.run(BUNDLED)
            self.assertEqual(sum(columns), many, "each message is in one bundle")
            # the messages are evenly spread; the view has a margin on both sides
            for count in columns[1:9]:
                self.assertAlmostEqual(count, many / 10 / 1.06, delta=many / 40)
            texts = [int(t.replace(",", "")) for t in browser.run(TEXTS)
                     if re.fullmatch(r"[\d,]+", t)]
            self.assertEqual(set(texts) - set(self.model(
                browser, "window.troupe.timeline.bundled.list.map((b) => b.count)")),
                set(), "a number is that of a bundle")
            self.assertGreater(len(texts), 5)
            browser.picture(self.pictures / "busy.png")
            # closer, each is an arrow again
            browser.run("const {timeline, model} = window.troupe; timeline.show("
                        f"model.begin + {50 * SECOND}, "
                        f"model.begin + {50 * SECOND + SECOND // 2})")
            time.sleep(0.3)
            counts = self.model(
                browser, "window.troupe.timeline.bundled.list.map((b) => b.count)")
            self.assertGreater(len(counts), 90)
            self.assertEqual(set(counts), {1})
            self.assertEqual(self.said(browser), "")
            self.assertEqual(browser.errors(), [])

    # -- a full trace --------------------------------------------------------

    def test_a_full_trace_shows_its_newest_steps_and_their_start(self):
        self.troupe(*self.ppo("run.steps=30", "trace.max_gb=0.0008"))
        folder = self.run_folder("ppo") / "trace"
        self.assertLess(sum(f.stat().st_size for f in folder.iterdir()), 800_000)
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/ppo", "--json").stdout)
        first = summary["complete_from_step"]
        self.assertGreater(first, 1)
        self.assertLess(first, 28)
        self.assertEqual(summary["steps"], 30 - first + 1)
        self.assertEqual(summary["dropped_events"], 0)
        self.assertEqual(summary["unmatched_arrows"], 0)
        self.assertIn(f"complete from step {first} on: "
                      f"{summary['removed_events']} older events",
                      self.troupe("trace", "summary", "runs/ppo").stdout)
        exported = self.troupe("trace", "export", "runs/ppo", "--check").stderr
        self.assertIn(f"complete from step {first} on", exported)
        self.assertIn(": 0 problems", exported)
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 3)
            self.assertIn(f"complete from step {first} on", self.header(browser))
            self.assertEqual(self.model(browser, "m.missing()"), {
                "events": summary["removed_events"], "wholeFrom": first})
            for step in (first, 30):  # devices, host and messages
                self.assertEqual(
                    sorted(self.model(browser, f"[...m.steps.get({step}).keys()]"
                                      ".filter((c) => c !== 'move')")),
                    ["actor_gen", "actor_train", "advantages", "critic_inf",
                     "critic_train", "ref_inf", "rew_inf"])
                self.assertGreater(self.model(
                    browser,
                    f"m.arrows.filter((a) => a.step === {step}).length"), 50)
            self.assertNotIn("waits", self.step_shown(browser))
            browser.picture(self.pictures / "full.png")
            self.assertEqual(browser.errors(), [])

    def until_detailed(self, browser, step):
        until(lambda: self.model(browser, f"m.loaded && m.isDetailed({step})"),
              f"step {step}")
        time.sleep(0.3)  # the next frame

    def test_older_steps_of_a_long_run_are_fetched_when_they_are_looked_at(self):
        folder = self.trace_folder("long", "done")
        self.dataflow("long", [(call, [0, 1, 2, 3])
                               for call in ("gen", "ref", "train")])
        steps, messages = 400, 1000
        events = long_traces.write_long_run(folder, steps, messages, 100 * MS,
                                            time.monotonic_ns())
        (self.run_folder("long") / "metrics.jsonl").write_text("".join(
            json.dumps({"step": step}) + "\n" for step in range(1, steps + 1)))
        with self.served("long") as url, self.browser() as browser:
            browser.open(url)
            self.until_detailed(browser, steps)
            first = self.model(browser, "m.missing().wholeFrom")
            self.assertGreater(first, 100)
            self.assertIn(f"complete from step {first} on", self.header(browser))
            browser.run("location.hash = '#step=5'")
            self.until_detailed(browser, 5)
            header = self.header(browser)
            shown = re.search(r"steps (\d+) to (\d+) in detail", header)
            self.assertIsNotNone(shown, header)
            self.assertEqual(int(shown[1]), 1)
            self.assertGreater(int(shown[2]), 20)
            for step in (1, 5, int(shown[2])):
                self.assertEqual(self.model(
                    browser, f"m.arrows.filter((a) => a.step === {step}).length"),
                    messages)
                self.assertEqual(self.model(
                    browser, f"[...m.steps.get({step})].map(([call, tasks]) => "
                    "[call, tasks.length])"),
                    [["gen", 4], ["ref", 4], ["train", 4]])
            self.assertIn("step 5", browser.run(
                "return document.getElementById('dataflow-title').innerText"))
            browser.picture(self.pictures / "older_step.png")
            # the step after the last one that is here
            browser.run(f"location.hash = '#step={shown[2]}'")
            time.sleep(0.3)
            browser.run("document.getElementById('step-on').click()")
            self.until_detailed(browser, int(shown[2]) + 1)
            self.assertLess(self.model(browser, "m.events"), 800_000)
            browser.run("document.getElementById('newest').click()")
            self.until_detailed(browser, steps)
            self.assertEqual(self.model(browser, "m.missing().events + m.events"),
                             events)
            self.assertNotIn("in detail", self.header(browser))
            # a link to an old step and task
            browser.open("about:blank")
            browser.open(f"{url}#step=7&task=gen&device=device%202")
            self.until_detailed(browser, 7)
            self.assertRegex(browser.run(
                "return document.getElementById('detail').innerText"),
                r"(?s)gen.*device 2")
            self.assertEqual(browser.errors(), [])

    def test_an_open_page_continues_while_old_files_are_removed(self):
        process = self.start(*self.ppo("run.steps=100000", "trace.max_gb=0.0008"))
        self.wait_for_step("ppo", 1)
        url = json.loads(self.troupe("status", "runs/ppo", "--json").stdout)[
            "trace_url"]
        first = self.run_folder("ppo") / "trace/worker_00_01.events"
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 1)
            until(lambda: not first.exists(), "the trace is full")
            seen = self.model(browser, "Math.max(...m.steps.keys())")
            for step in (seen + 40, seen + 80):  # the ring goes round
                until(lambda: self.model(browser, f"m.steps.has({step})"),
                      f"step {step}")
                self.assertEqual(
                    self.model(browser, f"m.steps.get({step}).size >= 1"), True)
            missing = self.model(browser, "m.missing().events")
            self.assertEqual(browser.errors(), [])
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/ppo", "--json").stdout)
        self.assertLess(missing, summary["removed_events"])

    # -- while it reads ------------------------------------------------------

    def test_half_of_a_run_is_not_shown(self):
        folder = self.trace_folder("large", "done")
        self.dataflow("large", [("gen", [0]), ("train", [0])])
        begin = time.monotonic_ns()
        worker = trace_files.TraceFile(folder, "worker 0", 1)
        steps = 150_000
        for step in range(0, steps, 1000):
            worker.tasks(0, "gen", step // 1000, [
                (begin + i * MS, begin + i * MS + MS // 2)
                for i in range(step, step + 1000)])
        worker.close()
        trace_files.TraceFile(folder, "master", 0).close()
        (self.run_folder("large") / "samples.jsonl").write_text("".join(
            json.dumps({"step": 1, "sample": i, "prompt": "p" * 400,
                        "response": "r" * 400}) + "\n" for i in range(10_000)))
        seen = []

        def look():
            text = browser.run("return [document.body.innerText, "
                               "window.troupe ? window.troupe.model.events : 0]")
            seen.append(text)
            return "critical path" in text[0] or "no step" in text[0]

        with self.served("large") as url, self.browser() as browser:
            browser.open(url)
            until(look, "the page shows the run")
            browser.picture(self.pictures / "large.png")
            loading = [(int(m[1]), events) for text, events in seen
                       if (m := re.search(r"loading (\d+) %", text))]
            self.assertTrue(loading, "it says how far it is")
            self.assertTrue(any(events for _, events in loading))
            for text, events in seen:
                if "loading" in text:
                    self.assertNotRegex(text, r"undefined|pid|ready|waits|events")
                else:
                    self.assertEqual(events, 2 * steps)
            self.assertNotRegex(self.step_shown(browser),
                                "undefined|ready|waits")
            self.assertEqual(browser.errors(), [])

    def test_a_run_without_a_step_has_no_step_undefined(self):
        self.dataflow_of_none()
        with self.served("none") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.loaded"), "it is read")
            until(lambda: "no step was recorded" in self.step_shown(browser),
                  "it says so")
            self.assertNotIn("undefined", browser.run(
                "return document.body.innerText"))

    def dataflow_of_none(self):
        folder = self.trace_folder("none", "failed")
        self.dataflow("none", [("gen", [0])])
        trace_files.TraceFile(folder, "master", 0).close()

    # -- the dataflow --------------------------------------------------------

    def test_texts_of_the_dataflow_stay_in_their_boxes(self):
        folder = self.trace_folder("boxes", "running")
        long = "reward_of_a_model_with_a_long_name"
        self.dataflow("boxes", [("gen", [0, 1]), (long, [0]), ("host", [])])
        file = trace_files.TraceFile(folder, "worker 0", 1)
        now = time.monotonic_ns()
        for device in (0, 1):
            file.events([file.event(trace_files.BEGIN, now - 16 * MS,
                                    file.track(f"device {device}", True),
                                    file.name("gen"), 1)])
        file.events([file.event(trace_files.BEGIN, now, file.track("host", True),
                                file.name("host"), 1)])
        with self.served("boxes") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: "0 of 2 done" in self.step_shown(browser),
                  "a call under way")
            self.assertEqual(browser.run(OUT_OF_BOX), [])
            browser.picture(self.pictures / "boxes.png")


class WholeInChromium(Whole, Case):
    browser = webdriver.Chromium


class WholeInFirefox(Whole, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
