"""make_data.py FOLDER: walks through rooms as text. sft.jsonl has those of
somebody who knows the words but not the way; prompts.jsonl has the starts."""
import json
import pathlib
import random
import sys

ROOMS, MOST_STEPS = 6, 6  # as in treasure.py
draw = random.Random(1)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def start():
    treasure, room = draw.sample(range(1, ROOMS + 1), 2)
    return {"prompt": f"treasure {treasure} room {room}\n",
            "treasure": treasure, "room": room}


def walk(row):
    text, room = "", row["room"]
    for _ in range(MOST_STEPS):
        move = draw.choice(["left", "right"])
        room = min(max(room + (1 if move == "right" else -1), 1), ROOMS)
        text += f"go {move}\n"
        if room == row["treasure"]:
            break
        text += f"room {room}\n"
    return text


def write(name, rows):
    with open(folder / name, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


starts = [start() for _ in range(2000)]
write("prompts.jsonl", starts)
write("sft.jsonl", [{"prompt": row["prompt"], "completion": walk(row)}
                    for row in starts])
