#include "models/rewards/python_reward.hpp"

namespace troupe::models {

namespace {

// the last line on stderr becomes the error that users see
constexpr const char* shim = R"python(
import importlib.util, json, math, os, sys, traceback

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the file prints is no answer
file, name = sys.argv[1:3]
sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
spec = importlib.util.spec_from_file_location("troupe_reward", file)
if spec is None:
    sys.exit(f"{file} is no Python file")
module = importlib.util.module_from_spec(spec)
sys.modules["troupe_reward"] = module
spec.loader.exec_module(module)
compute = getattr(module, name, None)
if not callable(compute):
    there = [key for key, part in vars(module).items()
             if getattr(part, "__module__", "") == "troupe_reward"
             and callable(part)]
    sys.exit(f"{file} has no function {name} (it has "
             f"{', '.join(there) or 'none'}); try reward.function")


def number(value, what):
    if isinstance(value, str) or not math.isfinite(float(value)):
        raise ValueError(f"expected {what} to be a number, got {value!r}")
    return float(value)


def answer_to(row):
    value = compute(row["data_source"], row["response"], row["ground_truth"],
                    row["extra_info"])
    if not isinstance(value, dict):
        return {"score": number(value, "the score")}
    extra = {key: number(part, key) for key, part in value.items()
             if key != "score" and isinstance(part, (bool, int, float))}
    return {"score": number(value["score"], "score"), "extra": extra}


def place_of(error):
    """FILE:LINE of the user's code where it was raised, or whose value is
    wrong."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames
           if os.path.abspath(frame.filename) == os.path.abspath(file)]
    code = getattr(compute, "__code__", None)
    line = own[-1] if own else code and code.co_firstlineno
    return f"{file}:{line}" if line else file


def name_of_log():
    """logs/NAME of the file that the traceback goes to, if it is one."""
    log = os.path.realpath("/proc/self/fd/2")
    return os.sep.join(log.split(os.sep)[-2:]) if os.path.isfile(log) else ""


def trouble_of(error):
    log = name_of_log()
    seen = f"; its traceback is in {log} of the run" if log else ""
    return f"{place_of(error)}: {type(error).__name__}: {error}{seen}"


print("ready", file=answers, flush=True)
for line in sys.stdin:
    row = json.loads(line)
    try:
        answer = answer_to(row)
    except Exception as error:
        traceback.print_exc()
        answer = {"error": trouble_of(error)}
    print(json.dumps({"id": row["id"], **answer}), file=answers, flush=True)
)python";

} // namespace

std::vector<std::string> python_reward_command(const std::string& file,
                                               const std::string& function) {
  return {"python3", "-c", shim, file, function};
}

} // namespace troupe::models
