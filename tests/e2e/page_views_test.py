"""What the views of the page say, beside what the run's files say: the first
screen, the map of actors, the timeline's levels of detail, search, addresses,
the story of a recovery, and the page as one file."""
import json
import math
import os
import re
import signal
import time
import unittest

import trace_files
import webdriver
from pages import Watched
from support import Case, read_rows, until

MS, SECOND = 10**6, 10**9
# Elements of the first screen without anything in them.
BLANK = """
const inked = (canvas) => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] && (data[i] !== data[0] || data[i + 1] !== data[1])) return true;
  return false;
};
return ['verdict', 'sparks', 'dataflow', 'map', 'timeline', 'minimap', 'panel'].filter((id) => {
  const node = document.getElementById(id), box = node.getBoundingClientRect();
  if (box.width < 100 || box.height < 16 || box.top > innerHeight) return true;
  return node.localName === 'canvas' ? !inked(node) : !node.innerText.trim();
});
"""
# Texts of the map that leave its canvas, and of the timeline that leave theirs.
PAINTED = """
const canvas = document.getElementById(arguments_), g = canvas.getContext('2d');
const out = [], was = g.fillText;
g.fillText = function (text, x, y, most) {
  const wide = Math.min(most || Infinity, this.measureText(text).width);
  const from = this.textAlign === 'center' ? x - wide / 2 : x;
  if (from < -1 || from + wide > canvas.clientWidth + 1) out.push(text);
  was.call(this, text, x, y, most);
};
paint_;
delete g.fillText;
return out;
"""


class Views(Watched):
    def row(self, browser, name):
        """The metric and the value of a small curve."""
        return browser.run(
            "const row = [...document.querySelectorAll('.spark-row')].find((r) =>"
            f" r.querySelector('.name').innerText === '{name}');"
            "return [row.dataset.metric, row.querySelector('b').innerText]")

    # -- the first screen ----------------------------------------------------

    def test_the_first_screen_answers_from_the_runs_files(self):
        self.troupe(*self.ppo("run.steps=12"))
        rows = read_rows(self.run_folder("ppo") / "metrics.jsonl")
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/ppo", "--json").stdout)
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            browser.fit(1280, 800)
            self.loaded(browser, 12)
            until(lambda: browser.run(BLANK) == [], "nothing is blank")
            header = browser.run("return document.querySelector('header').innerText")
            self.assertRegex(header, r"(?s)ppo.*done.*step 12 of 12.*attempt 1\b")
            self.assertNotIn("left", header)
            for name, metric in (("reward", "critic/score/mean"),
                                 ("length", "response_length/mean"),
                                 ("tokens/s", "perf/throughput")):
                shown, value = self.row(browser, name)
                self.assertEqual(shown, metric)
                value = float(value.replace(" k", "e3"))
                self.assertAlmostEqual(value, rows[-1][metric],
                                       delta=abs(rows[-1][metric]) * 0.01)
            self.assertEqual(self.row(browser, "idle")[1],
                             f"{round(100 * rows[-1]['perf/idle_ratio'])} %")
            verdict = self.text_of(browser, "verdict")
            idle = sum(r["perf/idle_ratio"] for r in rows) / len(rows)
            busy = re.search(r"Devices are (\d+) % busy", verdict)
            self.assertAlmostEqual(int(busy[1]), 100 * (1 - idle), delta=1)
            self.assertRegex(verdict, r"\w+ is \d+ % of the step")
            # the dataflow's critical path is that of `trace summary`
            path = self.model(browser, "criticalPath(m, 12).map((t) => t.call)")
            self.assertIn(" > ".join(path), re.sub(
                r" [\d.]+ [mu]?s", "", self.step_shown(browser)))
            self.assertEqual(summary["steps"], self.model(browser, "m.steps.size"))
            browser.picture(self.pictures / "first_screen.png")
            self.assertEqual(browser.errors(), [])

    # -- the map of actors ---------------------------------------------------

    def test_each_dot_on_the_map_is_a_message_of_the_trace(self):
        self.troupe(*self.ppo("run.steps=4"))
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 4)
            browser.run("window.troupe.map.show(3)")
            for share in (0.1, 0.35, 0.6, 0.85, 1):
                dots, wanted, told = browser.run(f"""
                    const {{map, model}} = window.troupe;
                    map.seek({share});
                    map.draw(performance.now());
                    const wanted = model.arrows.filter((a) => a.t0 <= map.t
                      && Math.max(a.t1, a.t0 + map.least) > map.t);
                    const key = (a) => `${{a.t0}} ${{a.from.name}} ${{a.to.name}}`;
                    return [map.dots.map((d) => key(d.arrow)).sort(),
                            wanted.map(key).sort(),
                            document.getElementById('map-said').innerText];""")
                self.assertEqual(dots, wanted)
                self.assertIn(f"{len(dots)} message", told)
            # at the end of the step, the map has counted all that it sent
            counted, sent = browser.run("""
                const {map, model} = window.troupe;
                const edges = [...map.edges.values()];
                return [edges.reduce((n, e) => n + e.count, 0) + map.inside,
                        model.arrows.filter((a) => a.t0 > map.span.b
                                                   && a.t0 <= map.span.e).length];""")
            self.assertEqual(counted, sent)
            self.assertGreater(sent, 50)
            # from one message to the next
            times = browser.run("""
                const {map} = window.troupe, times = [];
                map.seek(0.3);
                for (let i = 0; i < 10; ++i) { map.hop(true); times.push(map.t); }
                return times;""")
            ends = set(self.model(browser, "m.arrows.flatMap((a) => [a.t0, a.t1])"))
            self.assertEqual(times, sorted(set(times)), "each is later")
            self.assertLessEqual(set(times), ends)
            self.assertEqual(browser.run(PAINTED.replace(
                "arguments_", "'map'").replace(
                    "paint_", "window.troupe.map.paint(g)")), [])
            browser.picture(self.pictures / "map.png")
            self.assertEqual(browser.errors(), [])

    def test_a_map_of_a_thousand_actors_folds_and_moves(self):
        folder = self.trace_folder("wide", "done")
        now, flow = time.monotonic_ns(), 0
        master = trace_files.TraceFile(folder, "master", 0)
        calls = [master.track(f"call c{i}") for i in range(24)]
        run = master.name("run")
        for number in range(64):
            worker = trace_files.TraceFile(folder, f"worker {number}", number + 1)
            name = worker.name("run")
            for shard in range(16):
                flow += 1
                at = now + flow * MS // 10
                reader = worker.track(f"shard r@c/{shard}")
                master.events([master.event(trace_files.SEND, at, calls[flow % 24],
                                            run, 0, flow)])
                worker.events([worker.event(kind, at + MS, reader, name, 0, flow)
                               for kind in (trace_files.BEGIN, trace_files.RECEIVE,
                                            trace_files.END)])
            worker.tasks(number, "c1", 0, [(now, now + 200 * MS)])
            worker.close()
        master.close()
        with self.served("wide") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.arrows.length") == 1024,
                  "every message")
            places, tracks, counted = browser.run("""
                const {map, model} = window.troupe;
                map.show(1);
                map.draw(performance.now());
                return [map.places.length,
                        map.places.reduce((n, p) => n + p.tracks.length, 0),
                        [...map.edges.values()].reduce((n, e) => n + e.count, 0)];""")
            self.assertEqual(tracks, 1024 + 24, "each actor has a place")
            self.assertLess(places, 120)
            self.assertGreater(counted, 1000)
            self.assertEqual(self.model(
                browser, "window.troupe.timeline.lanes.filter((l) => l.mean).length"),
                0, "64 processes of one device each are 64 lanes")
            browser.picture(self.pictures / "wide.png")
            self.assertEqual(browser.errors(), [])

    # -- the timeline --------------------------------------------------------

    def test_what_is_measured_is_what_the_trace_holds(self):
        folder = self.trace_folder("sums", "done")
        (self.run_folder("sums") / "dataflow.json").write_text(json.dumps(
            {"calls": [{"name": name, "kind": kind, "role": "", "reads": [],
                        "writes": [], "devices": [0], "strategy": "d1", "lag": 0}
                       for name, kind in (("gen", "generate"), ("train", "train"))],
             "edges": [{"from": "gen", "to": "train", "keys": ["k"]}]}))
        begin, steps = time.monotonic_ns(), 2000
        file = trace_files.TraceFile(folder, "worker 0", 1)
        for step in range(steps):  # 2 ms + 1 ms idle + 6 ms + 1 ms idle
            at = begin + step * 10 * MS
            file.tasks(0, "gen", step, [(at, at + 2 * MS)])
            file.tasks(0, "train", step, [(at + 3 * MS, at + 9 * MS)])
        file.close()
        trace_files.TraceFile(folder, "master", 0).close()
        with self.served("sums") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, steps)
            browser.run("document.getElementById('fit').click()")
            until(lambda: "1 lane too dense for tasks"
                  in self.text_of(browser, "said"), "the lane says that it is dense")
            browser.picture(self.pictures / "dense.png")
            # colours of the lane in the middle: a fifth, three fifths, a fifth
            browser.run("const {timeline, model} = window.troupe; timeline.select("
                        f"model.begin + {5 * SECOND}, model.begin + {15 * SECOND})")
            said = self.text_of(browser, "selection")
            for words in ("10.0 s on 1 device", "2,00", "train 60 %", "generate 20 %"):
                self.assertIn(words, said)
            self.assertEqual(sum(int(n) for n in re.findall(r"(\d+) %", said)), 100)
            # closer, tasks are drawn, and their names do not leave them
            browser.run("const {timeline, model} = window.troupe; timeline.show("
                        f"model.begin + {SECOND}, model.begin + {SECOND + 50 * MS})")
            until(lambda: "dense" not in self.text_of(browser, "said"),
                  "tasks are drawn")
            self.assertEqual(browser.run(PAINTED.replace(
                "arguments_", "'timeline'").replace(
                    "paint_", "window.troupe.timeline.draw()")), [])
            # what is seen, as SVG
            texts = browser.run("""
                const drawing = new DOMParser().parseFromString(
                  window.troupe.timeline.drawing(), 'image/svg+xml');
                return [...drawing.querySelectorAll('text, parsererror')].map(
                  (node) => node.textContent);""")
            for name in ("device 0", "train 102", "train 103"):
                self.assertIn(name, texts)
            self.assertEqual(browser.errors(), [])

    def test_search_finds_and_an_address_leads_back(self):
        self.troupe(*self.ppo("run.steps=4"))
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 4)
            browser.run("""
                const box = document.getElementById('search');
                box.value = 'actor_train 2';
                box.dispatchEvent(new Event('input'));""")
            self.assertRegex(self.text_of(browser, "hits"), r"actor_train of step 2")
            browser.run("document.querySelector('#hits button').click()")
            detail = self.text_of(browser, "detail")
            self.assertIn("actor_train of step 2", detail)
            address = until(lambda: browser.run(
                "return location.hash.includes('task') && location.hash"),
                "the address names it")
            for part in ("step=2", "task=actor_train", "device=device+"):
                self.assertIn(part, address)
            view = browser.run("return [troupe.timeline.from, troupe.timeline.to]")
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url + address)
            self.loaded(browser, 4)
            until(lambda: self.text_of(browser, "detail"), "the task is shown")
            self.assertEqual(self.text_of(browser, "detail").splitlines()[:9],
                             detail.splitlines()[:9])
            for now, then in zip(browser.run(
                    "return [troupe.timeline.from, troupe.timeline.to]"), view):
                self.assertAlmostEqual(now, then, delta=2000)  # ns
            self.assertEqual(browser.errors(), [])

    def test_a_task_stands_beside_what_was_clicked(self):
        self.troupe(*self.ppo("run.steps=4"))
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 4)
            for share in (0.1, 0.4, 0.6, 0.9):
                box, x = browser.run(f"""
                    const {{timeline, model}} = window.troupe;
                    const lane = timeline.lanes.find((l) => l.of && l.of.isDevice);
                    const canvas = timeline.canvas, at = canvas.getBoundingClientRect();
                    const x = at.left + timeline.left
                      + {share} * (at.width - timeline.left);
                    timeline.show(model.stepSpan(3).b, model.stepSpan(3).e);
                    timeline.at = () => ({{lane, slice: lane.of.tracks[0].tasks()[3]}});
                    timeline.pick({{offsetX: x - at.left, offsetY: lane.y + 4,
                                   clientX: x, clientY: at.top + lane.y + 4}});
                    delete timeline.at;
                    const box = document.getElementById('detail')
                      .getBoundingClientRect();
                    return [[box.left, box.right], x];""")
                self.assertFalse(box[0] <= x <= box[1], (box, x))
                self.assertGreater(box[1] - box[0], 300)
            self.assertEqual(browser.errors(), [])

    # -- failures ------------------------------------------------------------

    def test_a_recovery_is_told_as_it_was(self):
        process = self.start(*self.ppo("run.steps=100000", "run.save_every=2"))
        self.wait_for_step("ppo", 3)
        os.kill(self.workers()[0], signal.SIGKILL)
        record = self.run_folder("ppo") / "failures.jsonl"
        until(lambda: record.exists() and read_rows(record), "a recovery")
        self.wait_for_step("ppo", max(self.metrics("ppo")) + 2)
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)
        failure, = read_rows(record)
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 3)
            story, = browser.run(
                "return window.troupe.story(window.troupe.model)")
            self.assertAlmostEqual((story["resumed"] - story["noticed"]) / SECOND,
                                   failure["seconds"], places=3)
            self.assertGreater(story["cost"], 0)
            # it went on where the last attempt had left off: in its last step,
            # or after it, less what was lost
            self.assertIn(story["backTo"] + failure["lost_steps"],
                          (story["reached"], story["reached"] + 1))
            told = self.panel(browser, "failures")
            for words in (re.escape(failure["what"]), r"the last sign of life of",
                          rf"{failure['lost_steps']} steps? lost",
                          r"attempt 2 runs its first task", r"Cost: "):
                self.assertRegex(told, words)
            header = browser.run("return document.querySelector('header').innerText")
            self.assertIn(f"attempt 2 (1 recovered, {failure['lost_steps']} step",
                          header)
            self.assertEqual(self.model(
                browser, "new Set(window.troupe.timeline.lanes.filter((l) => l.of && "
                "l.of.isDevice).map((l) => l.name)).size"), 4,
                "one lane a device over both attempts")
            browser.picture(self.pictures / "recovery.png")
            self.assertEqual(browser.errors(), [])

    # -- two runs ------------------------------------------------------------

    def test_two_runs_are_compared(self):
        for name, steps, lr in (("one", 4, 1e-4), ("two", 6, 1e-3)):
            self.troupe(*self.ppo(f"run.name={name}", f"run.steps={steps}",
                                  f"models.actor.optimizer.lr={lr}"))
        process = self.start("trace", "serve", "runs/one", "runs/two")
        url = process.wait_for_line(r"\S+").group(0)
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 4)
            until(lambda: self.model(
                browser, "window.troupe.state.beside.every((o) => o.loaded)"),
                "the other run is read")
            told = self.panel(browser, "compare")
            self.assertRegex(told, r"two is (slower|faster|as fast): .* a step, one ")
            self.assertRegex(told, r"run\.steps\s+4\s+6")
            self.assertRegex(told, r"models\.actor\.optimizer\.lr\s")
            self.assertRegex(told, r"actor_train\s+[\d.]+ [mu]?s\s+[\d.]+ [mu]?s")
            for name in ("one", "two"):
                reward = read_rows(self.run_folder(name) / "metrics.jsonl")[-1][
                    "critic/score/mean"]
                shown = re.search(rf"\b{name} (-?[\d.]+)",
                                  told.split("curves over")[1])
                self.assertAlmostEqual(float(shown[1]), reward, delta=0.01)
            browser.picture(self.pictures / "compare.png")
            self.assertEqual(browser.errors(), [])
        process.send(signal.SIGTERM)
        process.finish()

    # -- samples -------------------------------------------------------------

    def test_tokens_of_samples_are_shaded_by_their_probabilities(self):
        self.troupe(*self.ppo("run.steps=2"))
        samples = read_rows(self.run_folder("ppo") / "samples.jsonl")
        unlikely = [1 - math.exp(logprob) for sample in samples
                    for logprob, own in zip(sample["logprobs"], sample["loss_mask"])
                    if own]
        gains = [-math.expm1(-abs(advantage)) * (1 if advantage > 0 else -1)
                 for sample in samples
                 for advantage, own in zip(sample["advantages"], sample["loss_mask"])
                 if own]
        with self.served("ppo") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 2)
            self.panel(browser, "samples")
            weights, advantages, texts, known = browser.run("""
                const {model, state} = window.troupe;
                const select = document.querySelector('select[title=shade]');
                const weights = (by) => {
                  select.value = by;
                  select.dispatchEvent(new Event('change'));
                  return [...document.querySelectorAll('.tokens > span')].filter((s) => s.title.startsWith('p ')).map((s) =>
                    (s.className === 'less' ? -1 : 1) * parseFloat(s.style.getPropertyValue('--weight')));
                };
                return [weights('logprob'), weights('advantage'),
                        [...document.querySelectorAll('.tokens')].map((t) => t.textContent),
                        model.samples.map((s) => s.response)]""")
            browser.picture(self.pictures / "samples.png")
            self.assertEqual(browser.errors(), [])
        for shades, numbers in ((weights, unlikely), (advantages, gains)):
            self.assertEqual(len(shades), len(numbers))
            for shown, wanted in zip(sorted(shades), sorted(numbers)):
                self.assertAlmostEqual(shown, 100 * wanted, delta=0.51)
        def ascii_of(text):  # others may be of several tokens; pads are shown
            return re.sub(r"<\|\w+\|>|[^ -~]", "", text).strip()
        for response in known:
            self.assertTrue(any(ascii_of(response) in ascii_of(text)
                                for text in texts), response)

    # -- one file ------------------------------------------------------------

    def test_a_report_is_the_same_page_without_a_server(self):
        self.troupe(*self.ppo("run.steps=4"))
        done = self.troupe("trace", "report", "runs/ppo", "--html", "ppo.html")
        self.assertRegex(done.stderr, r"ppo\.html: the page of the run, [\d.]+ MB")
        seen = []
        with self.served("ppo") as url:
            for address in (url, (self.folder / "ppo.html").as_uri()):
                with self.browser() as browser:
                    browser.open(address)
                    self.loaded(browser, 4)
                    until(lambda: not self.model(browser, "m.changed")
                          and self.text_of(browser, "verdict"), "all is drawn")
                    seen.append([
                        self.text_of(browser, "verdict"), self.step_shown(browser),
                        self.panel(browser, "samples"), self.panel(browser, "waits"),
                        self.model(browser, "[m.events, m.arrows.length]")])
                    self.assertEqual(browser.errors(), [])
        self.assertEqual(seen[0], seen[1])


class ViewsInChromium(Views, Case):
    browser = webdriver.Chromium


class ViewsInFirefox(Views, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
