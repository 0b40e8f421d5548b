// The program of a process that leads conversations by an async function.
#include "actors/user/python_conversation.hpp"
#include "actors/user/python_file.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {

namespace {

constexpr const char* leader_shim = R"python(
import inspect, math, struct

if not inspect.iscoroutinefunction(function):
    sys.exit(f"{here}: {name} leads conversations: expected an async function; "
             f"try async def {name}(model, sample)")
try:
    inspect.signature(function).bind(None, None)
except TypeError as error:
    sys.exit(f"{here}: {name} gets a model and a sample: {error}")

READS = {key: (kind, per) for key, kind, per in about["reads"]}
WRITES = {key: kind for key, kind, _ in about["writes"]}
RANGES = {"i32": (-2**31, 2**31 - 1), "u8": (0, 255)}


def value_read(key, value):
    kind, per = READS[key]
    if kind != "f32":
        return value
    return float(value) if per == "sample" else [float(x) for x in value]


def value_written(key, value):
    """The value as the key holds it; numpy's numbers are numbers, too."""
    kind = WRITES[key]
    if kind == "text":
        if not isinstance(value, str):
            raise TypeError(f"expected {key} to be a text, got {value!r:.80}")
        value.encode()
        return value
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise TypeError(f"expected {key} to be a finite number, got {value!r:.80}")
    if kind == "f32":
        struct.pack("<f", number)  # raises where it would be infinite
        return number
    low, high = RANGES[kind]
    if number != int(number) or not low <= number <= high:
        raise ValueError(f"expected {key} to be an integer from {low} to {high}, "
                         f"got {value!r:.80}")
    return int(number)


class Sample:
    """A conversation: what was read, said and appended, and the keys to set."""

    def __init__(self, begin):
        self.id, self.group = begin["sample"], begin["group"]
        self.turn = self.response = ""
        self.truncated = False
        self._values = {key: value_read(key, value)
                        for key, value in begin["values"].items()}
        self._written, self._appended = {}, ""

    def append(self, text):
        if not isinstance(text, str):
            raise TypeError(f"expected a text to append, got {text!r:.80}")
        text.encode()  # a text that no tokenizer reads is refused here
        self._appended += text

    def __getitem__(self, key):
        if key in self._written:
            return self._written[key]
        if key not in self._values:
            raise KeyError(f"{key}, which is not in reads of the call")
        return self._values[key]

    def __setitem__(self, key, value):
        if key not in WRITES:
            raise KeyError(f"{key}, which is not in writes of the call")
        self._written[key] = value_written(key, value)


class Turn:
    """The next turn of a model, which the process awaits."""

    def __init__(self, sample, max_tokens, role):
        self.sample, self.max_tokens, self.role = sample, max_tokens, role

    def words(self):
        words = {"max_tokens": self.max_tokens}
        return {**words, "role": self.role} if self.role else words

    def __await__(self):
        return (yield self)


class Model:
    def __init__(self, role=""):
        self._role = role

    def __call__(self, role):
        """Returns another role that speaks in the conversation."""
        if not isinstance(role, str):
            raise TypeError(f"expected the name of a role, got {role!r:.80}")
        return Model(role)

    async def extend(self, sample, max_tokens=0):
        """Returns the text of the model's next turn."""
        if not isinstance(sample, Sample):
            raise TypeError(f"expected the sample to extend, got {sample!r:.80}")
        if not isinstance(max_tokens, int) or not 0 <= max_tokens < 2**31:
            raise ValueError("expected max_tokens to be a number of tokens, or 0 "
                             f"for no limit, got {max_tokens!r:.80}")
        return await Turn(sample, max_tokens, self._role)


class Talk:
    def __init__(self, begin):
        self.sample = Sample(begin)
        self.coroutine = function(Model(), self.sample)

    def appended(self):
        text, self.sample._appended = self.sample._appended, ""
        return {"appended": text}

    def go_on(self, turn=None):
        """Runs to the next turn, or to the end; returns the answer."""
        if turn is not None:
            for word, value in turn.items():
                setattr(self.sample, word, value)
        try:
            awaited = self.coroutine.send(turn and turn["turn"])
        except StopIteration as end:
            return self.end(end.value)
        if not isinstance(awaited, Turn) or awaited.sample is not self.sample:
            self.coroutine.throw(TypeError(
                "expected to await model.extend of the sample that the function "
                f"got, got {awaited!r:.80}"))
        return {**self.appended(), **awaited.words()}

    def end(self, value):
        if value is not None and value is not self.sample:
            raise TypeError("expected keys to be set, as in sample[KEY] = value, "
                            f"got {value!r:.80} returned")
        missing = [key for key in WRITES if key not in self.sample._written]
        if missing:
            raise ValueError(f"expected {', '.join(missing)} to be set before the "
                             f"end; try sample[{missing[0]!r}] = ...")
        return {**self.appended(), "values": self.sample._written}


talks = {}


def begun(line):
    """Begins a conversation; one that was lost with its process comes to where
    it was."""
    talk = talks[line["id"]] = Talk(line["begin"])
    answer = talk.go_on()
    for said, turn in zip(line["said"], line["turns"]):
        if answer != said:
            raise RuntimeError(
                "its process was killed, and the conversation did not come to "
                f"the same place again: it said {said}, now {answer}")
        answer = talk.go_on(turn)
    return answer


def answer_to(line):
    if "begin" in line:
        return begun(line)
    talk = talks.get(line["id"])
    return talk.go_on(line["turn"]) if talk else {"forgotten": True}


print("ready", file=answers, flush=True)
for text in sys.stdin:
    line = json.loads(text)
    try:
        answer = answer_to(line)
    except Exception as error:
        traceback.print_exc()
        answer = {"error": trouble_of(error, here)}
    if "error" in answer or "values" in answer:
        talks.pop(line["id"], None)
    print(json.dumps(answer), file=answers, flush=True)
)python";

} // namespace

std::vector<std::string> python_conversation_command(const UserEntry& entry) {
  const nlohmann::json about = {{"reads", keys_json(entry.call.reads)},
                                {"writes", keys_json(entry.call.writes)}};
  return {"python3",
          "-c",
          python_file_loader("") + leader_shim,
          entry.python->function.file,
          entry.python->function.name,
          about.dump()};
}

} // namespace troupe::actors
