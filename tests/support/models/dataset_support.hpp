// Data sets of a few rows over a tokenizer whose tokens are letters.
#pragma once

#include "models/data/dataset.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/io_support.hpp"
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <string>
#include <vector>

namespace troupe::testing {

/// Returns a tokenizer with one token per character: '<' begins, '>' ends a
/// text, then a to z and space.
inline nlohmann::json letters_document() {
  nlohmann::json vocab = {{"<", 0}, {">", 1}, {"?", 2}, {" ", 3}};
  for (char c = 'a'; c <= 'z'; ++c)
    vocab[std::string(1, c)] = 10 + (c - 'a');
  const nlohmann::json document = {
    {"pre_tokenizer",
     {{"type", "Split"},
      {"pattern", {{"Regex", "[\\s\\S]"}}},
      {"behavior", "Isolated"}}},
    {"post_processor",
     {{"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<"}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"special_tokens", {{"<", {{"ids", {0}}}}}}}},
    {"decoder", {{"type", "Fuse"}}},
    {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "?"}}},
  };
  return document;
}

inline models::Tokenizer letters() {
  return models::Tokenizer::parse(letters_document().dump(),
                                  R"({"eos_token": ">"})", "letters");
}

class DatasetFile : public ::testing::Test {
protected:
  DatasetFile() { // what is made of rows is removed with them
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  models::DatasetOptions options(DataKind kind, const std::string& text) {
    write_text(folder_ / "rows.jsonl", text);
    models::DatasetOptions options;
    options.files = {folder_ / "rows.jsonl"};
    options.kind = kind;
    return options;
  }
  models::Dataset open(DataKind kind, const std::string& text) {
    return models::Dataset::open(options(kind, text), letters());
  }
  static std::string complaint(const models::DatasetOptions& options,
                               const models::DatasetOpening& opening = {}) {
    try {
      models::Dataset::open(options, letters(), opening);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no complaint";
  }
  template <class T = std::int32_t>
  static std::vector<T> packed(const net::Rows& rows, const char* key) {
    const auto span = rows.at(key).as<T>();
    return {span.begin(), span.end()};
  }

  TempFolder folder_;
};

} // namespace troupe::testing
