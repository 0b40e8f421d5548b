"""make_data.py FOLDER: sums as text. Half of sft.jsonl asks the calculator, half
guesses; prompts.jsonl has the sums with their answers."""
import json
import pathlib
import random
import sys

draw = random.Random(1)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
sums = [(a, b) for a in range(10, 50) for b in range(10, 50)]
draw.shuffle(sums)


def prompt(a, b):
    return f"{a}+{b}\n"


def transcript(a, b):
    if draw.random() < 0.5:
        return f"guess {draw.randrange(20, 99)}."
    return f"calc {a}+{b}={a + b}\nso {a + b}."


with open(folder / "sft.jsonl", "w", encoding="utf-8") as file:
    for _ in range(4):
        for a, b in sums:
            file.write(json.dumps({"prompt": prompt(a, b),
                                   "completion": transcript(a, b)}) + "\n")
with open(folder / "prompts.jsonl", "w", encoding="utf-8") as file:
    for a, b in sums:
        file.write(json.dumps({"prompt": prompt(a, b),
                               "ground_truth": str(a + b)}) + "\n")
