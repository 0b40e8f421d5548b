"""What devices take, counted, is what the plan check foresees: by device, by
task, and of what the processes hold."""
import json
import statistics
import unittest

from support import Case, TINY, read_rows, write_rows

ALLOWED = 0.15
ANSWER_TOKENS, SAMPLES = 24, 16


def one(strategy, devices, **more):
    """All calls on the same devices in one strategy; `more` for some calls."""
    calls = ["actor_gen", "rew_inf", "ref_inf", "critic_inf", "actor_train",
             "critic_train"]
    span = f"0-{devices - 1}" if devices > 1 else "0"
    plan = {"cluster": {"nodes": 1, "devices_per_node": devices,
                        "workers_per_node": 1},
            "calls": {call: {"devices": span, "strategy": strategy}
                      for call in calls}}
    plan["calls"]["advantages"] = {"devices": "host"}
    for call, settings in more.items():
        plan["calls"][call] |= settings
    return plan


PLANS = {
    "single": one("d1", 1),
    "copies": one("d2", 2),
    "tensor": one("t2", 2),
    "stages": one("p2", 2),
    "chunks": one("d2", 2, actor_gen={"chunks": 2}),
    "z1": one("d2", 2, actor_train={"strategy": "d2z1"},
              critic_train={"strategy": "d2z1"}, critic_inf={"strategy": "d2z1"}),
    "z3": one("d2", 2, **{call: {"strategy": "d2z3"} for call in (
        "actor_train", "critic_train", "critic_inf", "ref_inf", "rew_inf")}),
    "all_z3": one("d2z3", 2),
    "apart": one("d1", 4, actor_gen={"devices": "0-3", "strategy": "d4"},
                 rew_inf={"devices": "0"}, ref_inf={"devices": "1"},
                 critic_inf={"devices": "2-3", "strategy": "d2"},
                 actor_train={"devices": "0-1", "strategy": "d2"},
                 critic_train={"devices": "2-3", "strategy": "d2"}),
}
PLANS["offload"] = PLANS["apart"] | {"roles": {
    "ref": {"offload": ["weights"]}, "reward": {"offload": ["weights"]},
    "critic": {"offload": ["optimizer"]},
    "actor": {"offload": ["weights", "optimizer"]}}}
PLANS["z3_offload"] = PLANS["z3"] | {"roles": {
    "ref": {"offload": ["weights"]}, "reward": {"offload": ["weights"]}}}
# what moves bring for the values lies beside no other call
PLANS["moved"] = one("d2", 3, **{call: {"devices": "0-1"} for call in (
    "actor_gen", "rew_inf", "ref_inf", "critic_inf")}, **{
        call: {"devices": "2", "strategy": "d1"} for call in (
            "actor_train", "critic_train")})
# a mini-batch is one micro-batch whatever its size
WHOLE = one("d1", 1, **{call: {"micro_batch_tokens": 1 << 20} for call in (
    "rew_inf", "ref_inf", "critic_inf", "actor_train", "critic_train")})


class DeviceMemory(Case):
    def equal_prompts(self):
        """Prompts of one length, which no two neighbours share; the length."""
        rows = read_rows(self.folder / "data/prompts.jsonl")
        texts = sorted({row["prompt"] for row in rows})
        told = self.troupe("tokenize", "--model", "data/base",
                           text_in="".join(json.dumps(t) + "\n" for t in texts))
        lengths = [len(json.loads(line)) for line in told.stdout.splitlines()]
        length = statistics.mode(lengths)
        chosen = [text for text, n in zip(texts, lengths) if n == length]
        self.assertGreater(len(chosen), 1)
        write_rows(self.folder / "equal.jsonl",
                   [{"prompt": chosen[i % len(chosen)]} for i in range(512)])
        return length

    def settings(self, name, *overrides):
        """Arguments of a run in which every response has maximal length."""
        plan = PLANS.get(name, WHOLE)
        (self.folder / f"{name}.yaml").write_text(json.dumps(plan))
        devices = plan["cluster"]["devices_per_node"]
        return self.ppo(
            f"run.name={name}", f"plan={name}.yaml", "cluster.workers_per_node=1",
            f"cluster.devices_per_node={devices}", "data.train=equal.jsonl",
            f"data.max_prompt_tokens={self.equal_prompts()}",
            f"rollout.max_new_tokens={ANSWER_TOKENS}",
            f"rollout.min_new_tokens={ANSWER_TOKENS}",
            f"data.batch_size={SAMPLES}", "algorithm.mini_batches=2",
            *overrides)[1:]

    def foreseen(self, words):
        report = json.loads(self.troupe("plan", "check", *words, "--json").stdout)
        self.assertTrue(report["ok"], report)
        return {d["device"]: d for d in report["devices"]}

    def counted(self, name, words):
        self.troupe("train", *words)
        status = json.loads(self.troupe("status", f"runs/{name}", "--json").stdout)
        return {d["device"]: d for d in status["devices"]}

    def check(self, name, *overrides):
        words = self.settings(name, *overrides)
        foreseen, counted = self.foreseen(words), self.counted(name, words)
        self.assertEqual(list(foreseen), list(counted))
        for device, plan in foreseen.items():
            run = counted[device]
            said = f"{name}, device {device}: {plan} foreseen, {run} counted"
            self.assertLess(abs(plan["peak_bytes"] / run["peak_bytes"] - 1),
                            ALLOWED, said)
            self.assertEqual(plan["at_task"], run["at_task"], said)

    def test_adapters_and_frozen_weights_are_foreseen(self):
        for name in ("single", "tensor", "z1", "apart"):
            with self.subTest(name):
                self.check(name, "models.actor.lora.rank=8",
                           "models.critic.lora.rank=8")

    def test_a_process_grows_by_what_its_device_counts(self):
        """A process holds libraries, rows and kernels' scratch beside; what a
        larger micro-batch adds to the count it adds to resident memory."""
        held = []
        for samples in (256, 768):
            words = self.settings("whole", f"run.name=s{samples}",
                                  f"data.batch_size={samples}",
                                  "algorithm.mini_batches=1")
            self.troupe("train", *words)
            last = self.metrics(f"s{samples}")[3]
            held.append((last["perf/max_memory_gb"],
                         last["perf/device_memory_gb"]))
        process, counted = (b - a for a, b in zip(*held))
        self.assertGreater(counted, 0.1)
        self.assertLess(abs(process / counted - 1), ALLOWED, held)


for plan_name in PLANS:
    setattr(DeviceMemory, f"test_of_{plan_name}_is_what_the_plan_foresees",
            lambda self, name=plan_name: self.check(name))


if __name__ == "__main__":
    unittest.main()
