// Qwen2: LLaMA with biases on queries, keys and values, which no key of its
// config.json mentions.
#include "config/model/families/qwen_window.hpp"

namespace troupe {

Family qwen2_family() {
  Family family;
  family.name = "qwen2";
  family.causal_class = "Qwen2ForCausalLM";
  family.classifier_class = "Qwen2ForSequenceClassification";
  family.keys.head_dim = "head_dim";
  family.defaults.kv_heads = 32;
  family.defaults.positions = 32768;
  family.traits.attention_bias = true;
  family.read = read_qwen_window;
  family.print = print_qwen_window;
  return family;
}

} // namespace troupe
