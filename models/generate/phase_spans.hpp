// Trace spans of a generation, one per phase.
#pragma once

#include "config/trace/trace.hpp"
#include "models/parallel/run_context.hpp"

#include <cstddef>

namespace troupe::models::internal {

/// Draws the spans "prefill" while prompts are prefilled and "decode" in
/// between.
class PhaseSpans {
public:
  explicit PhaseSpans(const RunContext& context) : context_(context) {}
  ~PhaseSpans() {
    leave();
  }
  PhaseSpans(const PhaseSpans&) = delete;
  PhaseSpans& operator=(const PhaseSpans&) = delete;

  void enter(bool prefill, std::size_t num_sequences) {
    static const trace::Name names[]
      = {trace::name("decode"), trace::name("prefill")};
    static const trace::Name under_way = trace::name("sequences");
    trace::counter(context_.track, under_way,
                   static_cast<double>(num_sequences));
    const trace::Name next = names[prefill ? 1 : 0];
    if (is_open_ && open_ == next)
      return;
    leave();
    trace::begin(context_.track, next, context_.step.value);
    open_ = next;
    is_open_ = true;
  }
  void leave() {
    if (is_open_)
      trace::end(context_.track, open_);
    is_open_ = false;
  }

private:
  const RunContext& context_;
  trace::Name open_{};
  bool is_open_ = false;
};

} // namespace troupe::models::internal
