"""The steps of first light, from harmless to heavy, as data (first_light.py runs them).
A new step is an entry here: other checks of GPUs come where their neighbours are.

Words in braces are filled in: {troupe}, {bench}, {models_test}, {tiny_data} (programs),
{root} (the sources, or the bundle), {python}, {device} (gpu; cpu in a rehearsal), {gpus}
and {out} (the folder of this run)."""
import dataclasses

SMALL_DECODE = ("--card", "tiny", "--batch", "4", "--new-tokens", "200", "--runs", "3")
MINUTES = 10  # of all steps together, for one GPU and for several


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    limit_s: int
    command: tuple
    expects: tuple = ("exit 0",)
    aims: tuple = ()       # of its figures: missing one is said, and stops nothing
    needs: tuple = ()      # "gpu", "gpus 2", "program NAME", "file PATH" below the root
    environment: tuple = ()  # NAME=VALUE
    rehearsal: tuple = ()  # words in place of the last ones, for a CPU; see `rehearsed`
    known_red: str = ""    # why it may fail: said, and stops nothing
    may_be_cut: bool = False  # what was found until then counts


def tests(name, limit_s, filter_, needs=("gpu",), **more):
    """Tests of models on the GPU. A filter that selects none, or tests that were
    skipped for want of a GPU or of data, are red."""
    environment = ("TROUPE_TEST_COMPUTE=gpu",) if needs else ()
    return Step(name, limit_s, ("{models_test}", "--gtest_brief=1",
                                f"--gtest_filter={filter_}"),
                ("exit 0", r"says PASSED  \] [1-9]", r"lacks no GPU|no golden data"),
                needs=needs, environment=environment, **more)


def bench(name, limit_s, verb, *words, small=(), aims=(), needs=("gpu",)):
    """A figure of troupe-bench. `small`: its words in a rehearsal on the CPU."""
    return Step(name, limit_s,
                ("{bench}", verb, "--cards", "{root}/tests/bench/cards.json",
                 "--device", "{device}" if needs else "cpu", *words),
                aims=aims, needs=needs, rehearsal=small)


def runs(name, limit_s, verb, *words, **more):
    return Step(name, limit_s,
                ("{python}", "-B", "{root}/tests/gpu/runs.py", verb, "--troupe", "{troupe}",
                 "--tiny-data", "{tiny_data}", "--device", "{device}", "--out", "{out}",
                 *words), **more)


PROGRAMS = ("troupe", "bench", "models_test", "tiny_data")
HARMLESS = [
    *(Step(f"libraries of {name}", 3, ("ldd", "{%s}" % name),
           ("exit 0", "lacks not found")) for name in PROGRAMS),
    Step("troupe starts", 10, ("{troupe}", "--version"), ("exit 0", r"says troupe \d")),
    tests("kernels that libtorch has", 20,
          "*FusedAttention*:FusedTraining*:FixedOrder*:Recorded.*", needs=()),
    bench("memory of the CPU", 10, "memory", "--mib", "16", "--runs", "2", needs=()),
    bench("a decoded token on the CPU", 10, "decode", "--card", "tiny", "--batch", "4",
          "--new-tokens", "200", "--runs", "3", needs=()),
    # Here belongs what needs a compiler or stand-ins for CUDA's libraries and no GPU:
    # registers of own kernels, {bench} decode --device gpu over stand-ins.
]
ONE_GPU = [
    *HARMLESS,
    Step("driver and devices", 10, ("nvidia-smi",), ("exit 0",), needs=("gpu",),
         rehearsal=("uname",)),
    Step("doctor finds the GPUs", 20, ("{troupe}", "doctor"),
         ("exit 0", "says gpus", "lacks gpus +none"), needs=("gpu",),
         rehearsal=("{troupe}", "--version")),
    bench("memory rates", 20, "memory", "--mib", "1024", small=("--mib", "16"),
          aims=("gb_s >= 2500 on H100", "gb_s >= 3600 on H200")),
    tests("kernels beside the CPU's", 30, "BackendKernels.*:*BackendProducts.*"),
    tests("golden families, fp32", 60,
          "*GoldenModel.*:*GoldenGeneration.*:*GoldenSft.*:GoldenTraining.*"),
    tests("golden updates and engine, bf16", 40,
          "Bf16.*:EngineTest.*:*GoldenDpo*:*GoldenPpo.*:*GoldenGrpo.*:-EngineTest."
          "InferenceDoesNotDependOnMicroBatches"),
    tests("recorded beside unrecorded decoding", 20, "*UnrecordedDecode.*"),
    Step("compute-sanitizer, one golden family", 45,
         ("compute-sanitizer", "--error-exitcode", "9", "{models_test}", "--gtest_brief=1",
          "--gtest_filter=*GoldenModel.HasTheHiddenStatesAndOutputs*/llama_gqa"),
         ("exit 0", r"says PASSED  \] [1-9]"), needs=("gpu", "program compute-sanitizer"),
         environment=("TROUPE_TEST_COMPUTE=gpu",), rehearsal=("true",), may_be_cut=True),
    bench("NCCL, a group of one", 13, "sums", "--threads", "1", "--mib", "1024", "--runs", "2",
          small=("--threads", "1", "--mib", "1", "--runs", "2")),
    tests("two devices on one GPU: strategies", 40, "*GoldenStrategyTraining.*"),
    bench("two devices on one GPU: t2 trains", 20, "train", "--card", "small", "--plan",
          "tensor", "--threads", "2", "--runs", "1", "--dtype", "bf16",
          small=("--card", "tiny", "--runs", "1", "--plan", "tensor", "--threads", "2")),
    # from here on figures
    bench("1B, batch 8: ms a token", 30, "decode", "--card", "1b", "--batch", "8", "--dtype",
          "bf16", "--runs", "3", small=SMALL_DECODE,
          aims=("ms_token <= 2.0 on H100", "ms_token <= 1.6 on H200",
                "ms_token within 20 % of predicted")),
    bench("8B, batch 8: ms a token", 45, "decode", "--card", "8b", "--batch", "8", "--dtype",
          "bf16", "--runs", "2", small=SMALL_DECODE,
          aims=("ms_token <= 8.0 on H100", "ms_token <= 6.0 on H200",
                "ms_token within 20 % of predicted")),
    bench("8B, batch 128: tokens a second", 45, "decode", "--card", "8b", "--batch", "128",
          "--dtype", "bf16", "--runs", "2", small=SMALL_DECODE,
          aims=("tok_s >= 8000", "ms_token within 20 % of predicted")),
    bench("1B trains", 30, "train", "--card", "1b", "--dtype", "bf16", "--runs", "3",
          small=("--card", "tiny", "--runs", "1"),
          aims=("mfu >= 0.40", "step_median_s within 20 % of predicted")),
    # all layers take 16 bytes a parameter, 128 GB: eight of them fit any of these GPUs
    bench("8B with 8 layers trains, recomputing", 40, "train", "--card", "8b", "--layers", "8",
          "--recompute", "on", "--dtype", "bf16", "--runs", "3",
          small=("--card", "tiny", "--recompute", "on", "--runs", "1"),
          aims=("mfu >= 0.45", "step_median_s within 20 % of predicted")),
    bench("8B moves from t2 to p2", 30, "device_move", "--card", "8b", "--runs", "3",
          small=("--card", "tiny", "--runs", "2"), aims=("of_copy >= 0.7",)),
]
MANY_GPUS = [
    *HARMLESS,
    Step("driver and devices", 10, ("nvidia-smi", "topo", "-m"), ("exit 0",),
         needs=("gpus 2",), rehearsal=("uname",)),
    bench("sums of 1 GiB", 60, "sums", "--threads", "{gpus}", "--mib", "1024", "--runs", "10",
          small=("--threads", "2", "--mib", "1", "--runs", "2"), needs=("gpus 2",),
          aims=("bus_gb_s >= 360 on H100", "bus_gb_s >= 360 on H200")),
    Step("nccl-tests beside them", 60,
         ("all_reduce_perf", "-b", "1G", "-e", "1G", "-g", "{gpus}"),
         ("exit 0", "says Avg bus bandwidth"), needs=("gpus 2", "program all_reduce_perf"),
         rehearsal=("echo", "Avg bus bandwidth")),
    bench("8B with 8 layers trains over tensor peers", 60, "train", "--card", "8b", "--layers",
          "8", "--plan", "tensor", "--threads", "{gpus}", "--dtype", "bf16", "--recompute",
          "on", "--runs", "2", small=("--card", "tiny", "--plan", "tensor", "--threads", "2",
                                      "--runs", "1"), needs=("gpus 2",)),
    runs("z3, tensor, pipeline: moves are checked", 120, "alike", "--plans",
         "sharded.yaml,tensor.yaml,pipeline.yaml", needs=("gpus 2",),
         expects=("exit 0", "worst <= 1e-3")),
    runs("PPO under four presets", 120, "alike", "--plans",
         "data_parallel,megatron,verl,separation", needs=("gpus 2",),
         expects=("exit 0", "worst <= 1e-3")),
    runs("a worker is killed", 90, "kill", needs=("gpus 2",),
         expects=("exit 0", "restarts >= 1")),
]


def rehearsed(step):
    """The step on the CPU: tests on ATen, figures of small models, no aims."""
    command = step.command
    if step.rehearsal and step.command[0] == "{bench}":
        command = (*step.command[:6], *step.rehearsal)
    elif step.rehearsal:
        command = step.rehearsal
    needs = tuple(need for need in step.needs if need.startswith("file"))
    expects = ("exit 0",) if step.rehearsal else step.expects
    environment = tuple(each.replace("=gpu", "=aten") for each in step.environment)
    return dataclasses.replace(step, command=command, needs=needs, expects=expects, aims=(),
                               environment=environment)
