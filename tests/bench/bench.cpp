#include "bench.hpp"

#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"

#include "tests/support/places.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>

namespace troupe::bench {

nlohmann::json read_card(const Options& options) {
  std::filesystem::path file = options.cards;
  if (file.empty())
    file = support::source_folder() / "tests/bench/cards.json";
  std::ifstream in(file);
  if (!in)
    throw ConfigError({.place = {"command line", 0},
                       .path = "--cards",
                       .expected = "a file of cards",
                       .got = "'" + file.string() + "'",
                       .hint = "--cards FILE"});
  const auto document = nlohmann::json::parse(in);
  const auto& cards = document.at("cards");
  if (!cards.contains(options.card))
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--card",
       .expected = "a card of " + file.string(),
       .got = "'" + options.card + "'",
       .hint = "tiny, small, experts, medium, 1b, 8b or qwen3_0.6b"});
  return cards.at(options.card);
}

ModelShape shape_of(const nlohmann::json& card) {
  const auto& model = card.at("model");
  ModelShape shape;
  shape.family = model.value("model_type", "llama");
  shape.vocab_size = model.at("vocab_size");
  shape.hidden_size = model.at("hidden_size");
  shape.num_layers = model.at("num_hidden_layers");
  shape.num_heads = model.at("num_attention_heads");
  shape.num_kv_heads = model.at("num_key_value_heads");
  shape.head_dim = model.value("head_dim", shape.hidden_size / shape.num_heads);
  if (shape.family == "qwen3")
    shape.qk_norm = QkNormScope::head;
  shape.intermediate_size = model.at("intermediate_size");
  shape.max_positions = model.at("max_position_embeddings");
  shape.norm_eps = 1e-5;
  shape.tied_embeddings = model.value("tie_word_embeddings", false);
  if (card.contains("experts")) {
    const auto& experts = card.at("experts");
    shape.family = "qwen3_moe";
    shape.qk_norm = QkNormScope::head;
    shape.experts = {.count = experts.at("num_experts"),
                     .per_token = experts.at("num_experts_per_tok"),
                     .width = experts.at("moe_intermediate_size")};
  }
  return shape;
}

ModelShape shape_of(const nlohmann::json& card, const Options& options) {
  ModelShape shape = shape_of(card);
  if (options.sizes.layers > 0)
    shape.num_layers = options.sizes.layers;
  return shape;
}

std::int64_t size_or(int given, const nlohmann::json& of_card) {
  return given > 0 ? given : of_card.get<std::int64_t>();
}

DType dtype_of(const Options& options) {
  if (options.dtype == "fp32")
    return DType::f32;
  if (options.dtype == "bf16")
    return DType::bf16;
  throw ConfigError({.place = {"command line", 0},
                     .path = "--dtype",
                     .expected = "fp32 or bf16",
                     .got = "'" + options.dtype + "'",
                     .hint = ""});
}

double seconds_of(const Options& options, const std::function<void()>& work) {
  const auto now = [&] {
    timespec time{};
    clock_gettime(
      options.cpu_clock ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec)
           + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

nlohmann::json summary(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return {{"median", numbers[numbers.size() / 2]},
          {"min", numbers.front()},
          {"max", numbers.back()},
          {"n", numbers.size()}};
}

void add_headline(nlohmann::json& document, const std::string& name,
                  std::vector<double> numbers) {
  const auto all = summary(std::move(numbers));
  document[name] = all["median"];
  document[name + "_min"] = all["min"];
  document[name + "_max"] = all["max"];
  document["n"] = all["n"];
}

} // namespace troupe::bench
