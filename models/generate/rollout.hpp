// One model's part in the loop of a generation (models/generate/rounds.hpp):
// selects the tokens of a pass through the model, of the sequences that
// admission.hpp has in the cache, and the sequences whose next token is drawn.
// The slot of a sequence whose turn has ended goes to the next one, or is kept
// for its next turn until another needs it.
#pragma once

#include "models/generate/admission.hpp"
#include "models/generate/device_draw.hpp"
#include "models/generate/phase_spans.hpp"
#include "models/generate/sampler.hpp"
#include "models/generate/step_in_flight.hpp"
#include "models/generate/turns.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/decoder.hpp"

#include <map>
#include <optional>

namespace troupe::models::internal {

/// A micro-group of sequences that goes through the model by itself. A pipeline
/// has one per stage, so that all stages work at the same time: the ring.
struct Lane : Admission {
  std::vector<DecodeToken> tokens;      ///< in this pass
  std::vector<Sequence*> due;           ///< sequences that draw after this pass
  std::vector<std::int64_t> due_tokens; ///< their last tokens
  std::vector<DrawKey> keys;            ///< one each, if the device draws
  std::vector<DrawnToken> drawn;        ///< one each
  std::vector<std::int32_t> masks;      ///< [due, 1 + top_k] how many, then ids
  std::vector<std::int32_t> experts;    ///< [due, W] that due tokens went to
  bool drawing = false; ///< the last stage draws; tokens not received yet
  StepInFlight flight;  ///< the last pass, if the host runs ahead

  bool finished() const {
    return !drawing && waiting.empty() && active.empty();
  }
  std::int64_t token_count() const {
    return static_cast<std::int64_t>(tokens.size());
  }
  std::size_t drawn_bytes() const {
    return drawn.size() * sizeof(DrawnToken);
  }
  std::size_t mask_bytes() const {
    return masks.size() * sizeof(std::int32_t);
  }
  std::size_t expert_bytes() const {
    return experts.size() * sizeof(std::int32_t);
  }
};

/// Moment at which the first turns of sequences begin.
enum class FirstTurn : std::uint8_t { now, when_asked };

class Rollout {
public:
  /// Keeps references to all arguments.
  Rollout(Decoder& decoder, KvCache& cache, std::int64_t vocab_size,
          const GenerateOptions& options, const RunContext& context);

  /// Takes the sequences, which must outlive it: each has one turn that begins
  /// now, or the turns that it is asked for.
  void begin(std::vector<Sequence>& sequences, FirstTurn first,
             OnEnded on_ended);
  /// Begins a requested turn; the prefix that the sequence had before and still
  /// has counts as cached.
  void ask(Turn& turn);
  /// Ends the requests: slots of ended turns are free from now on.
  void end_asking() {
    talks_.open = false;
  }
  /// Runs one pass of each lane.
  void round(PhaseSpans& spans);
  bool finished() const;

  std::uint64_t fed_tokens() const {
    return fed_tokens_;
  }

private:
  /// Who draws tokens.
  struct Draws {
    std::optional<DrawFilters> on_device; ///< none: the host
    std::vector<Sampler> on_host;         ///< one per thread
    bool ahead = false; ///< passes are launched before their tokens are known
  };

  /// Sequences of samples whose turns are asked for.
  struct Talks {
    std::vector<Sequence>* sequences = nullptr;
    std::map<SampleId, std::size_t> index; ///< sample's sequence
    bool open = false;                     ///< more turns may be asked for
  };

  void deal(std::vector<Sequence>& sequences);
  void pass(Lane& lane, PhaseSpans& spans, const OnEnded& on_ended);
  void learn(Lane& lane, const OnEnded& on_ended);
  bool gather(Lane& lane) const;
  void make_room(Lane& lane) const;
  PassDraw device_draw(Lane& lane) const;
  void draw(Lane& lane);
  void run_ahead(Lane& lane, const OnEnded& on_ended);
  void finish_step(Lane& lane, const OnEnded& on_ended);
  void draw_on_host(Lane& lane);
  void pass_on(Lane& lane) const;
  DrawName name_of(const Sequence& s) const;
  void take_drawn(Lane& lane, const OnEnded& on_ended);
  void take_kept(const Lane& lane, std::size_t i, TokenRecord& to) const;
  void count_experts();
  void collect_experts(Lane& lane) const;
  void take_experts(const Lane& lane, std::size_t i, Sequence& s) const;
  std::size_t kept_width() const;

  Decoder& decoder_;
  KvCache& cache_;
  std::int64_t vocab_size_;
  const GenerateOptions& options_;
  const RunContext& context_;
  OnEnded on_ended_;
  Talks talks_;
  std::vector<Lane> lanes_;
  Draws draws_;
  std::uint64_t fed_tokens_ = 0;
  std::size_t experts_before_ = 0;    ///< per token, of earlier stages' layers
  std::size_t experts_per_token_ = 0; ///< W, of all stages; 0: not recorded
};

} // namespace troupe::models::internal
