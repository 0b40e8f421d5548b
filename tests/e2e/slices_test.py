"""Answers generated in slices over several steps: the weights of each token are
those that the plan says, and a run repeats and resumes to the bit."""
import signal
import unittest

from support import Case, CONSTANT, read_rows, tree_bytes, until, without_times

APART = """
cluster: {{nodes: 1, devices_per_node: 4, workers_per_node: 2}}
calls:
  actor_gen:   {{devices: 2-3, strategy: d2, slices: {slices}}}
  ref_inf:     {{devices: 0-1, strategy: d2}}
  rewards:     {{devices: host}}
  advantages:  {{devices: host}}
  actor_train: {{devices: 0-1, strategy: d2}}
lag: {{actor_gen: {lag}}}
"""
AT_HOME = """
cluster: {{nodes: 1, devices_per_node: 2, workers_per_node: 2}}
calls:
  actor_gen:   {{devices: 0-1, strategy: d2, slices: {slices}}}
  ref_inf:     {{devices: 0-1, strategy: d2}}
  rewards:     {{devices: host}}
  advantages:  {{devices: host}}
  actor_train: {{devices: 0-1, strategy: d2}}
lag: {{actor_gen: {lag}}}
"""
TOKENS = 12


class Slices(Case):
    def plan(self, text, slices, lag=0):
        file = self.folder / "plan.yaml"
        file.write_text(text.format(slices=slices, lag=lag))
        return f"plan={file}"

    def grpo(self, name, *overrides):
        return ["train", "/dev/null", "workflow=grpo", f"run.name={name}",
                "run.steps=5", "run.save_every=0",
                "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3", CONSTANT[0],
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "data.max_prompt_tokens=32", "rollout.n=4",
                f"rollout.max_new_tokens={TOKENS}", "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1}",
                "algorithm.kl_coef=0.01", *overrides]

    def train(self, name, *overrides):
        self.troupe(*self.grpo(name, *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def samples(self, name):
        """{(step, sample): line}, without the names of versions."""
        rows = read_rows(self.run_folder(name) / "samples.jsonl")
        return {(row["step"], row["sample"]):
                {key: value for key, value in row.items() if key != "versions"}
                for row in rows}

    def weights(self, name):
        files = tree_bytes(self.latest(name), "*/model.safetensors")
        self.assertEqual(len(files), 1)
        return files

    def test_with_unchanged_weights_slices_change_no_bit_I2(self):
        frozen = "models.actor.optimizer.lr=0"
        for text in (APART, AT_HOME):
            self.train("whole", frozen, "run.resume=fresh", self.plan(text, 1))
            whole = self.samples("whole")
            self.assertTrue(any(row["finish_reason"] == "length"
                                for row in whole.values()))
            for slices in (2, 4, TOKENS - 5):
                with self.subTest(plan=text, slices=slices):
                    self.train("cut", frozen, "run.resume=fresh",
                               self.plan(text, slices))
                    self.assertEqual(self.samples("cut"), whole)

    def without_versions(self, *runs):
        """Removes the metrics that tell of versions from these runs' lines."""
        for lines in runs:
            for line in lines.values():
                line.pop("rollout/partial_tokens", None)
                line.pop("training/lag_mean", None)

    def test_masks_and_evaluations_are_those_of_whole_answers_I2(self):
        extra = ["models.actor.optimizer.lr=0", "rollout.top_k=8",
                 "algorithm.sampling_mask=true", "run.steps=3",
                 "eval.data=data/prompts.jsonl", "eval.every=1",
                 "eval.max_rows=8"]
        whole = self.train("whole", *extra, self.plan(APART, 1))
        cut = self.train("cut", *extra, self.plan(APART, 3))
        self.without_versions(cut, whole)
        self.assertEqual(cut, whole)
        self.assertEqual(self.samples("cut"), self.samples("whole"))
        self.assertIn("kept_ids", self.samples("cut")[1, 0]["keys"])

    def test_recorded_answers_train_alike_in_slices_I1(self):
        # slices begin steps that the run does not reach
        self.train("recorded", "run.steps=4", self.plan(APART, 2))
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        lines = [self.train(f"in_{slices}", "run.steps=3", replay,
                            self.plan(APART, slices)) for slices in (1, 2)]
        self.without_versions(*lines)
        self.assertEqual(*lines)

    def test_a_run_in_slices_repeats_to_the_bit_I8(self):
        for text, slices, lag in ((APART, 2, 0), (APART, 4, 1), (AT_HOME, 2, 0)):
            with self.subTest(plan=text, slices=slices, lag=lag):
                plan = self.plan(text, slices, lag)
                runs = [self.train(name, "run.resume=fresh", plan)
                        for name in ("a", "b")]
                self.assertEqual(*runs)
                self.assertEqual(self.weights("a"), self.weights("b"))
                self.assertEqual(self.samples("a"), self.samples("b"))

    def test_a_run_in_slices_resumes_bit_identically_I8(self):
        for text, slices, lag in ((APART, 2, 0), (APART, 3, 1), (AT_HOME, 3, 0)):
            with self.subTest(plan=text, slices=slices, lag=lag):
                plan = self.plan(text, slices, lag)
                whole = self.train("whole", "run.resume=fresh", plan)
                self.train("parts", "run.resume=fresh", "run.steps=2", plan)
                self.assertEqual(whole, self.train("parts", plan))
                self.assertEqual(self.weights("whole"), self.weights("parts"))
                self.assertEqual(self.samples("whole"), self.samples("parts"))

    def test_a_killed_run_in_slices_resumes_bit_identically_I8(self):
        steps = ["run.steps=12", "run.save_every=3", self.plan(APART, 4)]
        whole = self.train("whole", *steps)
        process = self.start(*self.grpo("killed", *steps))
        self.wait_for_step("killed", 5)
        self.wait_for_checkpoint("killed")
        process.send(signal.SIGKILL)
        process.finish()
        until(lambda: not self.processes(), "workers notice and exit")
        self.assertEqual(whole, self.train("killed", *steps))
        self.assertEqual(self.weights("whole"), self.weights("killed"))

    def test_every_token_is_by_the_weights_that_the_plan_says_I4(self):
        slices, lag = 3, 1
        lines = self.train("run", self.plan(APART, slices, lag))
        older = dict.fromkeys(lines, 0)
        lags = {step: [] for step in lines}
        for row in read_rows(self.run_folder("run") / "samples.jsonl"):
            prompt = row["loss_mask"].index(1)
            step = row["step"] - 1
            spans = row["versions"] + [[len(row["sequence_ids"]), None]]
            self.assertEqual(spans[0][0], prompt)
            newest = max(0, step - lag)
            for (first, version), (end, _) in zip(spans, spans[1:]):
                for token in range(first - prompt, end - prompt):
                    number = token * slices // TOKENS  # of its slice
                    want = max(0, step - lag - (slices - 1 - number))
                    self.assertEqual(version, want, (row["step"], token))
                    older[row["step"]] += version < newest
                    lags[row["step"]].append(step - version)
        self.assertEqual(older, {step: line["rollout/partial_tokens"]
                                 for step, line in lines.items()})
        for step, line in lines.items():
            self.assertAlmostEqual(line["training/lag_mean"],
                                   sum(lags[step]) / len(lags[step]), places=9)
        self.assertEqual(older[1], 0)
        self.assertGreater(older[5], 0)

    def test_two_layouts_in_slices_train_alike_I1(self):
        found = {}
        for name, text in (("apart", APART), ("home", AT_HOME)):
            found[name] = self.train(name, "run.steps=3", self.plan(text, 2))
        self.assert_alike("slices", found["apart"], found["home"])
        tokens = [{key: row["sequence_ids"] for key, row
                   in self.samples(name).items()} for name in found]
        self.assertEqual(*tokens)

    def test_corrections_weigh_tokens_by_the_weights_that_drew_them(self):
        recompute = ["algorithm.old_logprobs=recompute",
                     "algorithm.correction={kind: tis, cap: 10}"]
        scored = APART.replace(
            "  rewards:",
            "  actor_inf:   {{devices: 0-1, strategy: d2}}\n  rewards:")
        lines = {slices: self.train(f"in_{slices}", *recompute,
                                    self.plan(scored, slices))
                 for slices in (1, 4)}
        for step in (2, 3, 4, 5):
            whole = lines[1][step]["actor/is_weight_mean"]
            cut = lines[4][step]["actor/is_weight_mean"]
            self.assertAlmostEqual(whole, 1, places=4)
            self.assertGreater(abs(cut - 1), 1e-3, step)

    def test_slices_that_cannot_be_are_refused(self):
        for plan, words in (
                (APART.replace("strategy: d2}}\n  rewards",
                               "strategy: d2, slices: 2}}\n  rewards"),
                 "calls.ref_inf.slices: expected 1, for ref_inf generates"),
                (APART.replace("d2, slices", "d2, chunks: 2, slices"),
                 "calls.actor_gen.slices: expected 1, for a call is in chunks")):
            done = self.troupe(*self.grpo("bad", self.plan(plan, 2)), code=3)
            self.assertIn(words, done.stderr)
        done = self.troupe(*self.grpo("bad", "algorithm.max_lag=1",
                                      self.plan(APART, 3)), code=2)
        self.assertIn("slices of which the first lags at most 1", done.stderr)
        checked = self.troupe("plan", "check", *self.grpo(
            "bad", self.plan(APART, 3, 1))[1:]).stdout
        self.assertIn("actor_gen in 3 slices of at most 4 tokens, which step n "
                      "generates with versions n-3, n-2, n-1 (0 at least)",
                      checked)


if __name__ == "__main__":
    unittest.main()
