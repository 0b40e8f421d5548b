"""Sampling masks in whole runs: training computes the distribution that top-k and
top-p left, alike under every plan (I1) and resumed to the bit (I8)."""
import unittest

from support import CONSTANT, SOURCE, Case, read_rows, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = ("deepspeed_chat", "openrlhf")
MASKS = ["algorithm.sampling_mask=true"]
DIFFERENCE = "training/rollout_probs_diff_mean"


class SamplingMask(Case):
    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=3", "run.save_every=0",
                "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3", CONSTANT[0],
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "data.max_prompt_tokens=32", "rollout.n=4",
                "rollout.max_new_tokens=12", "rollout.top_k=12",
                "rollout.top_p=0.8", "algorithm.mini_batches=2",
                "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}",
                *overrides]

    def train(self, name, *overrides):
        self.troupe(*self.grpo(f"run.name={name}", *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def test_training_computes_what_was_sampled(self):
        # one optimizer step: the policy is still the one that sampled
        for more in ([], ["algorithm.old_logprobs=recompute"]):
            one = ["run.steps=2", "algorithm.mini_batches=1", *more, *ONE_DEVICE]
            masked = self.train("masked", "run.resume=fresh", *MASKS, *one)
            whole = self.train("whole", "run.resume=fresh",
                               "rollout.logprobs=sampled", *one)
            for step in (1, 2):
                self.assertLess(masked[step][DIFFERENCE], 1e-5)
                self.assertLess(masked[step]["actor/rollout_logprob_gap"], 1e-5)
                self.assertLess(abs(masked[step]["actor/ppo_kl"]), 1e-5)
                self.assertGreater(whole[step][DIFFERENCE], 1e-2)
            # actor and reference are equal in step 1, over the kept tokens too
            self.assertLess(abs(masked[1]["actor/kl_loss"]), 1e-6)
            self.assertLess(masked[1]["actor/entropy"],
                            whole[1]["actor/entropy"])
        for sample in read_rows(self.run_folder("masked") / "samples.jsonl"):
            counts = sample["keys"]["kept_counts"]
            self.assertEqual([count > 0 for count in counts],
                             [own == 1 for own in sample["loss_mask"]])
            self.assertLessEqual(max(counts), 12)
            self.assertEqual(sum(counts), len(sample["keys"]["kept_ids"]))

    def test_it_trains_alike_under_every_plan_I1(self):
        self.train("recorded", *MASKS, *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        one = self.train("one", replay, *MASKS, *ONE_DEVICE)
        self.assertGreater(abs(one[1]["actor/pg_loss"]), 0)
        for plan in PLANS:
            other = self.train("other", "run.resume=fresh", f"plan={plan}",
                               replay, *MASKS, *FOUR_DEVICES)
            self.assert_alike(plan, one, other)

    def test_a_resumed_run_has_the_same_bits_I8(self):
        plan = ["plan=openrlhf", "run.save_every=2", *MASKS, *FOUR_DEVICES]
        self.train("whole", "run.steps=4", *plan)
        self.train("halves", "run.steps=2", *plan)
        self.train("halves", "run.steps=4", *plan)
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("whole", "halves")])

    def test_ppo_evaluates_and_trains_with_masks(self):
        self.troupe(*self.ppo("rollout.top_k=12", *MASKS, "run.steps=2",
                              "algorithm.mini_batches=1",
                              "eval={data: data/prompts.jsonl, max_rows: 4}"))
        self.assertLess(self.metrics("ppo")[1][DIFFERENCE], 1e-5)

    def test_what_a_mask_cannot_record_is_refused(self):
        for override, words in (
                ("rollout.top_k=0", "rollout.top_k"),
                ("rollout.logprobs=unfiltered", "rollout.logprobs"),
                ("rollout.repetition_penalty=1.2",
                 "rollout.repetition_penalty")):
            done = self.troupe(*self.grpo(*MASKS, override), code=2)
            self.assertIn(words, done.stderr)

    def test_a_workflow_file_names_the_masks_that_it_passes_on(self):
        text = (SOURCE / "examples/workflows/grpo.yaml").read_text()
        file = self.folder / "plain.yaml"
        file.write_text(text)
        done = self.troupe(*self.grpo(f"workflow={file}", *MASKS, *ONE_DEVICE),
                           code=2)
        self.assertIn("kept_counts", done.stderr)
        keys = "kept_counts, kept_ids]"
        for old, new in (
                ("{generate: actor}", "{generate: actor, writes: [sequence_ids, "
                 f"loss_mask, logprobs, truncated, {keys}}}"),
                ("fn: logprobs, ", "fn: logprobs, reads: [sequence_ids, "
                 f"loss_mask, {keys}, "),
                ("ref_logprobs]", f"ref_logprobs, {keys}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        file.write_text(text)
        self.assertEqual(
            self.train("file", f"workflow={file}", *MASKS, *ONE_DEVICE),
            self.train("built_in", *MASKS, *ONE_DEVICE))
        done = self.troupe(*self.grpo(f"workflow={file}", *ONE_DEVICE), code=2)
        self.assertIn("algorithm.sampling_mask", done.stderr)


if __name__ == "__main__":
    unittest.main()
