"""Whole runs of GRPO whose generation records something for training: what every
record must keep (I1, I8), for the tests of each."""
from support import CONSTANT, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = ("deepspeed_chat", "openrlhf")


class RecordedRollouts:
    """A mixin of a Case, which sets `record` and may set the others."""
    actor = "data/base"
    plans = PLANS  # of four devices; what each must train like one device
    more = ()  # overrides of every run
    record = ()  # overrides that turn the record on

    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=3", "run.save_every=0",
                f"models.actor.path={self.actor}",
                "models.actor.optimizer.lr=1e-3", CONSTANT[0],
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "data.max_prompt_tokens=32", "rollout.n=4",
                "rollout.max_new_tokens=12", *self.more,
                "algorithm.mini_batches=2", "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}",
                *overrides]

    def train(self, name, *overrides):
        self.troupe(*self.grpo(f"run.name={name}", *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def test_it_trains_alike_under_every_plan_I1(self):
        self.train("recorded", *self.record, *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        one = self.train("one", replay, *self.record, *ONE_DEVICE)
        self.assertGreater(abs(one[1]["actor/pg_loss"]), 0)
        for plan in self.plans:
            other = self.train("other", "run.resume=fresh", f"plan={plan}",
                               replay, *self.record, *FOUR_DEVICES)
            self.assert_alike(plan, one, other)

    def test_a_resumed_run_has_the_same_bits_I8(self):
        self.check_resumed("openrlhf", "plan=openrlhf")

    def check_resumed(self, name, plan):
        """Two steps and two more under `plan` are four to the bit."""
        whole, halves = f"{name}_whole", f"{name}_halves"
        settings = [plan, "run.save_every=2", *self.record, *FOUR_DEVICES]
        self.train(whole, "run.steps=4", *settings)
        self.train(halves, "run.steps=2", *settings)
        self.train(halves, "run.steps=4", *settings)
        self.assertEqual(*[tree_bytes(self.latest(run), "*/*.safetensors")
                           for run in (whole, halves)])
