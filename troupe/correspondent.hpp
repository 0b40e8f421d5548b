// An actor whose samples are arrows of the trace: behind every send there is
// one receive. Without a trace nothing of this costs anything.
#pragma once

#include "troupe/at_work.hpp"
#include "troupe/sample.hpp"

namespace caf {
class mailbox_element;
} // namespace caf

namespace troupe::detail {

class Correspondent {
public:
  /// `row` is its row in the viewer.
  explicit Correspondent(std::string row) : row_(std::move(row)) {}
  virtual ~Correspondent() = default;

  /// The sample goes to somebody; `label` names the message. Its arrow, which
  /// the sample then carries.
  Sample::Arrow leave(Sample& sample, const char* label);
  /// The answer to that came.
  void answered(Sample::Arrow question, const char* label);
  /// The message that is handled now is answered later, by answer().
  Sample::Arrow take_question() {
    return std::exchange(question_, {});
  }
  void answer(Sample::Arrow question, const Sample& sample);

  /// While the actor handles a message.
  class Letter {
  public:
    Letter(Correspondent& reader, caf::mailbox_element& element);
    ~Letter();
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

  private:
    AtWork at_work_;
    Correspondent* reader_ = nullptr; ///< null: there is no trace
    std::uint32_t name_ = 0;
    std::int64_t begun_ns_ = 0;
  };

private:
  std::uint32_t track();
  void send_answer(Sample::Arrow question, std::uint64_t bytes,
                   std::int64_t time_ns);

  std::string row_;
  std::optional<std::uint32_t> track_;
  Sample::Arrow question_; ///< of the message that is handled now
};

} // namespace troupe::detail
