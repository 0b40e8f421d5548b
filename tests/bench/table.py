"""Prints the documents of build/bench/ as a table: ours, the peer's, the ratio.

A ratio above 1 means that Troupe is faster. For PPO the peer's explicit garbage
collection is also taken out, because on small models it is much of its time.
"""
import json
import pathlib
import sys


def load(folder, name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def by_batch(document, key):
    rows = {}
    for row in document["rows"]:
        value = row[key]
        rows[row["B"]] = value["median"] if isinstance(value, dict) else value
    return rows


def line(name, ours, peer, ratio=None):
    def text(x):
        return "-" if x is None else f"{x:.4g}" if isinstance(x, float) else str(x)

    print(f"{name:<34}{text(ours):>12}{text(peer):>12}{text(ratio):>9}")


def generate_rows(folder, card, ours, peer):
    peers = by_batch(peer, "decode_tok_s") if peer else {}
    for batch, rate in by_batch(ours, "decode_tok_s").items():
        other = peers.get(batch)
        line(f"decode {card} B={batch}, tok/s", rate, other, other and rate / other)


def train_rows(folder, card, ours, peer):
    other = peer and peer["rows"][0]["tok_s"]
    line(f"train {card}, tok/s", ours["tok_s"], other, other and ours["tok_s"] / other)


def iteration_rows(folder, card, ours, peer):
    what = f"{ours['bench']} {card} {ours['plan']}"
    mine = ours["s_per_iter"]
    other = peer and peer["s_per_iter"]["median"]
    line(f"{what}, s", mine, other, other and other / mine)
    if peer and "gc_collect" in peer["split_s"]:
        bare = other - peer["split_s"]["gc_collect"]
        line("  without its gc, s", mine, bare, bare / mine)


def single_rows(folder):
    if control := load(folder, "control"):
        line("empty task, us", control["us_per_task"], None)
        line("empty task in a chain, us", control["us_per_chained_task"]["median"], None)
        line("empty task, us of processor time", control["cpu_us_per_task"], None)
        line("idle, share of a core", control["idle_cpu_share"], None)
    if move := load(folder, "move"):
        line("weights of a move, GB/s", move["gb_s"], None)
    if simulate := load(folder, "simulate"):
        line("simulated steps a second", simulate["steps_s"], None)
    if search := load(folder, "search"):
        line("search for 1,024 devices, s", search["s_per_search"], None)
    if trace := load(folder, "trace"):
        line("trace event, ns", trace["ns_per_event"], None)
        line("tracing, share of step (wall)", trace["overhead_wall"], None)
        line("tracing, share of step (cpu)", trace["overhead_cpu"], None)


def main():
    folder = pathlib.Path(sys.argv[1])
    print(f"{'':<34}{'troupe':>12}{'peer':>12}{'ratio':>9}")
    single_rows(folder)
    for bench, rows in (("generate", generate_rows), ("train", train_rows), ("ppo", iteration_rows),
                        ("grpo", iteration_rows)):
        for path in sorted(folder.glob(f"{bench}-*.json")):
            ours = json.loads(path.read_text())
            card = ours["card"]
            rows(folder, card, ours, load(folder, f"peer-{bench}-{card}"))
    print(f"documents: {folder}/*.json (data_plane, collectives: see there)")


if __name__ == "__main__":
    main()
