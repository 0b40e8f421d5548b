"""rows/: problems and solutions in the manner of GSM8K, made from sentences of ours:
`question` and `answer` with <<calculations>> and "#### number", and pairs of a right
and a wrong solution."""
import random

from common import fresh, write_lines

NAMES = ["Ada", "Ben", "Chloé", "Dmitri", "Eun", "Farid", "Greta", "Hiro"]
THINGS = ["lamps", "boats", "shells", "maps", "ropes", "bells", "nets", "flags"]


def dollars(number):
    return f"{number:,}"


def bought(chance):
    name, thing = chance.choice(NAMES), chance.choice(THINGS)
    count, price, paid = chance.randint(3, 60), chance.randint(2, 45), chance.randint(1, 9)
    cost = count * price
    rest = cost - paid
    question = (f"{name} buys {count} {thing} for ${price} each and has a voucher of ${paid}. "
                f"How many dollars does {name} pay?")
    lines = [f"The {thing} cost {count} * {price} = $<<{count}*{price}={cost}>>{dollars(cost)}.",
             f"With the voucher that is {cost} - {paid} = $<<{cost}-{paid}={rest}>>{dollars(rest)}."]
    return question, lines, rest


def shared(chance):
    name, other = chance.sample(NAMES, 2)
    each, people, more = chance.randint(4, 80), chance.randint(2, 9), chance.randint(1, 30)
    total = each * people
    left = total + more
    question = (f"{name} gives {each} shells to each of {people} friends and keeps {more}; "
                f"{other} gave none.  How many shells did {name} have?")
    lines = [f"The friends get {each}*{people}=<<{each}*{people}={total}>>{total} shells",
             f"With what is kept that is {total}+{more}=<<{total}+{more}={left}>>{left} shells"]
    return question, lines, left


def sailed(chance):
    name = chance.choice(NAMES)
    speed, hours, back = chance.randint(3, 25), chance.randint(2, 12), chance.randint(1, 3)
    way = speed * hours
    rest = way - back * speed
    question = (f"{name}’s boat makes {speed} km an hour. It sails {hours} hours out and "
                f"{back} back. How far from home is it now, in km?")
    lines = [f"Out it sails {speed}*{hours} = <<{speed}*{hours}={way}>>{way} km.",
             f"Back it comes {back}*{speed} = <<{back}*{speed}={back * speed}>>{back * speed} km.",
             f"So it is {way}-{back * speed} = <<{way}-{back * speed}={rest}>>{rest} km away."]
    return question, lines, rest


def loss_made(chance):
    name = chance.choice(NAMES)
    value = chance.randint(20, 900) * 100
    part = chance.choice([10, 20, 25, 50])
    lost = value * part // 100
    gone = -lost
    question = (f"{name} owns a shed worth ${dollars(value)}. A storm takes {part}% of its value. "
                f"By how many dollars does the value change?")
    lines = [f"The storm takes {value}*{part}/100 = $<<{value}*{part}/100={lost}>>{dollars(lost)}.",
             f"So the change is <<0-{lost}={gone}>>{gone} dollars."]
    return question, lines, gone


KINDS = [bought, shared, sailed, loss_made]


def make(out):
    folder, chance = fresh(out, "rows"), random.Random("rows")
    problems, pairs = [], []
    while len(problems) < 400:
        question, lines, number = chance.choice(KINDS)(chance)
        if any(question == old["question"] for old in problems):
            continue
        problems.append({"question": question, "answer": "\n".join([*lines, f"#### {number}"])})
        if len(problems) % 2 == 0:
            wrong = number + chance.choice([-7, -1, 1, 2, 10, 100])
            pairs.append({"prompt": question, "chosen": "\n".join([*lines, f"A: {number}"]),
                          "rejected": "\n".join([*lines[:-1], f"A: {wrong}"])})
    write_lines(folder / "problems.jsonl", problems)
    write_lines(folder / "pairs.jsonl", pairs)
    print(f"  {len(problems)} problems, {len(pairs)} pairs")
