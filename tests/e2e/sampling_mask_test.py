"""Sampling masks in whole runs: training computes the distribution that top-k and
top-p left, alike under every plan (I1) and resumed to the bit (I8)."""
import unittest

from recorded_rollouts import ONE_DEVICE, RecordedRollouts
from support import SOURCE, Case, read_rows

MASKS = ["algorithm.sampling_mask=true"]
DIFFERENCE = "training/rollout_probs_diff_mean"


class SamplingMask(RecordedRollouts, Case):
    more = ("rollout.top_k=12", "rollout.top_p=0.8")
    record = MASKS

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
