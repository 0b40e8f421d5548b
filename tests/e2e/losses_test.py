"""The losses of algorithm.loss and the weights of algorithm.correction in whole
runs: the same training under every plan (I1), the same run twice (I8), what a
choice sets is shown."""
import json
import unittest

from support import Case, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = ("interleaving", "separation", "deepspeed_chat")
RECOMPUTE = "algorithm.old_logprobs=recompute"
# each loss with another correction, and the plans that it is run under; the
# clip ranges are narrow enough for a tiny run to be clipped
LOSSES = {
    "gspo": (["algorithm.clip_ratio=[0.002, 0.003]", RECOMPUTE,
              "algorithm.correction.kind=sequence_mask"], PLANS),
    "cispo": (["algorithm.clip_ratio=[0.02, 0.03]", RECOMPUTE,
               "algorithm.correction={kind: tis, cap: 0.9}"], PLANS),
    "sapo": (["algorithm.correction={kind: rejection, floor: 0.7, cap: 0.9}"],
             PLANS[:1]),
    "gmpo": ([RECOMPUTE, "algorithm.correction.kind=sequence_tis"], PLANS[1:2]),
    "clip_cov": (["algorithm.cov_share=0.1", "algorithm.cov_range=[0, 5]"],
                 PLANS[2:]),
    "kl_cov": (["algorithm.cov_share=0.1", RECOMPUTE,
                "algorithm.correction.kind=icepop"], PLANS[:1]),
}


class Losses(Case):
    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=3", "run.save_every=0",
                "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3",
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "data.max_prompt_tokens=32", "rollout.n=4",
                "rollout.max_new_tokens=12", "algorithm.mini_batches=4",
                # the sampler's distribution is not the trainer's
                "rollout.top_p=0.8", "rollout.repetition_penalty=2",
                "rollout.logprobs=sampled",
                "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}",
                *overrides]

    def train(self, name, *overrides):
        self.troupe(*self.grpo(f"run.name={name}", "run.resume=fresh",
                               *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def test_every_loss_trains_alike_under_every_plan_I1(self):
        # the key of the sampler's log-probabilities depends on old_logprobs
        self.train("rollout", *ONE_DEVICE)
        self.train("recompute", *ONE_DEVICE, RECOMPUTE)
        for loss, (overrides, plans) in LOSSES.items():
            name = "recompute" if RECOMPUTE in overrides else "rollout"
            overrides = [f"run.replay={self.run_folder(name)}/samples.jsonl",
                         f"algorithm.loss={loss}", *overrides]
            one = self.train("one", *overrides, *ONE_DEVICE)
            self.assertGreater(abs(one[3]["actor/pg_loss"]), 0)
            if "correction" in " ".join(overrides):
                self.assertGreater(one[3]["actor/rollout_logprob_gap"], 0)
                self.assertIn("actor/is_weight_mean", one[3])
            for plan in plans:
                other = self.train("other", *overrides, f"plan={plan}",
                                   *FOUR_DEVICES)
                self.assert_alike(f"{loss} {plan}", one, other)

    def test_a_correction_cuts_weights(self):
        # a token of the upper 80 % has 0.8 times the sampler's probability
        for kind, limits, share, mean in (
                ("tis", "cap: 0.2", 1, 0.2),
                ("icepop", "floor: 4.9", 1, 0),
                ("sequence_mask", "floor: 2.9", 1, 0),
                ("rejection", "floor: 0.5, cap: 1", 0, 1)):
            line = self.train(kind, "run.steps=1", *ONE_DEVICE, RECOMPUTE,
                              f"algorithm.correction={{kind: {kind}, {limits}}}",
                              )[1]
            self.assertGreater(line["actor/rollout_logprob_gap"], 0.2, kind)
            self.assertAlmostEqual(line["actor/is_clip_frac"], share, msg=kind)
            self.assertAlmostEqual(line["actor/is_weight_mean"], mean, 6, kind)

    def test_drawn_tokens_are_the_same_in_a_repeated_run_I8(self):
        plan = ["plan=interleaving", *FOUR_DEVICES, "algorithm.loss=clip_cov",
                "algorithm.cov_share=0.1", "algorithm.cov_range=[0, 5]"]
        first, second = self.train("a", *plan), self.train("b", *plan)
        self.assertGreater(first[1]["actor/pg_clipfrac"], 0)
        self.assertEqual(first, second)
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in "ab"])

    def test_it_works_with_a_critic(self):
        self.troupe(*self.ppo("plan=data_parallel", "algorithm.loss=cispo",
                              RECOMPUTE,
                              "algorithm.correction.kind=tis",
                              "algorithm.lam_alpha=0.5",
                              "algorithm.bootstrap=false"))
        line = self.metrics("ppo")[3]
        for name in ("actor/is_weight_mean", "actor/rollout_logprob_gap",
                     "critic/vf_loss"):
            self.assertIn(name, line)

    def test_what_a_choice_sets_is_shown(self):
        done = self.troupe(*self.grpo("--dry-run", "algorithm.like=verl",
                                      "algorithm.loss=gspo", *ONE_DEVICE))
        for words in (["algorithm.clip_ratio", "[0.0003, 0.0004]",
                       "by algorithm.loss: gspo"],
                      ["algorithm.kl_in", "none", "by algorithm.like: verl"]):
            self.assertTrue(
                any(all(word in line for word in words)
                    for line in done.stdout.splitlines()), words)
        config = self.train("liked", "run.steps=1", "algorithm.like=openrlhf",
                            *ONE_DEVICE)
        self.assertIn("actor/kl_loss", config[1])
        text = (self.run_folder("liked") / "config.yaml").read_text()
        self.assertIn("deviation_eps: 1.0e-09", text)

    def test_what_makes_no_sense_is_refused(self):
        for override, words in (
                ("algorithm.correction.kind=tis",
                 ["algorithm.correction.kind", "old_logprobs=recompute"]),
                ("algorithm.loss=gpso", ["algorithm.loss", "try gspo"]),
                ("algorithm.correction.cap=3", ["algorithm.correction.kind"])):
            done = self.troupe(*self.grpo(override), code=2)
            for word in words:
                self.assertIn(word, done.stderr, override)

    def test_pairs_may_be_compared_by_another_loss(self):
        found = {}
        for name, override in (("dpo", []),
                               ("ipo", ["algorithm.pair_loss=ipo"]),
                               ("cdpo", ["algorithm.label_smoothing=0.1"]),
                               ("simpo", ["algorithm.pair_loss=simpo"]),
                               ("orpo", ["algorithm.pair_loss=orpo"])):
            self.troupe(
                "train", "/dev/null", "workflow=dpo", f"run.name={name}",
                "run.steps=2", "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3",
                "data.train=data/pairs_train.jsonl", "data.batch_size=8",
                "eval.data=data/pairs_train.jsonl", "eval.max_rows=8",
                *ONE_DEVICE, *override)
            lines = self.metrics(name)
            found[name] = json.dumps(lines[2]["train/loss"])
            plan = (self.run_folder(name) / "plan.yaml").read_text()
            self.assertEqual("ref_inf" in plan,
                             name not in ("simpo", "orpo"), name)
        self.assertEqual(len(set(found.values())), 5, found)


if __name__ == "__main__":
    unittest.main()
