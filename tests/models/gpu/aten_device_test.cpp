// Which device a thread of an AtenBackend uses, and what it waits for, over a
// stand-in for libtorch's interface to devices. No GPU is needed or used.
#include "models/gpu/aten_backend.hpp"
#include "models/parallel/background.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include <thread>

namespace troupe::models {
namespace {

constexpr auto stand_in_type = c10::DeviceType::PrivateUse1;

thread_local c10::DeviceIndex stand_in_current = 0;
int stand_in_recorded = -1;     ///< device of the stream of the last event
int stand_in_events_waited = 0; ///< waits for an event
int stand_in_devices_waited = 0;

/// Devices of a type that this build of libtorch does not have.
class StandInDevices final : public c10::impl::DeviceGuardImplInterface {
public:
  c10::DeviceType type() const override {
    return stand_in_type;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override {
    return {stand_in_type, stand_in_current};
  }
  void setDevice(c10::Device device) const override {
    stand_in_current = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    stand_in_current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return stream;
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    *event = &stand_in_recorded;
    stand_in_recorded = stream.device_index();
  }
  void synchronizeEvent(void* /*event*/) const override {
    ++stand_in_events_waited;
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    ++stand_in_devices_waited; // would break captures of others
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return 0; // libtorch starts no threads for them
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, StandInDevices)

AtenBackend second_device() {
  return AtenBackend(at::Device(stand_in_type, 1));
}

TEST(AtenDevice, AWaitIsForTheStreamNotForTheDevice) {
  AtenBackend backend = second_device();
  stand_in_recorded = -1;
  stand_in_events_waited = 0;
  stand_in_devices_waited = 0;
  backend.wait();
  EXPECT_EQ(stand_in_recorded, 1);
  EXPECT_EQ(stand_in_events_waited, 1);
  EXPECT_EQ(stand_in_devices_waited, 0);
}

TEST(AtenDevice, AThreadEntersTheDeviceOfItsBackend) {
  AtenBackend backend = second_device();
  c10::DeviceIndex entered = 0;
  std::thread([&] {
    backend.enter();
    entered = stand_in_current;
  }).join();
  EXPECT_EQ(entered, 1);
  EXPECT_EQ(stand_in_current, 0) << "of this thread";
}

TEST(AtenDevice, ABackgroundThreadEntersBeforeItsFirstJob) {
  AtenBackend backend = second_device();
  c10::DeviceIndex entered = 0;
  Background background([&] { backend.enter(); });
  background.run([&] { entered = stand_in_current; });
  background.wait();
  EXPECT_EQ(entered, 1);
}

TEST(AtenDevice, AHeadIsComputedInFewLargePieces) {
  EXPECT_EQ(second_device().logits_at_once(), defaults::logits_at_once_on_gpu);
  EXPECT_EQ(AtenBackend(at::kCPU).logits_at_once(), defaults::logits_at_once);
}

TEST(AtenDevice, TheCpuIsNeitherEnteredNorWaitedFor) {
  AtenBackend backend(at::kCPU);
  stand_in_events_waited = 0;
  backend.enter();
  backend.wait();
  EXPECT_EQ(stand_in_events_waited, 0);
}

} // namespace
} // namespace troupe::models
