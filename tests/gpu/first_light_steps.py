"""The steps of first light, from harmless to heavy, as data (first_light.py runs them).
A new step is an entry here: other checks of GPUs come where their neighbours are.

Words in braces are filled in: {troupe}, {bench}, {models_test}, {gpu_kernels_test},
{tiny_data} (programs), {root} (the sources, or the bundle), {python}, {device} (gpu; cpu
in a rehearsal), {gpus} and {out} (the folder of this run)."""
import dataclasses

SMALL_DECODE = ("--card", "tiny", "--batch", "4", "--new-tokens", "200", "--runs", "3")
SMALL_TRAIN = ("--card", "tiny", "--layers", "2", "--batch", "4", "--tokens", "32", "--runs", "1")
SMALL_PEERS = (*SMALL_TRAIN, "--plan", "tensor", "--threads", "2")
MINUTES = 10  # of all steps together, for one GPU and for several; peers come on top
GRAPHS = ("exit 0", "lacks no CUDA graphs")  # one by one a token takes several times as long
OVER_NCCL = ("exit 0", "nccl >= 1", "lacks go through the host")


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    limit_s: int
    command: tuple
    expects: tuple = ("exit 0",)
    aims: tuple = ()       # of its figures: missing one is said, and stops nothing
    needs: tuple = ()      # "gpu", "gpus 2", "gpu_gb 75", "program NAME", "package NAME"
    environment: tuple = ()  # NAME=VALUE
    rehearsal: tuple = ()  # words in place of the last ones, for a CPU; see `rehearsed`
    known_red: str = ""    # why it may fail: said, and stops nothing
    may_be_cut: bool = False  # what was found until then counts
    is_peer: bool = False  # another program on the same work, on top of the ten minutes
    beside: tuple = ()     # (name, step, number): that number of an earlier step, by name


def tests(name, limit_s, filter_, needs=("gpu",), also=(), **more):
    """Tests of models on the GPU. A filter that selects none, or tests that were
    skipped for want of a GPU or of data, are red."""
    environment = ("TROUPE_TEST_COMPUTE=gpu",) if needs else ()
    return Step(name, limit_s, ("{models_test}", "--gtest_brief=1",
                                f"--gtest_filter={filter_}"),
                ("exit 0", r"says PASSED  \] [1-9]", r"lacks no GPU|no golden data", *also),
                needs=needs, environment=environment, **more)


def bench(name, limit_s, verb, *words, small=(), needs=("gpu",), **more):
    """A figure of troupe-bench. `small`: its words for a small model."""
    return Step(name, limit_s,
                ("{bench}", verb, "--cards", "{root}/tests/bench/cards.json",
                 "--device", "{device}" if needs else "cpu", *words),
                needs=needs, rehearsal=small, **more)


def runs(name, limit_s, verb, *words, **more):
    return Step(name, limit_s,
                ("{python}", "-B", "{root}/tests/gpu/runs.py", verb, "--troupe", "{troupe}",
                 "--tiny-data", "{tiny_data}", "--device", "{device}", "--gpus", "{gpus}",
                 "--out", "{out}", *words), needs=("gpus 2",), **more)


PROGRAMS = ("troupe", "bench", "models_test", "tiny_data")
HARMLESS = [
    *(Step(f"libraries of {name}", 3, ("ldd", "{%s}" % name),
           ("exit 0", "lacks not found")) for name in PROGRAMS),
    Step("troupe starts", 7, ("{troupe}", "--version"), ("exit 0", r"says troupe \d")),
    tests("kernels that libtorch has", 15,
          "*FusedAttention*:FusedTraining*:FixedOrder*:Recorded.*", needs=()),
    bench("memory of the CPU", 5, "memory", "--mib", "16", "--runs", "2", needs=()),
    bench("a decoded token on the CPU", 8, "decode", "--card", "tiny", "--batch", "4",
          "--new-tokens", "200", "--runs", "3", needs=()),
]
GRPO = "GRPO of Qwen3-0.6B's shape: a whole iteration"
ONE_GPU = [
    *HARMLESS,
    Step("driver and devices", 5, ("nvidia-smi",), ("exit 0",), needs=("gpu",),
         rehearsal=("uname",)),
    Step("doctor finds the GPUs and NCCL", 25, ("{troupe}", "doctor"),
         ("exit 0", "says gpus", "lacks gpus +none", "lacks nccl +none"), needs=("gpu",),
         rehearsal=("{troupe}", "--version")),
    bench("memory rates", 15, "memory", "--mib", "1024", small=("--mib", "16"),
          aims=("gb_s >= 2500 on H100", "gb_s >= 3600 on H200")),
    Step("own kernels beside their CPU form", 20, ("{gpu_kernels_test}", "--gtest_brief=1"),
         ("exit 0", r"says PASSED  \] [1-9]", "lacks SKIPPED"),
         needs=("gpu", "program {gpu_kernels_test}"), rehearsal=("true",)),
    tests("kernels beside the CPU's", 25, "BackendKernels.*:*BackendProducts.*"),
    tests("golden families, fp32", 40,
          "*GoldenModel.*:*GoldenGeneration.*:*GoldenSft.*:GoldenTraining.*",
          known_red="differences of about 1e-5 may be the order of cuBLAS's sums; the steps "
                    "in bf16 decide"),
    tests("golden updates and engine", 30,
          "EngineTest.*:*GoldenDpo*:*GoldenPpo.*:*GoldenGrpo.*:-EngineTest."
          "InferenceDoesNotDependOnMicroBatches"),
    tests("families and experts, bf16", 30, "*Bf16.*:*Bf16Family.*"),
    tests("recorded beside unrecorded decoding", 15, "*UnrecordedDecode.*",
          also=("lacks no CUDA graphs",)),
    # without a cache of blocks, else what is behind one is another's
    Step("compute-sanitizer over own kernels", 30,
         ("compute-sanitizer", "--error-exitcode", "9", "{gpu_kernels_test}",
          "--gtest_brief=1"),
         ("exit 0", "lacks ========= (Invalid|Program hit|Race|Uninit|Leaked)",
          "lacks ERROR SUMMARY: [1-9]"),
         needs=("gpu", "program compute-sanitizer", "program {gpu_kernels_test}"),
         environment=("PYTORCH_NO_CUDA_MEMORY_CACHING=1",), rehearsal=("true",),
         may_be_cut=True),
    bench("NCCL, a group of one", 12, "sums", "--threads", "1", "--mib", "1024", "--runs", "2",
          small=("--threads", "1", "--mib", "1", "--runs", "2"), expects=OVER_NCCL),
    tests("two devices on one GPU: strategies", 30, "*GoldenStrategyTraining.*"),
    tests("two devices on one GPU: generation", 25, "*ParallelGeneration.GivesTheSameTokens*"),
    bench("two devices on one GPU: t2 trains", 15, "train", "--card", "small", "--plan",
          "tensor", "--threads", "2", "--runs", "1", "--dtype", "bf16",
          small=SMALL_PEERS),
    bench("experts train", 15, "train", "--card", "experts", "--dtype", "bf16", "--runs", "1",
          small=("--card", "experts", "--dtype", "bf16", "--runs", "1", "--layers", "2",
                 "--batch", "2")),
    bench("experts decode in a graph", 15, "decode", "--card", "experts", "--dtype", "bf16",
          "--runs", "1", expects=GRAPHS,
          small=("--card", "experts", "--dtype", "bf16", "--runs", "1", "--layers", "2",
                 "--batch", "2", "--new-tokens", "200")),
    # from here on figures
    bench("1B, batch 8: ms a token", 20, "decode", "--card", "1b", "--batch", "8", "--dtype",
          "bf16", "--runs", "3", small=SMALL_DECODE, expects=GRAPHS,
          aims=("ms_token <= 2.0 on H100", "ms_token <= 1.6 on H200",
                "ms_token within 20 % of predicted")),
    # fp32 masters and their copy in bf16: 48 GB, and the cache
    bench("8B, batch 8: ms a token", 30, "decode", "--card", "8b", "--batch", "8", "--dtype",
          "bf16", "--runs", "2", small=SMALL_DECODE, expects=GRAPHS,
          needs=("gpu", "gpu_gb 75"),
          aims=("ms_token <= 8.0 on H100", "ms_token <= 6.0 on H200",
                "ms_token within 20 % of predicted")),
    bench("8B, batch 128: tokens a second", 30, "decode", "--card", "8b", "--batch", "128",
          "--dtype", "bf16", "--runs", "2", small=SMALL_DECODE, expects=GRAPHS,
          needs=("gpu", "gpu_gb 75"),
          aims=("tok_s >= 8000 on H100", "tok_s >= 8000 on H200",
                "ms_token within 20 % of predicted")),
    bench("1B trains", 20, "train", "--card", "1b", "--dtype", "bf16", "--runs", "3",
          small=SMALL_TRAIN,
          aims=("mfu >= 0.40 on H100", "mfu >= 0.40 on H200",
                "step_median_s within 20 % of predicted")),
    # all layers take 18 bytes a parameter, 144 GB: eight of them fit any of these GPUs
    bench("8B with 8 layers trains, recomputing", 25, "train", "--card", "8b", "--layers", "8",
          "--recompute", "on", "--dtype", "bf16", "--runs", "3", needs=("gpu", "gpu_gb 75"),
          small=(*SMALL_TRAIN, "--recompute", "on"),
          aims=("mfu >= 0.45 on H100", "mfu >= 0.45 on H200",
                "step_median_s within 20 % of predicted")),
    # both layouts in fp32
    bench("8B moves from t2 to p2", 20, "device_move", "--card", "8b", "--runs", "3",
          small=("--card", "tiny", "--runs", "2"), needs=("gpu", "gpu_gb 75"),
          aims=("of_copy >= 0.7",)),
    bench(GRPO, 60, "grpo", "--card", "qwen3_0.6b", "--dtype", "bf16", "--plan", "single",
          "--runs", "3", small=("--card", "tiny", "--plan", "single", "--runs", "1"),
          aims=("s_per_iter within 20 % of predicted",)),
    Step("the same by TRL with vLLM", 240,
         ("{python}", "-B", "{root}/tests/gpu/trl_vllm.py", "--cards",
          "{root}/tests/bench/cards.json", "--card", "qwen3_0.6b", "--out", "{out}"),
         needs=("gpu", "package trl", "package vllm"), rehearsal=("true",), is_peer=True,
         beside=(("ours_s", GRPO, "s_per_iter"),), aims=("s_per_iter >= 1.5 of ours_s",)),
]
NCCL_TESTS = "nccl-tests"
HOSTS = runs("weights between two hosts over NCCL", 55, "hosts",
             expects=("exit 0", "worst <= 1e-3", "nccl_moves >= 2"))
HOSTS = dataclasses.replace(HOSTS, rehearsal=HOSTS.command)  # where there is no NCCL
MANY_GPUS = [
    *HARMLESS,
    Step("driver and devices", 5, ("nvidia-smi", "topo", "-m"), ("exit 0",),
         needs=("gpus 2",), rehearsal=("uname",)),
    Step(NCCL_TESTS, 40, ("{python}", "-B", "{root}/tests/gpu/nccl_tests.py", "{gpus}"),
         needs=("gpus 2", "program all_reduce_perf"), rehearsal=("true",)),
    bench("collectives of 1 GiB", 40, "sums", "--threads", "{gpus}", "--mib", "1024", "--runs",
          "10", small=("--threads", "{gpus}", "--mib", "1", "--runs", "2"), needs=("gpus 2",),
          expects=OVER_NCCL,
          beside=tuple((f"nccl_{name}", NCCL_TESTS, f"{name}_gb_s") for name in (
              "all_reduce", "all_gather", "reduce_scatter", "exchange")),
          aims=("bus_gb_s >= 360 on H100", "bus_gb_s >= 360 on H200",
                "bus_gb_s >= 0.9 of nccl_all_reduce",
                "all_gather_gb_s >= 0.9 of nccl_all_gather",
                "reduce_scatter_gb_s >= 0.9 of nccl_reduce_scatter",
                "exchange_gb_s >= 0.9 of nccl_exchange",
                "in_stream_gb_s >= 0.9 of nccl_all_reduce")),
    bench("collectives of 256 MiB, bf16", 15, "sums", "--threads", "{gpus}", "--mib", "256",
          "--runs", "5", "--dtype", "bf16", expects=OVER_NCCL, needs=("gpus 2",),
          small=("--threads", "{gpus}", "--mib", "1", "--runs", "2", "--dtype", "bf16")),
    bench("8B with 8 layers trains over tensor peers", 35, "train", "--card", "8b", "--layers",
          "8", "--plan", "tensor", "--threads", "{gpus}", "--dtype", "bf16", "--recompute",
          "on", "--runs", "2", small=SMALL_PEERS, needs=("gpus 2",),
          expects=("exit 0", "lacks go through the host"),
          aims=("step_median_s within 20 % of predicted",)),
    runs("z3, tensor, pipeline: moves are checked", 140, "alike", "--plans",
         "sharded,tensor,pipeline", expects=("exit 0", "worst <= 1e-3")),
    runs("PPO under four presets", 135, "alike", "--plans",
         "data_parallel,megatron,verl,separation", expects=("exit 0", "worst <= 1e-3")),
    HOSTS,
    runs("a worker is killed", 85, "kill", expects=("exit 0", "restarts >= 1")),
]


def with_small_models(step):
    """The command with the words of a small model, where it is a figure's."""
    return (*step.command[:6], *step.rehearsal) \
        if step.rehearsal and step.command[0] == "{bench}" else step.command


def small(step):
    """The step on the GPUs that there are, with figures of small models and no aims."""
    needs = tuple(need for need in step.needs if not need.startswith("gpu_gb"))
    return dataclasses.replace(step, command=with_small_models(step), needs=needs, aims=())


def rehearsed(step):
    """The step on the CPU: tests on ATen, figures of small models, no aims."""
    command = with_small_models(step)
    if step.rehearsal and step.command[0] != "{bench}":
        command = step.rehearsal
    expects = ("exit 0",) if step.rehearsal else step.expects
    environment = tuple(each.replace("=gpu", "=aten") for each in step.environment)
    return dataclasses.replace(step, command=command, needs=(), expects=expects, aims=(),
                               environment=environment)
