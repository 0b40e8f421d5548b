"""make_data.py FOLDER: games as text. sft.jsonl has games of players who know
the form but not the rules; prompts.jsonl has the piles."""
import json
import pathlib
import random
import sys

draw = random.Random(1)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def game(pile):
    text, left = "", pile
    while left > 0:
        stones = draw.choice([1, 2, 3, 4, 5])
        text += f"take {stones}\n"
        if stones > min(3, left):
            break
        left -= stones
        text += f"left {left}\n" if left else ""
    return text


def write(name, rows):
    with open(folder / name, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


piles = [draw.randrange(4, 10) for _ in range(2000)]
write("sft.jsonl", [{"prompt": f"pile {pile}\n", "completion": game(pile)}
                    for pile in piles])
write("prompts.jsonl", [{"prompt": f"pile {pile}\n"} for pile in piles])
