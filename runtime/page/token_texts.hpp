// Texts of the tokens in samples, for views that shade each token by a number:
// samples.jsonl has ids. Each id is returned once, so that a viewer of a long
// run gets few.
#pragma once

#include "models/text/tokenizer.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace troupe::runtime {

class TokenTexts {
public:
  explicit TokenTexts(RunFolder folder) : folder_(std::move(folder)) {}

  /// Returns {"ID": "text", ...} of the ids in lines of samples.jsonl that it
  /// has not returned before; empty if there are none, or as long as no
  /// tokenizer is found.
  std::string next(const std::string& lines);

private:
  bool find_tokenizer();

  RunFolder folder_;
  std::optional<models::Tokenizer> tokenizer_;
  std::set<std::int32_t> returned_;
};

} // namespace troupe::runtime
