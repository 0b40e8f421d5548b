"""A role that follows a trained one is its moving average to the bit: under any
plan (I1), in parts (I8), each time or every other time."""
import array
import json
import struct
import subprocess
import unittest

from support import BUILD, TINY, Case

FOLLOWS = ["models.ref.ema_decay=0.7", "run.steps=4", "run.save_every=1",
           "run.keep=0"]
CONSTANT = [  # else the learning rate depends on the number of steps
    f"models.{role}.optimizer.{key}" for role in ("actor", "critic")
    for key in ("schedule=constant", "warmup=0")]
OFFLOADED = """
cluster: {nodes: 1, devices_per_node: 4, workers_per_node: 2}
calls:
  actor_gen:    {devices: 0, strategy: d1}
  rew_inf:      {devices: 0-1, strategy: d2}
  ref_inf:      {devices: 1-2, strategy: d2}
  critic_inf:   {devices: 3, strategy: d1}
  advantages:   {devices: host}
  actor_train:  {devices: 0-1, strategy: t2}
  critic_train: {devices: 3, strategy: d1}
roles:
  ref:   {offload: [weights]}
  actor: {offload: [weights, optimizer]}
"""


def read_tensors(folder):
    """{name: fp32 numbers} of a model folder."""
    stored = (folder / "model.safetensors").read_bytes()
    length, = struct.unpack("<Q", stored[:8])
    header, data = json.loads(stored[8:8 + length]), stored[8 + length:]
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", name
        begin, end = entry["data_offsets"]
        tensors[name] = array.array("f", data[begin:end])
    return tensors


def rounded(number):
    return array.array("f", [number])[0]


def blended(own, trained, decay):
    """The EMA update of models/kernels/ema_update.hpp in double precision."""
    keep = rounded(decay)
    take = rounded(1 - keep)
    return {name: array.array("f", (keep * a + take * b for a, b
                                    in zip(own[name], trained[name])))
            for name in own}


class EmaModel(Case):
    def weights(self, name, step, role):
        return read_tensors(self.run_folder(name)
                            / f"checkpoints/step_{step:06}" / role)

    def check_average(self, name, steps=4, decay=0.7, every=1):
        """Checks that the EMA of every checkpoint averages trained weights."""
        expected = read_tensors(self.folder / "data/base")
        for step in range(1, steps + 1):
            if step % every == 0:
                expected = blended(
                    expected, self.weights(name, step, "actor"), decay)
            self.assertTrue(self.weights(name, step, "ref") == expected,
                            f"{name}, step {step}")
        self.assertFalse(expected == self.weights(name, steps, "actor"))

    def check_same(self, a, b, step):
        for role in ("ref", "actor", "critic"):
            self.assertTrue(self.weights(a, step, role)
                            == self.weights(b, step, role), role)

    def test_it_is_the_average_of_trained_weights(self):
        self.troupe(*self.ppo(*FOLLOWS))
        self.check_average("ppo")
        for step, line in self.metrics("ppo").items():
            self.assertGreater(line["timing_s/move"], 0)
            if step > 1:  # all replicas of step 1 have what was loaded
                self.assertGreater(line["perf/moved_gb"], 0)

    def test_it_is_the_same_under_any_plan_I1(self):
        (self.folder / "offloaded.yaml").write_text(OFFLOADED)
        plans = {"one": ["plan=single", "cluster.devices_per_node=1",
                         "cluster.workers_per_node=1"],
                 "offloaded": ["plan=offloaded.yaml", "run.check_moves=true"],
                 **{name: [f"plan={TINY}/plans/{name}.yaml",
                           "run.check_moves=true"]
                    for name in ("tensor", "sharded", "pipeline", "moved")}}
        for name, overrides in plans.items():
            with self.subTest(plan=name):
                self.troupe(*self.ppo(*FOLLOWS, f"run.name={name}",
                                      "run.steps=3", *overrides))
                self.check_average(name, steps=3)

    def test_lags_do_not_change_it_and_resume_I8(self):
        text = (TINY / "plans/lag.yaml").read_text()
        self.assertIn("lag: {actor_gen: 1}", text)
        (self.folder / "lag.yaml").write_text(text.replace(
            "lag: {actor_gen: 1}", "lag: {actor_gen: 1, ref_inf: 1}"))
        lagged = [*FOLLOWS, *CONSTANT, "plan=lag.yaml"]
        self.troupe(*self.ppo(*lagged))
        self.check_average("ppo")
        for steps in (2, 4):
            self.troupe(*self.ppo(*lagged, "run.name=parts",
                                  f"run.steps={steps}"))
        self.check_same("ppo", "parts", 4)

    def test_it_resumes_bit_identically_I8(self):
        every = [*FOLLOWS, *CONSTANT, "models.ref.ema_every=3", "run.steps=7"]
        self.troupe(*self.ppo(*every))
        self.check_average("ppo", steps=7, every=3)
        for steps in (2, 4, 7):
            self.troupe(*self.ppo(*every, "run.name=parts",
                                  f"run.steps={steps}"))
        self.check_same("ppo", "parts", 7)

    def test_it_resumes_from_bf16_folders_I8(self):
        self.troupe("convert", "--model", "data/base", "--out", "half",
                    "--dtype", "bf16")
        half = [*FOLLOWS, *CONSTANT, "models.ref.path=half"]
        self.troupe(*self.ppo(*half))
        for steps in (2, 4):
            self.troupe(*self.ppo(*half, "run.name=parts",
                                  f"run.steps={steps}"))
        for part in ("ref/model.safetensors", "state/ref.optimizer",
                     "actor/model.safetensors"):
            self.assertTrue((self.latest("ppo") / part).read_bytes()
                            == (self.latest("parts") / part).read_bytes(), part)

    def test_two_models_of_different_shape_are_refused(self):
        config = json.loads((self.folder / "data/base/config.json").read_text())
        other = self.folder / "other"
        other.mkdir()
        config["intermediate_size"] *= 2
        (other / "config.json").write_text(json.dumps(config))
        wrong = self.troupe(*self.ppo(*FOLLOWS, "models.ref.path=other"),
                            code=2)
        self.assertIn("models.ref.path: expected a model of the same shape as "
                      "actor", wrong.stderr)

    def test_it_is_shown_in_plans_and_settings(self):
        self.troupe(*self.ppo(*FOLLOWS, "run.steps=1"))
        config = (self.run_folder("ppo") / "config.yaml").read_text()
        self.assertIn("ema_decay: 0.7", config)
        shown = self.troupe("plan", "check", *self.ppo(*FOLLOWS)[1:]).stdout
        self.assertIn("follow actor each step, ema_decay 0.7", shown)

    def test_dpo_compares_with_an_ema_reference(self):
        self.troupe("train", TINY / "dpo.yaml", *FOLLOWS, "run.name=dpo",
                    "run.steps=3", "models.actor.path=data/base",
                    "data.train=data/pairs_train.jsonl", "data.batch_size=8",
                    "eval.data=data/pairs_test.jsonl", "eval.max_rows=16",
                    "cluster.devices_per_node=2", "plan=data_parallel")
        self.check_average("dpo", steps=3)

    def graph(self, ref):
        text = (TINY / "frozen_critic.yaml").read_text()
        (self.folder / "graph.yaml").write_text(
            text.replace("ref: {like: actor}", f"ref: {ref}"))
        return ["workflow=graph.yaml", "models.critic.optimizer=null",
                "run.save_every=1", "run.keep=0", "plan=data_parallel"]

    def test_a_role_of_a_workflow_file_may_be_an_ema(self):
        follows = self.graph("{like: actor, follows: actor}")
        self.troupe(*self.ppo(*follows, "models.ref.ema_decay=0.7"))
        self.check_average("ppo", steps=3)
        wrong = self.troupe(*self.ppo(*follows, "run.name=wrong"), code=2)
        self.assertIn("models.ref.ema_decay=0.99", wrong.stderr)
        wrong = self.troupe(*self.ppo(
            *self.graph("{like: actor, follows: reward}"),
            "models.ref.ema_decay=0.7", "run.name=wrong"), code=2)
        self.assertIn("ref follows reward, which is not trained", wrong.stderr)

    def test_the_example_updates_every_other_step(self):
        example = TINY.parent / "ema_reference/ema_reference.yaml"
        program = BUILD / "examples/ema_reference"
        done = subprocess.run(
            [program, "train", example, "run.steps=4", "run.save_every=1",
             "run.keep=0", "models.actor.path=data/base",
             "data.train=data/prompts.jsonl", "rollout.max_new_tokens=12"],
            cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_average("ema_reference", decay=0.9, every=2)
        line = self.metrics("ema_reference")[4]
        self.assertGreater(line["ema_reference/variety"], 0)
        self.assertGreater(line["actor/kl"], 0)


if __name__ == "__main__":
    unittest.main()
