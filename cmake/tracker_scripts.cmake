# Puts the scripts of examples/metrics into a C++ source:
# cmake -DEXAMPLE=folder -DOUT=file.cpp -P tracker_scripts.cmake
file(READ "${EXAMPLE}/to_wandb.py" to_wandb)
file(READ "${EXAMPLE}/to_mlflow.py" to_mlflow)
file(WRITE "${OUT}" "// Made by cmake/tracker_scripts.cmake from examples/metrics.
#include \"runtime/metrics/trackers.hpp\"

namespace troupe::runtime {

std::string tracker_script(const std::string& name) {
  if (name == \"to_wandb\")
    return R\"troupe_file(${to_wandb})troupe_file\";
  return R\"troupe_file(${to_mlflow})troupe_file\";
}

} // namespace troupe::runtime
")
