"""Measurements of `troupe profile` and their use: a hardware file that
the planning commands take, and the numbers of `plan: auto`."""
import json
import re
import unittest

from support import PROFILE, Case

NUMBER = re.compile(r"^  (\w+): \{value: ([^,]+), source: \"([^\"]+)\"\}", re.M)
ENTRY = re.compile(r"^  - \{op: (\w+), parameters: (\d+), tp: (\d+), "
                   r"tokens: (\S+), median_s: (\S+)\}$", re.M)
TWO_DEVICES = ["cluster.devices_per_node=2", "cluster.workers_per_node=2",
               "plan=data_parallel"]
LIMIT_S = 180  # of tests; the promise is for a machine that does nothing else


class Profile(Case):
    def settings(self, *overrides):
        """Arguments of the tiny PPO run, without the command."""
        return self.ppo(*overrides)[1:]

    def test_measures_layouts_links_and_the_optimizer_separately(self):
        self.cached_hardware.unlink()
        words = self.settings(*TWO_DEVICES)
        done = self.troupe("profile", *words, "--out", "here.yaml",
                           seconds=LIMIT_S)
        self.assertIn("2 devices at work at once", done.stderr)
        self.assertNotIn("assumed", done.stderr)
        text = (self.folder / "here.yaml").read_text()

        numbers = {name: (float(value), source)
                   for name, value, source in NUMBER.findall(text)}
        values = re.findall(r"^  \w+: (.*)$", text, re.M)
        self.assertEqual(len(values), len(numbers), "numbers without a source")
        for name in ("gemm_flops", "mem_Bps", "optimizer_Bps", "intra_Bps",
                     "intra_lat_s", "zero_Bps", "host_Bps", "move_s"):
            value, source = numbers[name]
            self.assertGreater(value, 0, name)
            self.assertNotIn("assumed", source, name)
        # what a task costs beside its work may be all for its devices or all
        # for the call, but never nothing
        self.assertGreater(numbers["call_s"][0] + numbers["call_device_s"][0], 0)
        self.assertNotIn("assumed", numbers["call_s"][1])

        entries = ENTRY.findall(text)
        for op in ("forward", "train", "prefill", "decode"):
            for tp in ("1", "2"):
                sizes = {float(tokens): float(seconds)
                         for name, _, degree, tokens, seconds in entries
                         if (name, degree) == (op, tp)}
                self.assertGreaterEqual(len(sizes), 3, (op, tp))
                self.assertGreater(min(sizes.values()), 0)
        self.assertEqual(self.cached_hardware.read_text(), text)

        for plan in ("data_parallel", "megatron"):
            run = json.loads(self.troupe(
                "plan", "simulate", *self.settings(*TWO_DEVICES), "--preset",
                plan, "--hardware", "here.yaml", "--json").stdout)
            self.assertGreater(run["step_s"], 0.001, plan)
            self.assertLess(run["step_s"], 60, plan)

    def test_a_run_with_plan_auto_measures_once_and_says_so(self):
        self.cached_hardware.unlink()
        words = ["run.steps=1", "plan=auto", "cluster.devices_per_node=4"]
        first = self.troupe(*self.sft("run.name=first", *words))
        self.assertRegex(first.stdout + first.stderr,
                         r"numbers of this machine: measured now in [\d.]+ s")
        text = self.cached_hardware.read_text()
        self.assertIn("profiled on", text)
        self.assertEqual({degree for _, _, degree, _, _ in ENTRY.findall(text)},
                         {"1", "2", "4"}, "what four devices may have")
        again = self.troupe(*self.sft("run.name=second", *words))
        self.assertIn(f"numbers of this machine: {self.cached_hardware}",
                      again.stdout + again.stderr)

    def test_plan_auto_shows_the_three_next_best_plans(self):
        words = self.ppo("run.steps=1", "plan=auto")
        run = self.troupe(*words)
        text = run.stdout + run.stderr
        best, bound = map(float, re.search(
            r"^predicted: best (\S+) s, lower bound (\S+) s, gap \S+ %", text,
            re.M).groups())
        self.assertLessEqual(bound, best)
        others = re.findall(
            r"^next best: (\S+) s, (\S+) % more \(([\w ]+)\)$", text, re.M)
        self.assertEqual(len(others), 3, text)
        times = [best, *(float(seconds) for seconds, _, _ in others)]
        self.assertEqual(times, sorted(times))
        for seconds, lost, _ in others:
            self.assertAlmostEqual(float(lost),
                                   100 * (float(seconds) / best - 1), delta=0.2)
        # as the search says it, and what it found is what ran
        found = json.loads(self.troupe(
            "plan", "search", *words[1:], "--hardware", self.cached_hardware,
            "--json").stdout)
        self.assertEqual((self.run_folder("ppo") / "plan.yaml").read_text(),
                         found["plan"])
        self.assertAlmostEqual(found["step_s"], best, delta=1e-3 * best)
        for (seconds, _, origin), other in zip(others, found["next"],
                                               strict=True):
            self.assertEqual(origin, other["origin"])
            self.assertAlmostEqual(float(seconds), other["step_s"],
                                   delta=1e-3 * best)

    def test_plan_auto_warns_of_another_machines_profile(self):
        self.cached_profile(PROFILE.replace("of a test",
                                            "profiled on Some Processor"))
        run = self.troupe(*self.sft("run.steps=1", "plan=auto"))
        self.assertIn("was profiled on Some Processor, this machine is not",
                      run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
