"""What a step of first light must say, and the aims of its figures, as one line each:

    exit 0                                the exit code
    says 2 GPUs                           a regular expression, anywhere in the output
    lacks not found                       the same, nowhere
    ms_token <= 2.0 on H100               a number of the JSON in the last line, on a GPU
                                          whose name has the word; elsewhere nothing is asked
    ms_token within 20 % of predicted     the number beside another one; where that one is
    bus_gb_s >= 0.9 of nccl_gb_s          missing nothing is asked
"""
import dataclasses
import re

COMPARED = re.compile(r"(\w+) (<=|>=) ([\d.]+(?:e[+-]?\d+)?)(?: on (\w+))?$")
SHARE = re.compile(r"(\w+) (<=|>=) ([\d.]+) of (\w+)$")
WITHIN = re.compile(r"(\w+) within ([\d.]+) % of (\w+)$")
EXIT = re.compile(r"exit (\d+)$")
WORDS = re.compile(r"(says|lacks) (.+)$")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A command that has ended."""
    code: int
    output: str
    numbers: dict  # of the JSON document in its last line, and `predicted`
    gpu: str = ""  # name of the GPU


@dataclasses.dataclass(frozen=True)
class Expectation:
    text: str

    def __post_init__(self):
        if not any(form.match(self.text) for form in (COMPARED, SHARE, WITHIN, EXIT, WORDS)):
            raise ValueError(f"not an expectation: {self.text!r}")

    def complaint(self, outcome):
        """Empty if it is met, or asks nothing of this GPU."""
        if found := EXIT.match(self.text):
            code = int(found[1])
            return "" if outcome.code == code else f"exit {outcome.code}, not {code}"
        # first: an expectation on a word may look like a comparison
        if found := WORDS.match(self.text):
            said = re.search(found[2], outcome.output) is not None
            return "" if said == (found[1] == "says") else \
                f"{'lacks' if found[1] == 'says' else 'says'} {found[2]!r}"
        if found := WITHIN.match(self.text):
            return self._apart(outcome, found[1], float(found[2]), found[3])
        if found := SHARE.match(self.text):
            name, sign, share, other = found.groups()
            beside = outcome.numbers.get(other)
            return "" if beside is None else \
                self._compared(outcome, name, sign, f"{float(share) * beside:.4g}")
        name, sign, limit, gpu = COMPARED.match(self.text).groups()
        if gpu and not re.search(rf"\b{gpu}", outcome.gpu):  # a GH200 is no H200
            return ""
        return self._compared(outcome, name, sign, limit)

    @staticmethod
    def _compared(outcome, name, sign, limit):
        number = outcome.numbers.get(name)
        if number is None:
            return f"no number {name}"
        met = number <= float(limit) if sign == "<=" else number >= float(limit)
        return "" if met else f"{name} {number:.4g}, not {sign} {limit}"

    @staticmethod
    def _apart(outcome, name, percent, other):
        number, beside = outcome.numbers.get(name), outcome.numbers.get(other)
        if beside is None:
            return ""  # no prediction for this GPU
        if number is None:
            return f"no number {name}"
        off = 100 * abs(number - beside) / abs(beside)
        return "" if off <= percent else f"{name} {number:.4g} is {off:.0f} % off {beside:.4g}"


def complaints(texts, outcome):
    return [said for text in texts if (said := Expectation(text).complaint(outcome))]
