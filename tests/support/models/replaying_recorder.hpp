// Graph captures that call the captured functions again: a device's passes in
// the shapes of captured ones, without a device that captures.
#pragma once

#include "models/kernels/graph_capture.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::testing {

class ReplayingRecorder final : public models::GraphRecorder {
public:
  static std::unique_ptr<models::GraphRecorder> make(at::Device /*device*/) {
    return std::make_unique<ReplayingRecorder>();
  }

  std::unique_ptr<models::GraphCapture>
  record(const std::function<void()>& kernels) override {
    return std::make_unique<Replaying>(kernels);
  }

private:
  class Replaying final : public models::GraphCapture {
  public:
    explicit Replaying(const std::function<void()>& kernels)
      : kernels_(kernels) {}
    void run() override {
      kernels_();
    }

  private:
    std::function<void()> kernels_;
  };
};

} // namespace troupe::testing
