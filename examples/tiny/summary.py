"""What the demo learned, from the files of its runs: held-out accuracy of the
reward model, reward of the first and last PPO steps, answers before and after.
Exit code 1 if a promise is not kept: accuracy at least 0.9, the mean score of
the last ten steps above the first five's by a standard deviation of the first
five steps' samples, mean KL to the reference under 10 nats a sequence."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

DATA = pathlib.Path("runs/tiny_data")
SFT, REWARD, PPO = (pathlib.Path("runs") / name
                    for name in ("tiny_sft", "tiny_reward", "tiny_ppo"))
FIRST, LAST = 5, 10  # steps
LEAST_ACCURACY, MOST_KL_NATS = 0.9, 10.0


def read_rows(file):
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_rows(file, rows):
    with open(file, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def troupe(*arguments):
    subprocess.run([options.troupe, *map(str, arguments)], check=True,
                   stdout=subprocess.DEVNULL)


def held_out_accuracy():
    """Share of the test pairs whose chosen answer gets the higher score."""
    pairs = read_rows(DATA / "pairs_test.jsonl")
    answers = [{"prompt": pair["prompt"], "response": pair[side]}
               for pair in pairs for side in ("chosen", "rejected")]
    write_rows(DATA / "answers_test.jsonl", answers)
    troupe("score", "--model", REWARD / "latest/reward", "--data",
           DATA / "answers_test.jsonl", "--out", DATA / "scores_test.jsonl")
    scores = [row["score"] for row in read_rows(DATA / "scores_test.jsonl")]
    right = sum(chosen > rejected
                for chosen, rejected in zip(scores[0::2], scores[1::2]))
    return right / len(pairs)


def answers(model, prompts):
    """Greedy answers of a model; `prompts` is a file."""
    out = DATA / "answers.jsonl"
    troupe("generate", "--model", model, "--prompts", prompts, "--out", out,
           "--greedy", "--max-new-tokens", 32)
    return [row["response"].strip() for row in read_rows(out)]


def scores_by_step():
    """The samples' scores of each PPO step and their KL in nats a sequence."""
    scores, nats = {}, {}
    for row in read_rows(PPO / "samples.jsonl"):
        scores.setdefault(row["step"], []).append(row["score"])
        nats.setdefault(row["step"], []).append(row["kl"])
    return ([scores[step] for step in sorted(scores)],
            [statistics.fmean(nats[step]) for step in sorted(nats)])


def main():
    accuracy = held_out_accuracy()
    scores, nats = scores_by_step()
    first = [score for step in scores[:FIRST] for score in step]
    last = [score for step in scores[-LAST:] for score in step]
    gain = statistics.fmean(last) - statistics.fmean(first)
    spread = statistics.stdev(first)
    print(f"reward model   {accuracy:.1%} of held-out pairs right")
    print(f"PPO reward     {statistics.fmean(first):+.2f} (first {FIRST} steps)"
          f" -> {statistics.fmean(last):+.2f} (last {LAST} of {len(scores)});"
          f" {gain / spread:.1f} standard deviations of {spread:.2f}")
    print(f"KL to SFT      mean {statistics.fmean(nats):.1f} nats a sequence,"
          f" highest step {max(nats):.1f}")
    prompts = DATA / "two_prompts.jsonl"
    rows = read_rows(DATA / "prompts.jsonl")[:2]
    write_rows(prompts, rows)
    before = answers(SFT / "latest/actor", prompts)
    after = answers(PPO / "latest/actor", prompts)
    for row, old, new in zip(rows, before, after):
        print(f"\n  {row['prompt'].splitlines()[0]}")
        print(f"    before: {old}")
        print(f"    after:  {new}")
    promises = {
        f"accuracy at least {LEAST_ACCURACY}": accuracy >= LEAST_ACCURACY,
        "reward up by a standard deviation": gain >= spread,
        f"mean KL under {MOST_KL_NATS} nats": max(nats) < MOST_KL_NATS,
    }
    for promise, kept in promises.items():
        if not kept:
            print(f"\nnot reached: {promise}", file=sys.stderr)
    sys.exit(0 if all(promises.values()) else 1)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--troupe", required=True, help="the binary")
options = parser.parse_args()
main()
