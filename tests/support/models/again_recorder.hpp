// Recordings that call what they are of again: a device's passes in the shapes
// of recorded ones, without a device that records.
#pragma once

#include "models/recording.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::testing {

class AgainRecorder final : public models::Recorder {
public:
  static std::unique_ptr<models::Recorder> make(at::Device /*device*/) {
    return std::make_unique<AgainRecorder>();
  }

  std::unique_ptr<models::Recording>
  record(const std::function<void()>& kernels) override {
    return std::make_unique<Again>(kernels);
  }

private:
  class Again final : public models::Recording {
  public:
    explicit Again(const std::function<void()>& kernels) : kernels_(kernels) {}
    void run() override {
      kernels_();
    }

  private:
    std::function<void()> kernels_;
  };
};

} // namespace troupe::testing
