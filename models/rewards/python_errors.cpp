#include "models/rewards/python_errors.hpp"

namespace troupe::models {

std::string python_errors() {
  return R"python(
import os, traceback


def place_of(error, here):
    """FILE:LINE of the user's code where it was raised, or whose value is
    wrong."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames
           if os.path.abspath(frame.filename) == os.path.abspath(file)]
    return f"{file}:{own[-1]}" if own else here


def name_of_log():
    """logs/NAME of the file that the traceback goes to, if it is one."""
    log = os.path.realpath("/proc/self/fd/2")
    return os.sep.join(log.split(os.sep)[-2:]) if os.path.isfile(log) else ""


def trouble_of(error, here):
    log = name_of_log()
    seen = f"; its traceback is in {log} of the run" if log else ""
    return f"{place_of(error, here)}: {type(error).__name__}: {error}{seen}"
)python";
}

std::string python_loader(const std::string& needs) {
  return python_errors() + R"python(
import importlib.util, json, os, sys, traceback

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the file prints is no answer
file, name = sys.argv[1:3]
)python" + needs
         + R"python(
sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
spec = importlib.util.spec_from_file_location("troupe_functions", file)
module = importlib.util.module_from_spec(spec)
sys.modules["troupe_functions"] = module
spec.loader.exec_module(module)
function = getattr(module, name, None)
code = getattr(function, "__code__", None)
here = f"{file}:{code.co_firstlineno}" if code else file
if not callable(function):
    sys.exit(f"{file} has no function {name}")
)python";
}

} // namespace troupe::models
