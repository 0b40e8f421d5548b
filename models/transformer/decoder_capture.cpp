// Passes of decoder.hpp as captured graphs. What changes from pass to pass is
// in device memory, so a graph serves all passes of its shape as long as what
// it points to stays where it is: through new weights, which are packed in
// place, and further generations over the same cache.
//
// A pass of tp ranks is captured with its sums, where these are work of
// streams. NCCL wants all ranks to launch graphs of one capture, or none to, so
// they meet before each pass: if something has moved on one of them, all
// capture anew.
#include "models/kernels/typed_tensor.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/decoder.hpp"

namespace troupe::models {

bool Decoder::captures() const {
  return capture_.recorder != nullptr;
}

void Decoder::compute_recorded(const PassWork& work, PassShape shape,
                               KvCache& cache, const RunContext& context) {
  if (work.draws && !peers_.alone())
    logits_.of_peers.reserve(cache.num_slots()
                             * peers_.share_of(shape_.vocab_size)
                             * (peers_.size() + 1));
  auto now = places(cache);
  if (!peers_.all_agree(now == capture_.places,
                        "graphs that are still valid")) {
    capture_.passes.clear();
    // A peer whose last call failed has a new decoder: all try as it does.
    capture_.is_refused = capture_.is_refused && peers_.alone();
  }
  capture_.places = std::move(now);
  capture_.group = context.groups.tp;
  shape.draws = work.draws;
  if (GraphCapture* known = capture_.passes.find(shape)) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      context.check(); // the same progress as of single launches
    return peers_.launch("decode pass", [known] { known->run(); });
  }
  compute(work, cache, peers_, context);
  if (capture_.is_refused)
    return;
  auto graph = capture_.recorder->record(
    [this, work, &cache] { compute(work, cache, peers_, RunContext{}); });
  capture_.is_refused = !peers_.all_captured(graph != nullptr);
  if (!capture_.is_refused)
    capture_.passes.add(shape, std::move(graph));
}

std::vector<std::uintptr_t> Decoder::places(KvCache& cache) {
  std::vector<std::uintptr_t> all{
    static_cast<std::uintptr_t>(cache.num_pages()),
    static_cast<std::uintptr_t>(cache.page_tokens()),
    static_cast<std::uintptr_t>(cache.pages_per_slot())};
  const auto add = [&](const void* place) {
    all.push_back(reinterpret_cast<std::uintptr_t>(place));
  };
  const auto add_tensors = [&](std::initializer_list<at::Tensor> tensors) {
    for (const at::Tensor& tensor : tensors)
      add(numbers_of(tensor).data());
  };
  const auto add_norms = [&](std::initializer_list<const Norm*> norms) {
    for (const Norm* norm : norms)
      add_tensors({norm->weight, norm->bias});
  };
  add(peers_.identity());
  add(cache.keys(0, 0, 0).data());
  add(cache.table());
  add(table_.keys());
  for (const TypedBlock* block : activations())
    add(block->data().data());
  for (const AlignedFloats* block : buffers())
    add(block->data());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& packed = layers_[i];
    for (const Prepared* one : {&packed.qkv, &packed.o, &packed.gate_up,
                                &packed.down, &packed.experts.router})
      add(*one ? (*one)->place() : nullptr);
    add(packed.qkv_bias.data());
    add(packed.gate_up_bias.data());
    const LayerWeights& w = weights_.layers[i];
    add_tensors({w.o_bias, w.down_bias, w.qk_norms.q, w.qk_norms.k});
    if (packed.experts.places) { // all are as far from each other as these two
      add_tensors({w.moe.correction});
      const ExpertPlaces& places = *packed.experts.places;
      for (const auto* of : {&places.gate_up, &places.down}) {
        add(of->front().data());
        add(of->back().data());
      }
    }
    add_norms(
      {&w.input_norm, &w.post_norm, &w.behind_attention, &w.behind_mlp});
    if (const RopeTable* rope = rope_.of(w.positions.rope)) {
      add(rope->cos(0));
      add(rope->sin(0));
    }
  }
  add_tensors({weights_.embedding, weights_.positions});
  add_norms({&weights_.final_norm});
  add(head_ ? head_->place() : nullptr);
  return all;
}

} // namespace troupe::models
