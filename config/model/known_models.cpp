#include "config/model/known_models.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace troupe {

namespace {

// Where the numbers were read, on 2026-11-26. Each is that of a config.json;
// what quotes it was compared with it by the number of parameters that follows
// (KnownModels.HaveTheParametersOfTheirCards).
constexpr const char* litgpt
  = "config.json, as litgpt/config.py of Lightning-AI/litgpt 0006c97 quotes it";
constexpr const char* quoted = "config.json, as public code quotes it";
constexpr const char* of_base
  = "that of the Qwen2.5 model from which its card says that it was trained";
constexpr const char* recalled
  = "recalled, not looked up; agrees with its number of parameters";

/// Numbers in the order of a config.json.
struct Sizes {
  std::int64_t vocab, hidden, layers, heads, kv_heads, inner;
  std::int64_t head_dim = 0; ///< 0: hidden / heads
};

ModelShape llama_like(const char* family, const Sizes& sizes,
                      std::int64_t positions, bool tied) {
  ModelShape shape;
  shape.family = family;
  shape.vocab_size = sizes.vocab;
  shape.hidden_size = sizes.hidden;
  shape.num_layers = sizes.layers;
  shape.num_heads = sizes.heads;
  shape.num_kv_heads = sizes.kv_heads;
  shape.head_dim
    = sizes.head_dim > 0 ? sizes.head_dim : sizes.hidden / sizes.heads;
  shape.intermediate_size = sizes.inner;
  shape.max_positions = positions;
  shape.tied_embeddings = tied;
  shape.stored_dtype = DType::bf16;
  return shape;
}

ModelShape llama(const Sizes& sizes, std::int64_t positions,
                 bool tied = false) {
  return llama_like("llama", sizes, positions, tied);
}

ModelShape phi3(const Sizes& sizes, std::int64_t positions, bool tied = false) {
  return llama_like("phi3", sizes, positions, tied);
}

ModelShape qwen2(const Sizes& sizes, std::int64_t positions,
                 bool tied = false) {
  auto shape = llama_like("qwen2", sizes, positions, tied);
  shape.attention_bias = true;
  return shape;
}

ModelShape qwen3(Sizes sizes, bool tied = false) {
  sizes.head_dim = 128;
  auto shape = llama_like("qwen3", sizes, 40960, tied);
  shape.qk_norm = QkNormScope::head;
  return shape;
}

/// `sizes.inner` is that of one expert.
ModelShape experts(const char* family, ModelShape shape, std::int64_t count,
                   std::int64_t a_token) {
  shape.family = family;
  shape.experts.count = count;
  shape.experts.per_token = a_token;
  shape.experts.width = shape.intermediate_size;
  return shape;
}

ModelShape gemma(const char* family, const Sizes& sizes) {
  auto shape = llama_like(family, sizes, 8192, /*tied=*/true);
  shape.norm = NormKind::rms_one_plus;
  shape.activation = Activation::gelu_tanh;
  shape.scaled_embedding = true;
  if (std::string_view(family) == "gemma2")
    shape.norm_placement = NormPlacement::both;
  return shape;
}

/// OPT has GPT-2's layers: learned positions, biases, an MLP without a gate.
ModelShape opt(const Sizes& sizes) {
  auto shape = llama_like("gpt2", sizes, 2050, /*tied=*/true);
  shape.norm = NormKind::layer;
  shape.activation = Activation::gelu_tanh;
  shape.gated_mlp = false;
  shape.learned_positions = true;
  shape.attention_bias = shape.output_bias = shape.mlp_bias = true;
  return shape;
}

std::vector<KnownModel> qwen_models() {
  constexpr bool tied = true;
  return {
    {"Qwen/Qwen2-0.5B", 0.494,
     qwen2({151936, 896, 24, 14, 2, 4864}, 131072, tied), quoted},
    {"Qwen/Qwen2-1.5B", 1.544,
     qwen2({151936, 1536, 28, 12, 2, 8960}, 131072, tied), recalled},
    {"Qwen/Qwen2-7B", 7.616, qwen2({152064, 3584, 28, 28, 4, 18944}, 131072),
     quoted},
    {"Qwen/Qwen2-72B", 72.71, qwen2({152064, 8192, 80, 64, 8, 29568}, 131072),
     quoted},
    {"Qwen/Qwen2.5-0.5B", 0.494,
     qwen2({151936, 896, 24, 14, 2, 4864}, 32768, tied), litgpt},
    {"Qwen/Qwen2.5-1.5B", 1.544,
     qwen2({151936, 1536, 28, 12, 2, 8960}, 131072, tied), litgpt},
    {"Qwen/Qwen2.5-3B", 3.086,
     qwen2({151936, 2048, 36, 16, 2, 11008}, 32768, tied), litgpt},
    {"Qwen/Qwen2.5-7B", 7.616, qwen2({152064, 3584, 28, 28, 4, 18944}, 131072),
     litgpt},
    {"Qwen/Qwen2.5-14B", 14.77, qwen2({152064, 5120, 48, 40, 8, 13824}, 131072),
     litgpt},
    {"Qwen/Qwen2.5-32B", 32.76, qwen2({152064, 5120, 64, 40, 8, 27648}, 131072),
     litgpt},
    {"Qwen/Qwen2.5-72B", 72.71, qwen2({152064, 8192, 80, 64, 8, 29568}, 131072),
     litgpt},
    {"Qwen/Qwen2.5-Math-1.5B", 1.544,
     qwen2({151936, 1536, 28, 12, 2, 8960}, 4096, tied), litgpt},
    {"Qwen/Qwen2.5-Math-7B", 7.616,
     qwen2({152064, 3584, 28, 28, 4, 18944}, 4096), litgpt},
    {"Qwen/Qwen2.5-Coder-1.5B", 1.544,
     qwen2({151936, 1536, 28, 12, 2, 8960}, 32768, tied), litgpt},
    {"Qwen/Qwen2.5-Coder-7B", 7.616,
     qwen2({152064, 3584, 28, 28, 4, 18944}, 32768), litgpt},
    {"Qwen/Qwen2.5-Coder-32B", 32.76,
     qwen2({152064, 5120, 64, 40, 8, 27648}, 32768), litgpt},
    {"Qwen/QwQ-32B", 32.76, qwen2({152064, 5120, 64, 40, 8, 27648}, 131072),
     litgpt},
    {"Qwen/Qwen3-0.6B", 0.596, qwen3({151936, 1024, 28, 16, 8, 3072}, tied),
     litgpt},
    {"Qwen/Qwen3-1.7B", 1.721, qwen3({151936, 2048, 28, 16, 8, 6144}, tied),
     litgpt},
    {"Qwen/Qwen3-4B", 4.022, qwen3({151936, 2560, 36, 32, 8, 9728}, tied),
     litgpt},
    {"Qwen/Qwen3-8B", 8.191, qwen3({151936, 4096, 36, 32, 8, 12288}), litgpt},
    {"Qwen/Qwen3-14B", 14.77, qwen3({151936, 5120, 40, 40, 8, 17408}), litgpt},
    {"Qwen/Qwen3-32B", 32.76, qwen3({151936, 5120, 64, 64, 8, 25600}), litgpt},
    {"Qwen/Qwen3-30B-A3B", 30.53,
     experts("qwen3_moe", qwen3({151936, 2048, 48, 32, 4, 768}), 128, 8),
     litgpt},
    {"Qwen/Qwen3-235B-A22B", 235.1,
     experts("qwen3_moe", qwen3({151936, 4096, 94, 64, 4, 1536}), 128, 8),
     litgpt},
  };
}

std::vector<KnownModel> llama_models() {
  constexpr bool tied = true;
  return {
    {"meta-llama/Llama-2-7b", 6.738,
     llama({32000, 4096, 32, 32, 32, 11008}, 4096), litgpt},
    {"meta-llama/Llama-2-13b", 13.02,
     llama({32000, 5120, 40, 40, 40, 13824}, 4096), litgpt},
    {"meta-llama/Llama-2-70b", 68.98,
     llama({32000, 8192, 80, 64, 8, 28672}, 4096), litgpt},
    {"meta-llama/Llama-3-8B", 8.030,
     llama({128256, 4096, 32, 32, 8, 14336}, 8192), litgpt},
    {"meta-llama/Llama-3-70B", 70.55,
     llama({128256, 8192, 80, 64, 8, 28672}, 8192), litgpt},
    {"meta-llama/Llama-3.1-8B", 8.030,
     llama({128256, 4096, 32, 32, 8, 14336}, 131072), litgpt},
    {"meta-llama/Llama-3.1-70B", 70.55,
     llama({128256, 8192, 80, 64, 8, 28672}, 131072), litgpt},
    {"meta-llama/Llama-3.1-405B", 405.9,
     llama({128256, 16384, 126, 128, 8, 53248}, 131072), litgpt},
    {"meta-llama/Llama-3.2-1B", 1.236,
     llama({128256, 2048, 16, 32, 8, 8192}, 131072, tied), litgpt},
    {"meta-llama/Llama-3.2-3B", 3.213,
     llama({128256, 3072, 28, 24, 8, 8192}, 131072, tied), litgpt},
    {"meta-llama/Llama-3.3-70B", 70.55,
     llama({128256, 8192, 80, 64, 8, 28672}, 131072), litgpt},
    {"TinyLlama/TinyLlama-1.1B", 1.100,
     llama({32000, 2048, 22, 32, 4, 5632}, 2048), litgpt},
    {"HuggingFaceTB/SmolLM2-135M", 0.135,
     llama({49152, 576, 30, 9, 3, 1536}, 8192, tied), litgpt},
    {"HuggingFaceTB/SmolLM2-360M", 0.362,
     llama({49152, 960, 32, 15, 5, 2560}, 8192, tied), litgpt},
    {"HuggingFaceTB/SmolLM2-1.7B", 1.711,
     llama({49152, 2048, 24, 32, 32, 8192}, 8192, tied), litgpt},
    {"microsoft/phi-4", 14.66, phi3({100352, 5120, 40, 40, 10, 17920}, 16384),
     litgpt},
    {"microsoft/Phi-3-mini-4k", 3.821,
     phi3({32064, 3072, 32, 32, 32, 8192}, 4096), litgpt},
    {"microsoft/Phi-4-mini", 3.836,
     phi3({200064, 3072, 32, 24, 8, 8192}, 131072, tied), litgpt},
  };
}

std::vector<KnownModel> other_models() {
  return {
    {"mistralai/Mistral-7B-v0.1", 7.242,
     llama({32000, 4096, 32, 32, 8, 14336}, 32768), litgpt},
    {"mistralai/Mistral-7B-v0.3", 7.248,
     llama({32768, 4096, 32, 32, 8, 14336}, 32768), litgpt},
    {"mistralai/Mistral-Small-24B-2501", 23.57,
     llama({131072, 5120, 40, 32, 8, 32768, 128}, 32768), litgpt},
    {"mistralai/Mistral-Large-2407", 122.6,
     llama({32768, 12288, 88, 96, 8, 28672}, 32768), litgpt},
    {"mistralai/Mixtral-8x7B-v0.1", 46.70,
     experts("mixtral", llama({32000, 4096, 32, 32, 8, 14336}, 32768), 8, 2),
     litgpt},
    {"mistralai/Mixtral-8x22B-v0.1", 140.6,
     experts("mixtral", llama({32768, 6144, 56, 48, 8, 16384}, 65536), 8, 2),
     litgpt},
    {"deepseek-ai/deepseek-llm-7b", 6.910,
     llama({102400, 4096, 30, 32, 32, 11008}, 4096), quoted},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1.777,
     qwen2({151936, 1536, 28, 12, 2, 8960}, 131072), of_base},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7.616,
     qwen2({152064, 3584, 28, 28, 4, 18944}, 131072), of_base},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 14.77,
     qwen2({152064, 5120, 48, 40, 8, 13824}, 131072), of_base},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 32.76,
     qwen2({152064, 5120, 64, 40, 8, 27648}, 131072), of_base},
    {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 8.030,
     llama({128256, 4096, 32, 32, 8, 14336}, 131072), litgpt},
    {"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", 70.55,
     llama({128256, 8192, 80, 64, 8, 28672}, 131072), litgpt},
    {"google/gemma-2b", 2.506,
     gemma("gemma", {256000, 2048, 18, 8, 1, 16384, 256}), litgpt},
    {"google/gemma-7b", 8.538,
     gemma("gemma", {256000, 3072, 28, 16, 16, 24576, 256}), litgpt},
    {"google/gemma-2-2b", 2.614,
     gemma("gemma2", {256000, 2304, 26, 8, 4, 9216, 256}), litgpt},
    {"google/gemma-2-9b", 9.242,
     gemma("gemma2", {256000, 3584, 42, 16, 8, 14336, 256}), litgpt},
    {"google/gemma-2-27b", 27.23,
     gemma("gemma2", {256000, 4608, 46, 32, 16, 36864, 128}), litgpt},
    {"facebook/opt-1.3b", 1.316, opt({50272, 2048, 24, 32, 32, 8192}), quoted},
    {"facebook/opt-6.7b", 6.658, opt({50272, 4096, 32, 32, 32, 16384}), quoted},
    {"facebook/opt-13b", 12.85, opt({50272, 5120, 40, 40, 40, 20480}), quoted},
    {"facebook/opt-30b", 29.97, opt({50272, 7168, 48, 56, 56, 28672}), quoted},
    {"facebook/opt-66b", 65.72, opt({50272, 9216, 64, 72, 72, 36864}),
     recalled},
    {"openai-community/gpt2", 0.124,
     [] {
       auto shape = opt({50257, 768, 12, 12, 12, 3072});
       shape.max_positions = 1024;
       return shape;
     }(),
     recalled},
  };
}

/// Returns lower-case letters and digits of a name, without what does not
/// change a shape: who published it, "-Instruct", "-Base", a date.
std::string bare_name(std::string_view name) {
  while (name.ends_with('/'))
    name.remove_suffix(1);
  const auto slash = name.rfind('/');
  if (slash != name.npos)
    name.remove_prefix(slash + 1);
  std::string text;
  for (const char letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.')
      text
        += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// Words that follow a model's name where its shape stays the same.
bool keeps_shape(std::string_view rest) {
  constexpr auto words = std::to_array<std::string_view>(
    {"instruct", "base",    "chat",    "hf",     "it",        "thinking",
     "sft",      "mixture", "rm",      "dpo",    "rl",        "zero",
     "2507",     "1m",      "preview", "reward", "700k",      "v0.1",
     "v0.2",     "v0.3",    "v1.0",    "math",   "reasoning", "plus",
     "3t",       "2411",    "model",   "grpo",   "ppo"});
  while (!rest.empty()) {
    const auto word = std::ranges::find_if(
      words, [&](std::string_view text) { return rest.starts_with(text); });
    if (word == words.end())
      return false;
    rest.remove_prefix(word->size());
  }
  return true;
}

/// Names that say nothing of the model that they were trained from.
struct Alias {
  std::string_view name; ///< bare
  std::string_view of;
};
constexpr auto aliases = std::to_array<Alias>({
  {"fsfairxgemma2rmv0.1", "google/gemma-2-9b"},
  {"fsfairxllama3rmv0.1", "meta-llama/Llama-3-8B"},
  {"skyworkrewardllama3.18b", "meta-llama/Llama-3.1-8B"},
  {"skyworkrewardllama3.18bv0.2", "meta-llama/Llama-3.1-8B"},
  {"skyworkrewardv2llama3.18b", "meta-llama/Llama-3.1-8B"},
  {"skyworkrewardv2llama3.18b40m", "meta-llama/Llama-3.1-8B"},
  {"skyworkrewardv2llama3.21b", "meta-llama/Llama-3.2-1B"},
  {"skyworkrewardv2llama3.23b", "meta-llama/Llama-3.2-3B"},
  {"skyworkrewardv2qwen30.6b", "Qwen/Qwen3-0.6B"},
  {"skyworkrewardv2qwen31.7b", "Qwen/Qwen3-1.7B"},
  {"skyworkrewardv2qwen34b", "Qwen/Qwen3-4B"},
  {"skyworkrewardv2qwen38b", "Qwen/Qwen3-8B"},
  {"deepseekmath7brl", "deepseek-ai/deepseek-llm-7b"},
  {"deepseekmath7binstruct", "deepseek-ai/deepseek-llm-7b"},
  {"deepseekr10528qwen38b", "Qwen/Qwen3-8B"},
  {"deepscaler1.5bpreview", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"},
  // their rows end with a version, before which "-Instruct" stands
  {"mistral7binstructv0.1", "mistralai/Mistral-7B-v0.1"},
  {"mistral7bv0.2", "mistralai/Mistral-7B-v0.1"},
  {"mistral7binstructv0.2", "mistralai/Mistral-7B-v0.1"},
  {"mistral7binstructv0.3", "mistralai/Mistral-7B-v0.3"},
  {"mistralsmall24binstruct2501", "mistralai/Mistral-Small-24B-2501"},
  {"mistrallargeinstruct2407", "mistralai/Mistral-Large-2407"},
  {"mixtral8x7binstructv0.1", "mistralai/Mixtral-8x7B-v0.1"},
  {"mixtral8x22binstructv0.1", "mistralai/Mixtral-8x22B-v0.1"},
  {"smollm2", "HuggingFaceTB/SmolLM2-1.7B"},
});

const KnownModel* model_of_table(std::string_view name) {
  const auto found
    = std::ranges::find_if(known_models(), [&](const KnownModel& model) {
        return model.name == name;
      });
  return found == known_models().end() ? nullptr : &*found;
}

} // namespace

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> models = [] {
    std::vector<KnownModel> all;
    for (auto part : {qwen_models(), llama_models(), other_models()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return models;
}

const KnownModel* find_known_model(std::string_view name) {
  auto bare = bare_name(name);
  if (bare.starts_with("metallama")) // Meta-Llama-3-8B
    bare.erase(0, 4);
  for (const auto& alias : aliases)
    if (bare == alias.name)
      return model_of_table(alias.of);
  // the longest name that it starts with: Qwen2.5-7B-Instruct, not Qwen2.5-7
  const KnownModel* best = nullptr;
  std::size_t length = 0;
  for (const auto& model : known_models()) {
    const auto known = bare_name(model.name);
    if (known.size() > length && bare.starts_with(known)
        && keeps_shape(std::string_view(bare).substr(known.size()))) {
      best = &model;
      length = known.size();
    }
  }
  return best;
}

} // namespace troupe
