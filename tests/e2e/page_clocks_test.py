"""The clocks of several hosts on the trace page: the server computes the offsets
(runtime/trace/clock_offsets.hpp), the page and a report add them."""
import json
import time
import unittest

import trace_files
import webdriver
from pages import Watched
from support import Case, until

MS, SECOND = 10**6, 10**9


class Clocks(Watched):
    def two_hosts(self, name, state):
        """The worker's clock is an hour ahead of the master's and its real-time
        clock 40 ms: for 30 s a request every 100 ms, which arrives after 2 ms,
        and its answer."""
        folder = self.trace_folder(name, state)
        master = trace_files.TraceFile(folder, "master", 0)
        worker = trace_files.TraceFile(folder, "worker 0", 1,
                                       clock_ns=3600 * SECOND,
                                       realtime_ns=40 * MS)
        begin = time.monotonic_ns()
        for i in range(300):
            self.request(master, worker, begin + i * 100 * MS, i + 1)
        return begin, master, worker

    def request(self, master, worker, at, flow):
        call, shard = master.track("call gen"), worker.track("shard 0")
        run, reply = master.name("run"), worker.name("reply")
        answer = flow | trace_files.REPLY
        master.events([
            master.event(trace_files.SEND, at, call, run, 1, flow),
            master.event(trace_files.RECEIVE, at + 4 * MS, call,
                         master.name("reply"), 1, answer)])
        worker.events([
            worker.event(trace_files.RECEIVE, at + 2 * MS, shard,
                         worker.name("run"), 1, flow),
            worker.event(trace_files.SEND, at + 2 * MS, shard, reply, 1, answer)])

    def spans_ms(self, browser):
        return set(self.model(browser, "m.arrows.map((a) => "
                              "Math.round((a.t1 - a.t0) / 1e4) / 100)"))

    def test_the_clocks_of_two_hosts_are_aligned_by_the_server(self):
        _, master, worker = self.two_hosts("hosts", "done")
        master.close()
        worker.close()
        clock = json.loads(self.troupe("trace", "summary", "runs/hosts",
                                       "--json").stdout)["clocks"]
        with self.served("hosts") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.arrows.length") == 600,
                  "every message")
            self.assertEqual(self.spans_ms(browser), {2}, "none is early")
            offset, error = self.model(
                browser, "[m.files[1].offset, m.files[1].clockError]")
            self.assertEqual([c["process"] for c in clock], ["worker 0"])
            self.assertAlmostEqual(offset / 1e6, clock[0]["add_ms"], delta=1e-3)
            self.assertAlmostEqual(error / 1e6, clock[0]["error_ms"], delta=1e-3)
            self.assertRegex(self.panel(browser, "health"),
                             "the same[^§]*\u00b12.00 ms")
            self.assertEqual(browser.errors(), [])
        report = self.folder / "hosts.html"
        self.troupe("trace", "report", "runs/hosts", "--html", str(report))
        with self.browser() as browser:
            browser.open(report.as_uri())
            until(lambda: self.model(browser, "m.arrows.length") == 600,
                  "every message of the report")
            self.assertEqual(self.spans_ms(browser), {2})

    def test_clocks_are_aligned_while_a_run_goes_on(self):
        begin, master, worker = self.two_hosts("hosts", "running")
        with self.served("hosts") as url, self.browser() as browser:
            browser.open(url)
            until(lambda: self.model(browser, "m.arrows.length") == 600,
                  "every message")
            # from now on the other clock gains a millisecond every ten seconds
            for i in range(300, 600):
                worker.clock_ns += MS // 100
                self.request(master, worker, begin + i * 100 * MS, i + 1)
            until(lambda: self.model(browser, "m.arrows.length") > 1190,
                  "every later message")
            spans = self.spans_ms(browser)
            self.assertGreater(min(spans), 0, "none is early")
            self.assertLess(max(spans), 5)
            offsets = self.model(browser, "m.files[1].clocks.map((c) => c[1])")
            self.assertAlmostEqual(offsets[0] / 1e6, -3600e3, delta=0.01)
            self.assertLess(offsets[-1] / 1e6, -3600e3 - 1)
            self.assertEqual(browser.errors(), [])


class ClocksInChromium(Clocks, Case):
    browser = webdriver.Chromium


class ClocksInFirefox(Clocks, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
