#!/usr/bin/env python3
"""Writes word problems of one step of arithmetic, for a small model to learn on.

usage: problems.py [--rows N] [--seed N] [--without FILE] [--out FILE]

A row is {"messages": [{"role": "user", "content": ..}], "answer": "12"}. With
--without, no problem of that file (an earlier output) is repeated."""
import argparse
import json
import random

NAMES = ["Ada", "Ben", "Carla", "Deniz", "Emre", "Fatou", "Goran", "Hana", "Ivo", "Jun",
         "Kofi", "Lena", "Mira", "Noor", "Oskar", "Priya", "Rosa", "Sami", "Tala", "Yuki"]
THINGS = ["apples", "books", "coins", "eggs", "flowers", "keys", "lamps", "marbles", "pears",
          "pencils", "plates", "shells", "stamps", "stickers", "tickets"]
PLACES = ["bags", "baskets", "boxes", "drawers", "jars", "trays"]

# What happens, and the operation that answers it.
SUMS = ["{a} has {x} {thing}. {b} gives {a} {y} more. How many {thing} does {a} have now?",
        "{a} found {x} {thing} on Monday and {y} on Tuesday. How many {thing} is that in all?",
        "There are {x} {thing} on the table and {y} on the shelf. How many {thing} are there?",
        "{a} has {x} {thing} and {b} has {y}. How many {thing} do they have together?"]
DIFFERENCES = ["{a} has {x} {thing} and gives {y} of them to {b}. How many {thing} are left?",
               "{a} had {x} {thing} and lost {y}. How many {thing} does {a} still have?",
               "{a} needs {x} {thing} and has {y}. How many {thing} are missing?",
               "{a} has {x} {thing}, {b} has {y}. How many more {thing} does {a} have?"]
PRODUCTS = ["{a} has {x} {place} with {y} {thing} in each. How many {thing} is that?",
            "{a} buys {y} {thing} a day for {x} days. How many {thing} does {a} buy?",
            "One of the {place} holds {y} {thing}. How many {thing} do {x} {place} hold?"]
LARGEST_TERM, LARGEST_FACTOR = 20, 9
ASK = " Answer with the number alone."


def problem(rng):
    a, b = rng.sample(NAMES, 2)
    words = {"a": a, "b": b, "thing": rng.choice(THINGS), "place": rng.choice(PLACES)}
    kind = rng.randrange(3)
    if kind == 2:
        x, y = rng.randint(2, LARGEST_FACTOR), rng.randint(2, LARGEST_FACTOR)
        text, answer = rng.choice(PRODUCTS), x * y
    else:
        x, y = rng.randint(2, LARGEST_TERM), rng.randint(2, LARGEST_TERM)
        if kind == 1:
            x, y = x + y, y
        text, answer = rng.choice((SUMS, DIFFERENCES)[kind]), (x - y if kind else x + y)
    return text.format(x=x, y=y, **words), answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without")
    parser.add_argument("--out", default="word_problems.jsonl")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    known = set()
    if args.without:
        with open(args.without, encoding="utf-8") as file:
            known = {json.loads(line)["messages"][0]["content"] for line in file}
    with open(args.out, "w", encoding="utf-8") as file:
        written = 0
        while written < args.rows:
            text, answer = problem(rng)
            if text + ASK in known:
                continue
            known.add(text + ASK)
            row = {"messages": [{"role": "user", "content": text + ASK}], "answer": str(answer)}
            file.write(json.dumps(row) + "\n")
            written += 1


if __name__ == "__main__":
    main()
