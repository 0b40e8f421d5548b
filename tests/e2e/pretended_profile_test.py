"""Measurements of pretended GPUs (docs/gpu_tests.md) and their use: `troupe profile`, `plan:
auto` and plan commands without a hardware file. Rates of pretended GPUs mean nothing; that
there are some, and of what, does."""
import json
import re
import unittest

from pretended import GPU_MIB, SECONDS, OnPretendedGpus

NUMBER = re.compile(r"^  (\w+): \{value: ([^,]+), source: \"([^\"]+)\"\}", re.M)
ENTRY = re.compile(r"^  - \{op: (\w+), parameters: \d+, tp: (\d+), ", re.M)
MEASURED = ("mem_bytes", "compute_capability", "gemm_flops", "mem_Bps", "optimizer_Bps",
            "launch_s", "copy_s", "graph_gap_s", "host_Bps", "intra_Bps", "intra_lat_s",
            "gather_Bps")
NAME = re.compile(r'^name: "?profiled on stand-in for an H100, ', re.M)
ON_CPU = "name: profiled on Some Processor\n"


class PretendedProfile(OnPretendedGpus):
    def setUp(self):
        super().setUp()
        self.gpu_profile = self.cached_hardware.with_name("hardware_gpu.yaml")
        # a profile of the CPU, which no run on GPUs takes
        self.cached_profile(self.cached_hardware.read_text().replace(
            "name: of a test\n", ON_CPU))

    def finished(self, process):
        done = process.finish(SECONDS)
        self.assertEqual(done.code, 0, f"{done.out}\n{done.err}")
        return done

    def assert_of_gpus(self, text):
        """What does not depend on how many sizes there was time for."""
        self.assertRegex(text, NAME)
        numbers = {name: (float(value), source) for name, value, source in NUMBER.findall(text)}
        for name in MEASURED:
            value, source = numbers[name]
            if name != "intra_lat_s":  # of a large sum that takes no longer: none
                self.assertGreater(value, 0, name)
            self.assertRegex(source, "^(measured|fitted)", name)
        self.assertAlmostEqual(numbers["mem_bytes"][0], GPU_MIB << 20, delta=1e4)
        self.assertNotIn("reserve_bytes", numbers)

    def test_profile_measures_layouts_links_and_kernels_of_gpus(self):
        words = self.sft("cluster.device=gpu", "cluster.devices_per_node=2",
                         "cluster.workers_per_node=1", "plan=data_parallel")[1:]
        self.finished(self.command(2, ["profile", *words, "--seconds", 45,
                                       "--out", "here.yaml"]))
        text = (self.folder / "here.yaml").read_text()
        self.assert_of_gpus(text)
        self.assertLessEqual({("train", "1"), ("train", "2")}, set(ENTRY.findall(text)))
        self.assertEqual(self.gpu_profile.read_text(), text)
        for plan in ("data_parallel", "megatron"):
            run = json.loads(self.finished(self.command(2, [
                "plan", "simulate", *self.sft("cluster.devices_per_node=2")[1:], "--preset",
                plan, "--hardware", "here.yaml", "--json"])).out)
            self.assertGreater(run["step_s"], 0, plan)
            self.assertTrue(run["basis"]["profiled"])

    def test_plan_auto_measures_gpus_once_and_takes_no_profile_of_the_cpu(self):
        words = ["run.steps=1", "plan=auto"]
        before = self.cached_hardware.read_text()
        first = self.finished(self.on_gpus(2, self.sft("run.name=first", *words)))
        self.assertRegex(first.out + first.err,
                         r"numbers of this machine: measured now in [\d.]+ s")
        self.assert_of_gpus(self.gpu_profile.read_text())
        self.assertEqual(self.cached_hardware.read_text(), before)
        again = self.finished(self.on_gpus(2, self.sft("run.name=second", *words)))
        self.assertIn(f"numbers of this machine: {self.gpu_profile}", again.out + again.err)
        self.assertIn("perf/predicted_step_s", self.metrics("second")[1])

    def test_plan_commands_without_a_file_take_that_of_the_gpu(self):
        done = self.finished(self.command(1, [
            "plan", "simulate", *self.sft("cluster.device=gpu", "plan=single")[1:], "--json"]))
        basis = json.loads(done.out)["basis"]
        self.assertEqual((basis["hardware"], basis["profiled"]), ("h100x8", False))


if __name__ == "__main__":
    unittest.main()
