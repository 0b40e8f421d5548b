"""The trace page in real browsers, Chromium and Firefox: a finished run, a live
one, workers that stop, and runs that only their trace files know. TROUPE_SOAK=1
is for a quiet machine: it holds the page to its times."""
import datetime
import json
import os
import re
import signal
import time
import unittest

import trace_files
import webdriver
from pages import EVERY_TAB, Watched
from support import Case, until

QUIET = bool(os.environ.get("TROUPE_SOAK"))
DEATH_S = 1.0 if QUIET else 2.0
SUSPECT_S = 2.0 if QUIET else 4.0


class Page(Watched):
    """Tests of the page in any browser."""

    def test_a_finished_run_shows_everything_it_recorded(self):
        self.troupe(*self.ppo("run.steps=4"))
        process, url = self.serve("ppo")
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 4)
            # I7: every message has both ends
            self.assertEqual(self.model(browser, "m.dropped()"), 0)
            self.assertEqual(self.model(browser, "m.sends.size"), 0)
            self.assertGreater(self.model(browser, "m.arrows.length"), 200)
            self.assertEqual(self.model(browser, "openWaits(m).length"), 0)
            self.assertEqual(self.model(browser, "m.metrics.length"), 4)
            self.assertEqual(self.model(browser, "m.devices().length"), 4)
            path = self.model(browser, "criticalPath(m, 3).map((t) => t.call)")
            self.assertEqual(path[0], "actor_gen")
            self.assertEqual(path[-2], "advantages")  # on the host
            self.assertIn(path[-1], ("actor_train", "critic_train"))
            detail = self.detail_of(browser, "actor_train", 3)
            for words in (r"weights after step 2", r"on devices 0, 1",
                          r"advantages\s+[\d.]+ k?B\s+[\d.]+ k?B\s+"
                          r"from advantages"):
                self.assertRegex(detail, words)
            self.assertRegex(self.detail_of(browser, "actor_gen", 3),
                             r"outputs[^§]*sequence_ids\s+\d[^§]*"
                             r"for rew_inf, ref_inf")
            # the rows that worker 1 pulled from worker 0: a cell of a matrix
            self.assertRegex(
                self.panel(browser, "links").split("messages between")[0],
                r"worker 0\s+-\s+(?![0.]+ )[\d.]+ [kM]?B/s\s+"
                r"[\d.]+ k?M?B in step \d+")
            for tab in EVERY_TAB:
                self.assertNotRegex(self.panel(browser, tab),
                                    r"NaN|undefined|Infinity", tab)
                browser.picture(self.pictures / f"{tab}.png")
            self.assertEqual(browser.errors(), [])
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 0)

    def live(self, *overrides):
        """A long PPO run that made steps, and the address of its page."""
        process = self.start(*self.ppo("run.steps=100000", *overrides))
        self.wait_for_step("ppo", 2)
        status = self.troupe("status", "runs/ppo", "--json").stdout
        return process, json.loads(status)["trace_url"]

    def test_a_live_run_is_seen_while_it_runs_and_a_death_within_a_second(self):
        process, url = self.live("cluster.max_restarts=0")
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 3)
            before = self.model(browser, "m.events")
            until(lambda: self.model(browser, "m.events") > before,
                  "new events arrive")
            self.assertTrue(self.model(browser, "m.live()"))
            browser.picture(self.pictures / "live.png")
            for row in ("master", "worker 0"):
                shown = row + r"\s+\d+\s+\S+\s+(running|ready)\s+[\d.]+ [MG]B"
                until(lambda: re.search(shown, self.panel(browser, "health")),
                      f"the memory of {row} is shown")
            os.kill(self.workers()[0], signal.SIGKILL)
            killed = time.monotonic()
            until(lambda: self.banner(browser), "the page names the death")
            self.assertLess(time.monotonic() - killed, DEATH_S)
            browser.picture(self.pictures / "death.png")
        self.assertEqual(process.finish().code, 1)

    def test_the_page_stays_connected_while_a_run_recovers(self):
        process, url = self.live("run.save_every=2")
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 3)
            os.kill(self.workers()[0], signal.SIGKILL)
            until(lambda: self.banner(browser), "the page names the death")
            browser.picture(self.pictures / "recovering.png")
            until(lambda: not self.banner(browser), "the run goes on")
            step = max(self.metrics("ppo"))
            self.wait_for_step("ppo", step + 3)
            before = self.model(browser, "m.events")
            until(lambda: self.model(browser, "m.events") > before,
                  "events of the second attempt arrive")
            browser.picture(self.pictures / "recovered.png")
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)

    def test_a_stopped_worker_is_suspect_within_two_seconds(self):
        process, url = self.live()
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 2)
            victim = self.workers()[0]
            os.kill(victim, signal.SIGSTOP)
            stopped = time.monotonic()
            until(lambda: f"(pid {victim}) is suspect" in self.banner(browser),
                  "the page names the silent worker")
            self.assertLess(time.monotonic() - stopped, SUSPECT_S)
            browser.picture(self.pictures / "suspect.png")
            os.kill(victim, signal.SIGCONT)
            until(lambda: not self.banner(browser), "it speaks again")
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)

    # -- runs that only their trace files know -------------------------------

    def test_an_artificially_slow_device_is_named(self):
        file = trace_files.TraceFile(self.trace_folder("slow", "done"),
                                     "worker 0", 1)
        now = time.monotonic_ns()
        for step in range(10):
            for device in range(4):
                begin = now + step * 10**8
                length = 25_000_000 if device == 2 else 10_000_000 + device
                file.tasks(device, "ref_inf", step, [(begin, begin + length)])
        file.close()
        with self.served("slow") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 10)
            self.assertRegex(self.panel(browser, "stragglers"),
                             r"^device 2 is slow: 2.50 times the others in "
                             r"ref_inf")

    def test_a_task_shows_what_its_process_logged_meanwhile(self):
        folder = self.trace_folder("logs", "running")
        file = trace_files.TraceFile(folder, "worker 0", 1)
        now, clock = time.monotonic_ns(), time.time()
        second = 10**9
        file.tasks(0, "ref_inf", 1, [(now - 9 * second, now - 7 * second)])
        file.events([file.event(trace_files.BEGIN, now - second,
                                file.track("device 0", True),
                                file.name("actor_gen"), 2)])
        (folder.parent / "logs").mkdir()
        log = folder.parent / "logs/worker_00.log"

        def line(ago, text):
            at = datetime.datetime.fromtimestamp(clock - ago)
            return f"{at.isoformat(' ', 'milliseconds')} warning models: {text}\n"
        log.write_text(line(9.5, "an early one") + line(8, "in the middle")
                       + "and its second line\n" + line(6, "a late one")
                       + line(5, "after ref_inf") + line(4, "of pref_inference"))
        with self.served("logs") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 2)
            seen = self.detail_of(browser, "ref_inf", 2)
            for words in ("worker 0: warning models: in the middle",
                          "worker 0: and its second line", "after ref_inf"):
                self.assertIn(words, seen)
            for words in ("early", "late", "pref_inference"):
                self.assertNotIn(words, seen)
            time.sleep(2)  # what comes now is new to the page
            with open(log, "a") as more:
                more.write("printed by a user-defined function\n")
            until(lambda: "worker 0: printed by a user-defined function"
                  in self.detail_of(browser, "actor_gen", 3),
                  "a live task shows what its process prints")
            browser.picture(self.pictures / "task_log.png")
            self.assertEqual(browser.errors(), [])

    def test_metrics_of_user_programs_are_curves(self):
        folder = self.trace_folder("own", "done")
        trace_files.TraceFile(folder, "worker 0", 1).close()
        (folder.parent / "metrics.jsonl").write_text("".join(
            json.dumps({"step": step, "hello/letters": step / 4,
                        "timing_s/gen": 1.0}) + "\n" for step in (1, 2, 3)))
        (folder.parent / "samples.jsonl").write_text(json.dumps(
            {"step": 1, "sample": 0, "prompt": "p", "response": "r",
             "keys": {"letters": [0.125], "said": "a text"}}) + "\n")
        with self.served("own") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.metrics.length") == 3,
                  "the page has the metrics")
            until(lambda: "0.125" in self.panel(browser, "samples"),
                  "own keys stand beside their sample")
            curves = self.panel(browser, "curves")
            self.assertIn("hello/letters: 0.75", curves)
            self.assertNotIn("timing_s", curves)

    def hops(self):
        """A request that is handed on, in step 1; one of step 2, whose last
        message is on its way."""
        file = trace_files.TraceFile(self.trace_folder("hops", "running"),
                                     "master", 0)
        now, ms = time.monotonic_ns(), 10**6
        master, call, shard, late = (file.track(name) for name in (
            "master", "call gen", "shard 0", "call late"))
        sent = (("run", 0, 1, master, call), ("fetch", 0, 2, call, shard),
                ("reply", 0, 2 | trace_files.REPLY, shard, call),
                ("reply", 0, 1 | trace_files.REPLY, call, master),
                ("run", 1, 3, master, late), ("note", 1, 4, master, late),
                ("note", 1, 5, master, None))
        for i, (text, step, flow, source, target) in enumerate(sent):
            name = file.name(text)
            file.events([file.event(trace_files.SEND, now + i * ms, source,
                                    name, step, flow)])
            if target is not None:
                file.events(file.event(kind, now + i * ms + ms // 2 + kind,
                                       target, name, step, flow)
                            for kind in (trace_files.BEGIN, trace_files.RECEIVE,
                                         trace_files.END))
        for step, length in enumerate((5, 2)):
            file.tasks(0, "gen", step, [(now + 6 * step * ms,
                                         now + (6 * step + length) * ms)])

    def chosen(self, browser, box, value):
        """The messages that a choice above the timeline leaves."""
        browser.run(f"const box = document.getElementById('{box}');"
                    f"box.value = '{value}'; box.dispatchEvent(new Event('change'));")
        text = self.panel(browser, "messages")
        browser.run(f"const box = document.getElementById('{box}');"
                    "box.value = ''; box.dispatchEvent(new Event('change'));")
        return re.findall(r"(run|fetch|reply|note)\b", text)

    def test_messages_are_filtered_followed_and_counted(self):
        self.hops()
        with self.served("hops") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 2)
            self.assertEqual(len(self.chosen(browser, "filter-kind", "")), 7)
            self.assertEqual(self.chosen(browser, "filter-kind", "fetch"),
                             ["fetch"])
            self.assertEqual(self.chosen(browser, "filter-actor", "shard 0"),
                             ["reply", "fetch"])
            self.assertEqual(self.chosen(browser, "filter-step", "2"),
                             ["note", "note", "run"])
            self.assertRegex(self.panel(browser, "mailboxes"),
                             r"call late\s+master\s+1\s+[\d.]+ [mu]?s")
            browser.run("window.troupe.state.follow("
                        "window.troupe.model.arrows.find((a) => a.name === 'run'))")
            self.assertRegex(
                browser.run("return document.getElementById('detail').innerText"),
                r"(?s)all hops.*\srun\s+master > call gen.*"
                r"\. fetch\s+call gen > shard 0.*"
                r"\. reply\s+shard 0 > call gen.*\sreply\s+call gen > master")
            browser.run("const step = document.getElementById('filter-step');"
                        "step.value = 2; step.dispatchEvent(new Event('change'));"
                        "document.getElementById('pin').click()")
            self.assertRegex(self.panel(browser, "steps"),
                             r"step 2 \(pinned\)\s+step 1\s+mean\s+of the "
                             r"critical path\s+gen\s+2.00 ms\s+5.00 ms\s+"
                             r"3.50 ms")
            self.assertEqual(browser.errors(), [])

    def test_an_artificial_cycle_of_waits_is_named(self):
        file = trace_files.TraceFile(self.trace_folder("cycle", "running"),
                                     "master", 0)
        a, b, c = (file.track(name) for name in ("call a", "call b", "call c"))
        run, now = file.name("run"), time.monotonic_ns()
        reply = 1 | trace_files.REPLY
        arrows = [(1, a, b), (reply, b, a),            # gets its reply
                  (2, a, b), (3, b, c), (4, c, a)]     # wait for each other
        file.events(file.event(kind, now + 2000 * i + kind, track, run, 1, flow)
                    for i, (flow, source, target) in enumerate(arrows)
                    for kind, track in ((trace_files.SEND, source),
                                        (trace_files.RECEIVE, target)))
        with self.served("cycle") as url, self.browser() as browser:
            browser.open(url)
            self.assertEqual(
                until(lambda: self.banner(browser), "a banner"),
                "a cycle of waits: call a > call b > call c > call a")
            self.assertIn("call b waits for call c",
                          self.panel(browser, "waits"))


class PageInChromium(Page, Case):
    browser = webdriver.Chromium


class PageInFirefox(Page, Case):
    browser = webdriver.Firefox


class NoPage(Case):
    def test_a_folder_that_is_no_run_is_one_line(self):
        done = self.troupe("trace", "serve", "nowhere", code=2)
        self.assertRegex(done.stderr, r"^error: nowhere.*run folder")
        self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
