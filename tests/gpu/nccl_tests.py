"""Runs those programs of nccl-tests that this machine has, for 1 GiB on N GPUs, and prints
their bus bandwidths as a JSON document: what troupe-bench's `sums` stands beside.

    nccl_tests.py N"""
import json
import re
import shutil
import subprocess
import sys

PROGRAMS = {"all_reduce_gb_s": "all_reduce_perf", "all_gather_gb_s": "all_gather_perf",
            "reduce_scatter_gb_s": "reduce_scatter_perf", "exchange_gb_s": "sendrecv_perf"}


def main():
    found = {}
    for name, program in PROGRAMS.items():
        if shutil.which(program) is None:
            continue
        said = subprocess.run([program, "-b", "1G", "-e", "1G", "-n", "10", "-g", sys.argv[1]],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        print(said)
        rate, = re.findall(r"Avg bus bandwidth\s*:\s*([\d.]+)", said)
        found[name] = float(rate)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
