"""Losses in Python: the numbers of the loss in C++ that computes the same, under any
plan, and mistakes with their line."""
import pathlib
import shutil
import subprocess
import unittest

import package  # noqa: F401
from support import SOURCE, Case

EXAMPLE = SOURCE / "examples/python_loss"
IN_PYTHON = (
    "    fn: examples/python_loss/losses.py:ppo_clip\n"
    "    reads: {sequence_ids: sequence_ids, loss_mask: loss_mask, logprobs: old, "
    "advantages: advantages}\n")
IN_CPP = ("    fn: ppo_actor_loss\n"
          "    reads: [sequence_ids, loss_mask, logprobs, advantages]\n")
def with_torch():
    """The folder of a python3 that has torch, or None."""
    folders = [SOURCE / ".deps/golden/bin", SOURCE / ".deps/engines/bin"]
    for folder in folders + [pathlib.Path(shutil.which("python3")).parent]:
        if (folder / "python3").exists() and subprocess.run(
                [folder / "python3", "-c", "import torch"],
                capture_output=True).returncode == 0:
            return folder
    return None


TORCH = with_torch()


@unittest.skipUnless(TORCH, "no torch on this machine: make golden")
class PythonLosses(Case):
    def setUp(self):
        super().setUp()
        self.environment["PATH"] = f"{TORCH}:{self.environment['PATH']}"
        (self.folder / "examples").symlink_to(SOURCE / "examples")

    def grpo(self, name, *overrides, graph=None, code=0):
        """A run of the example's workflow, or of the text `graph` of one."""
        text = (EXAMPLE / "workflow.yaml").read_text() if graph is None else graph
        (self.folder / f"{name}.yaml").write_text(text)
        return self.troupe(
            "train", EXAMPLE / "grpo.yaml", f"run.name={name}", "run.steps=2",
            f"workflow={name}.yaml", "models.actor.path=data/base",
            "data.train=data/prompts.jsonl", "data.batch_size=4",
            "rollout.max_new_tokens=12", "reward.rule=null",
            "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}", *overrides,
            code=code)

    def with_loss(self, text):
        (self.folder / "losses.py").write_text(text)
        return (EXAMPLE / "workflow.yaml").read_text().replace(
            "examples/python_loss/losses.py:ppo_clip", "losses.py:loss")

    def trained_by(self, strategy):
        (self.folder / "plan.yaml").write_text(
            "cluster: {nodes: 1, devices_per_node: 2, workers_per_node: 2}\n"
            "calls:\n"
            "  actor_gen: {devices: 0-1, strategy: d2}\n"
            "  rewards: {devices: host}\n  advantages: {devices: host}\n"
            f"  actor_train: {{devices: 0-1, strategy: {strategy}}}\n")
        return "plan=plan.yaml"

    def close(self, one, two, names):
        for step in (1, 2):
            for name in names:
                a, b = one[step][name], two[step][name]
                self.assertAlmostEqual(a, b, delta=1e-3 * abs(a) + 1e-5, msg=name)

    def test_ppo_clip_has_the_numbers_of_the_one_in_cpp(self):
        text = (EXAMPLE / "workflow.yaml").read_text()
        self.assertIn(IN_PYTHON, text)
        self.grpo("python")
        self.grpo("cpp", graph=text.replace(IN_PYTHON, IN_CPP))
        ours, theirs = self.metrics("python"), self.metrics("cpp")
        self.close(ours, theirs, ["actor/grad_norm", "critic/score/mean"])
        for step in (1, 2):
            for mine, other in (("loss", "pg_loss"), ("clipfrac", "pg_clipfrac")):
                self.assertAlmostEqual(ours[step][f"actor/{mine}"],
                                       theirs[step][f"actor/{other}"], delta=1e-5)
        self.assertGreater(ours[2]["actor/grad_norm"], 0)

    def test_plans_change_no_number_I1(self):
        self.grpo("one", "plan=single", "cluster.devices_per_node=1",
                  "cluster.workers_per_node=1")
        for name in ("d2", "t2", "p2"):
            self.grpo(name, self.trained_by(name))
            self.close(self.metrics(name), self.metrics("one"),
                       ["actor/loss", "actor/grad_norm", "actor/clipfrac"])
        self.assertGreater(self.metrics("one")[2]["actor/grad_norm"], 0)

    def test_entropy_and_sums_over_sequences(self):
        graph = self.with_loss(
            "def loss(batch):\n"
            "    assert len(batch.offsets) == len(batch.sums(batch.mask)) + 1\n"
            "    per_sequence = batch.sums(batch.logprobs * batch.mask)\n"
            "    kept = (batch.entropy * batch.mask).sum() / batch.tokens\n"
            "    return (kept - per_sequence.sum() / batch.sequences,\n"
            "            {'entropy': (batch.entropy * batch.mask).sum()})\n")
        self.grpo("own", graph=graph.replace(
            "losses.py:loss\n", "losses.py:loss\n    outputs: [logprobs, entropy]\n"))
        self.assertGreater(self.metrics("own")[1]["actor/entropy"], 0)

    def test_mistakes_name_their_line(self):
        for body, sentence in (
                ("    return batch['no such key']",
                 "losses.py:2: KeyError: "),
                ("    return batch.mask.sum()",
                 "losses.py:1: ValueError: expected a loss that weights can change"),
                ("    return batch.logprobs",
                 "losses.py:1: ValueError: expected a tensor of one number"),
                ("    return batch.entropy.sum()",
                 "losses.py:2: AttributeError: the call has no entropy in its "
                 "outputs"),
                ("    return (batch.logprobs / 0).sum()",
                 "losses.py:1: ValueError: expected the loss to be finite")):
            with self.subTest(body):
                graph = self.with_loss(f"def loss(batch):\n{body}\n")
                error = self.grpo("own", "run.resume=fresh", graph=graph,
                                  code=2).stderr
                self.assertIn(sentence, error)
                self.assertIn("loss of actor_train on device", error)

    def test_a_silent_loss_ends_the_run(self):
        graph = self.with_loss("import threading\n"
                               "def loss(batch):\n"
                               "    threading.Event().wait()\n")
        error = self.grpo("own", "cluster.own_actor_timeout_s=2", graph=graph,
                          code=2).stderr
        self.assertIn("no answer within 2 s (cluster.own_actor_timeout_s)", error)

    def test_a_misspelt_loss_is_refused_before_the_run(self):
        graph = self.with_loss("def lss(batch):\n    return 0\n")
        error = self.grpo("own", graph=graph, code=2).stderr
        self.assertIn("calls.actor_train.fn: expected a function of losses.py (lss), "
                      "got 'loss'; try lss", error)
        self.assertFalse(self.run_folder("own").exists())


if __name__ == "__main__":
    unittest.main()
