"""Predictions of first light's figures, by the forms of plans/cost/gpu_cost.cpp and the
numbers of the shipped hardware files (plans/cost/hardware_shipped.cpp), which
tests/python/first_light_test.py compares. Counts (plans/cost/gpu_counts.hpp) come with the
document of a benchmark."""

# of the shipped files h100x8 and h200x8
HARDWARE = {
    "H100": {"gemm_flops": 6.4e14, "mem_Bps": 2.7e12, "cache_Bps": 2.3e12,
             "launch_s": 5e-6, "copy_s": 15e-6, "graph_gap_s": 1.2e-6,
             "stage_token_s": 0.3e-3, "host_Bps": 50e9, "intra_Bps": 3.6e11},
    "H200": {"gemm_flops": 6.4e14, "mem_Bps": 3.8e12, "cache_Bps": 3.4e12,
             "launch_s": 5e-6, "copy_s": 15e-6, "graph_gap_s": 1.2e-6,
             "stage_token_s": 0.3e-3, "host_Bps": 50e9, "intra_Bps": 3.6e11},
}
DENSE_FLOPS = 989e12        # bf16, data sheet of both
CACHE_BYTES = 2             # a number of a bf16 cache
LOGIT_BYTES = 4


def hardware_of(gpu):
    """None for a GPU without a file."""
    return next((numbers for word, numbers in HARDWARE.items() if word in gpu), None)


def decode_ms(numbers, hardware):
    """Weights and the cache at half of the new tokens, the gaps of graphs, what is launched
    once a token, and logits that the host draws from."""
    counts = numbers["counts"]
    context = numbers["prompt_tokens"] + numbers["new_tokens"] / 2
    cache = numbers["batch"] * context * numbers["cached_numbers_a_token"] * CACHE_BYTES
    return 1e3 * (counts["layer_traffic"] * numbers["read_bytes"] / hardware["mem_Bps"]
                  + cache / hardware["cache_Bps"]
                  + numbers["layers"] * counts["layer_launches"] * hardware["graph_gap_s"]
                  + counts["rest_launches"] * hardware["launch_s"]
                  + counts["rest_copies"] * hardware["copy_s"]
                  + LOGIT_BYTES * numbers["logits"] / hardware["host_Bps"]
                  + hardware["stage_token_s"])


def train_s(numbers, hardware):
    """Products, a third of them once more with recomputation, and the optimizer."""
    flops = numbers["flops"] * (4 / 3 if numbers["recompute"] else 1)
    return (flops / hardware["gemm_flops"]
            + numbers["optimizer_bytes_a_parameter"] * numbers["parameters"]
            / hardware["mem_Bps"])


def with_figures(numbers, gpu):
    """The document of a benchmark with what first light asks of it: `predicted`, and of a
    training `mfu`."""
    found, hardware = dict(numbers), hardware_of(gpu)
    bench = numbers.get("bench")
    if bench == "train":
        found["step_median_s"] = numbers["step_s"]["median"]
        found["mfu"] = numbers["gflops"] * 1e9 / DENSE_FLOPS
    if hardware and bench == "decode":
        found["predicted"] = decode_ms(numbers, hardware)
    if hardware and bench == "train":
        found["predicted"] = train_s(numbers, hardware)
    if hardware and bench == "memory":
        found["predicted"] = hardware["mem_Bps"] / 1e9
    if hardware and bench == "sums":
        found["predicted"] = hardware["intra_Bps"] / 1e9
    return found
