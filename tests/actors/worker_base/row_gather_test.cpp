// Rows of a task from this worker's stash and from another worker's, over
// loopback.
#include "actors/worker_base/row_gather.hpp"

#include <gmock/gmock.h>

#include <future>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr StepId step{3};

net::Rows rows_of(const std::string& key, std::uint32_t num_samples) {
  std::vector<SampleId> samples;
  for (std::uint32_t i = 0; i < num_samples; ++i)
    samples.emplace_back(i);
  const std::vector<std::int32_t> values(num_samples, 7);
  return {samples,
          {net::make_column(key, DType::i32,
                            std::vector<std::uint32_t>(num_samples, 1),
                            values.data())}};
}

net::DataPlaneOptions plane_of(std::uint32_t worker) {
  net::DataPlaneOptions options;
  options.self = WorkerId{worker};
  options.token = "token";
  options.progress_deadline = 20s;
  return options;
}

class RowGather : public ::testing::Test {
protected:
  RowGather() {
    worker_->who = "worker 0";
    worker_->threads.host = std::make_unique<JobThread>("host");
    worker_->exchange.data_plane
      = std::make_unique<net::DataPlane>(plane_of(0));
    worker_->exchange.data_plane->set_peer(WorkerId{1}, "127.0.0.1",
                                           other_.port());
    other_.serve_rows(stash_);
    worker_->exchange.stash.put(step, rows_of("mine", 2));
  }
  static RowSource source(std::uint32_t holder, const std::string& key,
                          std::uint32_t num_samples) {
    RowSource made;
    made.holder = holder;
    made.keys = {key};
    made.samples = rows_of(key, num_samples).samples;
    return made;
  }
  std::future<Result<Gathered>> gather(FetchOrder order) {
    auto promise = std::make_shared<std::promise<Result<Gathered>>>();
    gather_rows(worker_, step, std::move(order),
                [this, promise](Result<Gathered> result) {
                  done_on_ = std::this_thread::get_id();
                  promise->set_value(std::move(result));
                });
    return promise->get_future();
  }
  std::thread::id host_thread() {
    std::promise<std::thread::id> id;
    worker_->threads.host->post(
      [&] { id.set_value(std::this_thread::get_id()); });
    return id.get_future().get();
  }

  net::Stash stash_; ///< of worker 1
  net::DataPlane other_{plane_of(1)};
  std::shared_ptr<WorkerContext> worker_ = std::make_shared<WorkerContext>();
  std::thread::id done_on_;
};

TEST_F(RowGather, JoinsOnTheHostThreadAndNotOnTheOneThatServesAllPeers) {
  stash_.put(step, rows_of("theirs", 2));
  FetchOrder order;
  order.sources = {source(0, "mine", 2), source(1, "theirs", 2)};
  auto future = gather(order);
  ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
  const auto result = future.get();
  const auto* gathered = std::get_if<Gathered>(&result);
  ASSERT_NE(gathered, nullptr);
  EXPECT_TRUE(gathered->rows.has("mine") && gathered->rows.has("theirs"));
  EXPECT_EQ(done_on_, host_thread());
}

TEST_F(RowGather, RowsThatDoNotFitTogetherAreAFailureOfTheFetch) {
  stash_.put(step, rows_of("theirs", 1));
  FetchOrder order;
  order.sources = {source(0, "mine", 2), source(1, "theirs", 1)};
  auto future = gather(order);
  ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
  const auto result = future.get();
  const auto* failure = std::get_if<Failure>(&result);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->code, Errc::bug) << to_string(*failure);
}

TEST_F(RowGather, MissingRowsOfAnotherWorkerAreAFailureOfTheFetch) {
  FetchOrder order;
  order.sources = {source(0, "mine", 2), source(1, "theirs", 2)};
  auto future = gather(order);
  ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
  const auto result = future.get();
  EXPECT_NE(std::get_if<Failure>(&result), nullptr);
}

} // namespace
} // namespace troupe::actors
