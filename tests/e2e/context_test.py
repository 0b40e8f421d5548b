"""Context parallelism in whole runs: samples that are cut over devices train as one
device does (I1), resume to the bit (I8) and under other layouts."""
import json
import shutil
import unittest

from recorded_rollouts import FOUR_DEVICES, ONE_DEVICE, RecordedRollouts
from support import CONSTANT, TINY, Case, read_rows, without_times, write_rows

TILE = 96
GRPO = """{{calls: {{
  actor_gen: {{devices: 0-3, strategy: d2t2}},
  ref_inf: {{devices: 0-3, strategy: {scoring}}},
  rewards: {{devices: host}}, advantages: {{devices: host}},
  actor_train: {{devices: 0-3, strategy: {training}}}}}}}"""
PPO = """{{calls: {{
  actor_gen: {{devices: 0-3, strategy: d4}},
  rew_inf: {{devices: 0-1, strategy: c2}}, ref_inf: {{devices: 2-3, strategy: c2}},
  critic_inf: {{devices: 0-3, strategy: d2c2}}, advantages: {{devices: host}},
  actor_train: {{devices: 0-3, strategy: {actor}}},
  critic_train: {{devices: 0-3, strategy: {critic}}}}}}}"""
LONG = ["data.train=data/long_prompts.jsonl", "data.max_prompt_tokens=704",
        "rollout.max_new_tokens=64"]
QUESTIONS = (1, 30, 26, 2, 32, 28)  # of a prompt: some sequences stay whole


def grpo(scoring, training):
    return " ".join(GRPO.format(scoring=scoring, training=training).split())


def make_long(folder):
    """Models of more positions, and prompts of several questions."""
    for name in ("base", "scorer"):
        shutil.copytree(folder / name, folder / f"long_{name}")
        file = folder / f"long_{name}/config.json"
        config = json.loads(file.read_text()) | {"max_position_embeddings": 1024}
        file.write_text(json.dumps(config))
    asked = [row["prompt"] for row in read_rows(folder / "prompts.jsonl")]
    rows = []
    for i in range(36):
        count = QUESTIONS[i % len(QUESTIONS)]
        rows.append({"prompt": "\n".join(asked[i:i + count])})
    write_rows(folder / "long_prompts.jsonl", rows)


class Context(RecordedRollouts, Case):
    actor = "data/long_base"
    # short responses, of which some lack a letter: all equal ones teach nothing
    more = [*LONG, "data.max_prompt_tokens=768", "rollout.max_new_tokens=12",
            "algorithm.kl_coef=0.01"]
    plans = (grpo("d2c2", "c2t2"), grpo("c2t2", "d2c2z1"), grpo("c2p2", "d2c2z3"),
             grpo("d2c2", "c2p2"), grpo("d4", "c2t2s"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_long(cls.shared_folder)

    def test_some_sequences_are_cut_and_some_are_whole(self):
        self.train("one", "run.steps=1", *ONE_DEVICE)
        lengths = [len(row["sequence_ids"]) for row in
                   read_rows(self.run_folder("one") / "samples.jsonl")]
        self.assertGreaterEqual(sum(length >= 4 * TILE for length in lengths), 12)
        self.assertGreaterEqual(sum(length < 4 * TILE for length in lengths), 4)

    def test_a_resumed_run_has_the_same_bits_I8(self):
        self.check_resumed("cut", f"plan={grpo('d2c2', 'd2c2z1')}")

    def test_a_run_that_cuts_sequences_resumes_under_another_layout(self):
        settings = ["run.save_every=2", *FOUR_DEVICES]
        cut = [f"plan={grpo('d2c2', 'd2c2z1')}", *settings]
        uncut = [f"plan={grpo('d4', 'd4z1')}", *settings]
        whole = self.train("whole", "run.steps=4", *cut)
        replay = f"run.replay={self.run_folder('whole')}/samples.jsonl"
        for first, then in ((cut, uncut), (uncut, cut)):
            self.train("parts", "run.resume=fresh", "run.steps=2", replay, *first)
            parts = self.train("parts", "run.steps=4", replay, *then)
            self.assert_alike(then[0], whole, parts)

    def test_an_evaluation_generates_where_the_actor_trains_I2(self):
        held_out = ["run.steps=1", "eval.data=data/long_prompts.jsonl",
                    "eval.max_rows=6"]
        found = []
        for name, plan in (("one", ONE_DEVICE),
                           ("cut", [f"plan={grpo('d2c2', 'd2c2z1')}", *FOUR_DEVICES])):
            self.troupe(*self.grpo(f"run.name={name}", *held_out, *plan))
            found.append({key: number for key, number in self.metrics(name)[0].items()
                          if key.startswith("val")})
        self.assertTrue(found[0])
        self.assertEqual(*found)

    def test_ppo_trains_alike_on_cut_sequences_I1(self):
        lines = {}
        models = ["models.actor.path=data/long_base", "models.ref.path=data/long_base",
                  "models.critic.path=data/long_scorer",
                  "models.reward.path=data/long_scorer", "data.batch_size=8",
                  "algorithm.mini_batches=2", *LONG, *CONSTANT]
        self.troupe(*self.ppo("run.name=recorded", *models, *ONE_DEVICE))
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        plans = {"one": ONE_DEVICE}
        for actor, critic in (("d2c2", "c2t2"), ("c2t2", "d2c2z1")):
            plan = " ".join(PPO.format(actor=actor, critic=critic).split())
            plans[plan] = [f"plan={plan}", *FOUR_DEVICES]
        for name, overrides in plans.items():
            self.troupe(*self.ppo("run.name=run", "run.resume=fresh", replay, *models,
                                  *overrides))
            lines[name] = {step: without_times(line)
                           for step, line in self.metrics("run").items()}
        self.assertGreater(abs(lines["one"][1]["critic/vf_loss"]), 0)
        for name in plans:
            self.assert_alike(name, lines["one"], lines[name])

    def test_strategies_that_cannot_cut_are_refused(self):
        for plan, words in ((grpo("c4", "d4"), "at most c2"),
                            (grpo("d4", "c4"), "at most c2"),
                            (grpo("d4", "d4").replace("d2t2", "d2c2"), "actor_gen")):
            done = self.troupe(*self.grpo(f"plan={plan}", *FOUR_DEVICES), code=3)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
