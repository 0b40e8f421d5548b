"""Workflow files whose functions are Python: the numbers of the C++ program, the
same ones from any number of processes, and mistakes with their place."""
import os
import subprocess
import unittest

import package  # noqa: F401
from support import (
    BUILD, SOURCE, Case, read_rows, with_numpy, without_times)

EXAMPLE = SOURCE / "examples/best_of_n"
NUMPY = with_numpy()
WORKFLOW = """
settings: [rollout, updates]
roles: {actor: {trained: true}}
calls:
  actor_gen: {generate: actor}
  weigh:
    function: functions.py:weigh
    scope: SCOPE
    processes: 2
    reads: [READS]
    writes: {weight: number}
  mask:
    function: functions.py:mask
    scope: sample
    reads: [loss_mask, weight]
    writes: {own_mask: flags}
  actor_train:
    train: actor
    fn: sft_loss
    reads: {sequence_ids: sequence_ids, own_mask: loss_mask}
metrics: {weight: weight}
"""
MASK = """
def mask(loss_mask, weight):
    return loss_mask * (weight > 0)
"""


@unittest.skipUnless(NUMPY, "no numpy on this machine: make trackers")
class PythonFunctions(Case):
    def setUp(self):
        super().setUp()
        self.environment["PATH"] = f"{NUMPY}:{self.environment['PATH']}"
        (self.folder / "examples").symlink_to(SOURCE / "examples")

    def samples(self, name):
        return read_rows(self.run_folder(name) / "samples.jsonl")

    def best_of_n(self, name, *overrides):
        """Arguments of the example, which keeps responses with a kind word; the
        untrained model writes some of their letters only."""
        return ["train", name, "run.steps=3", "models.actor.path=data/base",
                "data.train=data/prompts.jsonl", "data.batch_size=8",
                "rollout.max_new_tokens=12", *overrides]

    def workflow(self, functions, scope="batch", reads="response",
                 changed=()):
        (self.folder / "functions.py").write_text(functions + MASK)
        text = WORKFLOW.replace("SCOPE", scope).replace("READS", reads)
        for old, new in changed:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.folder / "graph.yaml").write_text(text)

    def run_workflow(self, *overrides, code=0):
        return self.troupe(*self.best_of_n(
            EXAMPLE / "python/best_of_n.yaml", "workflow=graph.yaml",
            "run.name=own", "run.steps=2", *overrides), code=code)

    def test_best_of_n_has_the_numbers_of_the_one_in_cpp(self):
        text = (EXAMPLE / "python/functions.py").read_text()
        kind = text.replace('"kind", ', '"e", "kind", ')
        self.assertNotEqual(kind, text)
        (self.folder / "functions.py").write_text(kind)
        (self.folder / "tool.sh").write_text(
            (EXAMPLE / "is_kind.sh").read_text().replace("*kind*", "*e* | *kind*"))
        (self.folder / "tool.sh").chmod(0o755)
        graph = (EXAMPLE / "python/workflow.yaml").read_text()
        (self.folder / "graph.yaml").write_text(graph.replace(
            "examples/best_of_n/python/functions.py", "functions.py"))
        self.troupe(*self.best_of_n(EXAMPLE / "python/best_of_n.yaml",
                                    "run.name=python", "workflow=graph.yaml"))
        done = subprocess.run(
            [BUILD / "examples/best_of_n", *map(str, self.best_of_n(
                EXAMPLE / "best_of_n.yaml", "run.name=cpp",
                f"best_of_n.tool={self.folder}/tool.sh"))],
            cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours, theirs = self.samples("python"), self.samples("cpp")
        self.assertEqual([row["response"] for row in ours],
                         [row["response"] for row in theirs])

        mine, other = self.metrics("python"), self.metrics("cpp")
        self.assertEqual(len(mine), 3)
        for step, line in mine.items():
            self.assertEqual(line["tool/score"], other[step]["tool/score"])
            self.assertTrue(0 < line["tool/score"] < 1, "some of each")
            grown = [line["train/grad_norm"], other[step]["actor/grad_norm"]]
            self.assertAlmostEqual(*grown, delta=1e-4 * max(grown))

    def test_processes_and_workers_change_no_number_I1(self):
        self.workflow("""
def weigh(response, logprobs, loss_mask):
    best = max(range(len(response)), key=lambda i: len(response[i]))
    own = [logprobs[i][loss_mask[i] > 0].sum() for i in range(len(response))]
    return [own[i] - own[best] + 1 for i in range(len(response))]
""", "group", "response, logprobs, loss_mask")
        text = (self.folder / "graph.yaml").read_text()
        self.run_workflow("cluster.devices_per_node=1",
                          "cluster.workers_per_node=1", "run.name=one",
                          "plan=single")
        self.run_workflow("run.name=two")
        (self.folder / "graph.yaml").write_text(
            text.replace("processes: 2", "processes: 5"))
        self.run_workflow("run.name=five")
        self.assertEqual(self.samples("five"), self.samples("two"))
        # one device adds gradients up in another order than two
        for one, two in zip(self.samples("one"), self.samples("two")):
            self.assertEqual(one["response"], two["response"])
            for a, b in zip(one["logprobs"], two["logprobs"]):
                self.assertAlmostEqual(a, b, delta=1e-4)
        lines = [{step: without_times(line)
                  for step, line in self.metrics(name).items()}
                 for name in ("two", "five")]
        self.assertEqual(*lines)
        self.assertNotEqual(lines[0][2]["weight"], 1)

    def test_a_batch_function_hands_numbers_from_step_to_step(self):
        self.workflow("""
import numpy as np
def weigh(response, level):
    assert isinstance(level, float)
    return {"weight": np.full(len(response), level), "level": level / 3}
""", changed=[("    writes: {weight: number}\n",
               "    writes: {weight: number}\n"
               "    carries: {level: {initial: 2, metric: own/level}}\n")])
        self.run_workflow("run.steps=3")
        whole = self.metrics("own")
        self.assertEqual([whole[step]["weight"] for step in (1, 2)],
                         [2, 0.6666666865348816])  # float32 of 2/3
        self.assertEqual([whole[step]["own/level"] for step in (1, 2)],
                         [2 / 3, 2 / 3 / 3])
        for steps in (1, 3):  # the second goes on from the first
            self.run_workflow(f"run.steps={steps}", "run.name=parts")
        self.assertEqual(self.metrics("parts")[3]["own/level"],
                         whole[3]["own/level"])

    def test_texts_of_the_data_file_reach_a_function(self):
        rows = read_rows(self.folder / "data/prompts.jsonl")
        self.workflow("""
def weigh(prompt, response):
    assert isinstance(prompt, str) and isinstance(response, str)
    return len(prompt)
""", "sample", "prompt, response")
        self.run_workflow("run.steps=1", "rollout.n=1")
        length = {row["prompt"]: len(row["prompt"]) for row in rows}
        told = [length[row["prompt"]] for row in self.samples("own")]
        self.assertAlmostEqual(self.metrics("own")[1]["weight"],
                               sum(told) / len(told), 4)

    def test_an_exception_names_its_line_and_its_sample(self):
        self.workflow("""
def weigh(response):
    value = {}
    return value["no such key"]
""", "sample")
        error = self.run_workflow(code=2).stderr
        self.assertIn("functions.py:4: KeyError: 'no such key'", error)
        self.assertRegex(error, r"logs/weigh_of_worker_\d_\d\.log of the run")
        self.assertRegex(error, r"function weigh.*\(sample \d+ of step 1\)")

    def test_what_does_not_fit_its_keys_is_said(self):
        for scope, body, sentence in (
                ("sample", "'x'", "expected weight to be a number, got 'x'"),
                ("group", "[1, 2]", "expected weight to be 4 numbers, one for "
                                    "each sample, got 2"),
                ("batch", "{'wait': 1}", "expected a dict of weight, got one of "
                                         "wait")):
            with self.subTest(body):
                self.workflow(f"\ndef weigh(response):\n    return {body}\n", scope)
                error = self.run_workflow("run.resume=fresh", code=2).stderr
                self.assertIn(f"functions.py:2: ValueError: {sentence}", error)

    def test_a_function_with_other_arguments_is_refused_at_its_start(self):
        self.workflow("\ndef weigh(answer):\n    return 1\n", "sample")
        error = self.run_workflow(code=2).stderr
        self.assertIn("functions.py:2: weigh gets response by name: ", error)

    def test_a_process_that_is_killed_is_asked_once_more(self):
        self.workflow("""
import os, signal
def weigh(response):
    if not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1
""", "sample")
        self.run_workflow("run.steps=1")
        self.assertTrue((self.folder / "killed").exists())
        self.assertEqual(self.metrics("own")[1]["weight"], 1)

    def test_a_process_that_ends_itself_ends_the_run_with_its_last_line(self):
        self.workflow("""
import os, sys
def weigh(response):
    sys.exit("enough of this")
""", "sample")
        error = self.run_workflow(code=2).stderr
        self.assertIn("enough of this", error)

    def test_a_silent_function_ends_the_run(self):
        self.workflow("""
import threading
def weigh(response):
    threading.Event().wait()
""", "sample")
        error = self.run_workflow("cluster.own_actor_timeout_s=2", code=2).stderr
        self.assertIn("no answer within 2 s (cluster.own_actor_timeout_s)",
                      error)

    def test_a_misspelt_function_is_refused_before_the_run(self):
        self.workflow("\ndef wiegh(response):\n    return 1\n", "sample")
        error = self.run_workflow(code=2).stderr
        self.assertIn("graph.yaml:6: calls.weigh.function: expected a function of "
                      "functions.py (wiegh or mask), got 'weigh'; try wiegh",
                      error)
        self.assertFalse(self.run_folder("own").exists())

    def test_plan_commands_know_the_calls(self):
        self.workflow("\ndef weigh(response):\n    return 1\n", "sample")
        shown = self.troupe("plan", "show", *self.best_of_n(
            EXAMPLE / "python/best_of_n.yaml", "workflow=graph.yaml")[1:]).stdout
        self.assertIn("weigh: {devices: host}", shown)


if __name__ == "__main__":
    unittest.main()
