// Code of a workflow file that is written in Python: `function: FILE.py:NAME`,
// and `fn: FILE.py:NAME` of a loss, or of a generation whose conversations an
// async function leads. A C++ function's types say what its keys
// hold; here `writes` says it, and a table has the keys of built-in calls. The
// file is read for its definitions and never run: planning starts no program of
// the user's.
#pragma once

#include "config/base/error.hpp"

#include "troupe/key.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct YamlNode;
struct FileCall;

/// The part of a call in a file that only one in Python has.
struct PythonCall {
  std::string scope = "batch"; ///< of a function: sample | group | batch
  std::vector<KeyInfo> writes = {};
  int processes = 1; ///< of a function or a leader, in each worker
  /// Outputs of the model that a loss gets: logprobs, entropy, values, scores;
  /// empty: those of the role's head.
  std::vector<std::string> outputs = {};
  std::string mean_over = {}; ///< of a loss: its name of a key; "": tokens
};

/// The two parts of FILE.py:NAME.
struct PythonFunction {
  std::string file;
  std::string name;
};

/// Returns whether the name of a call's code is FILE.py:NAME.
bool is_python_function(std::string_view fn);
PythonFunction python_function(const std::string& fn);

/// Returns what a key of built-in calls or of data sets holds; nullopt: none of
/// them.
std::optional<KeyInfo> known_key(std::string_view name);

/// Reads what only a call in Python has. Throws ConfigError, also where another
/// call has such a key.
void read_python_call(const YamlNode& node, const std::string& path,
                      FileCall& call);
/// Returns the key of a call that names its code: function or fn.
const char* code_key(const FileCall& call);
/// Throws ConfigError unless the function's file is there and defines it, async
/// if it leads conversations.
void check_python_function(const FileCall& call, const Place& place);

} // namespace troupe
