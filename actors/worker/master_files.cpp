#include "actors/worker/master_files.hpp"

#include "actors/protocol/open_replies.hpp"
#include "actors/protocol/pull_bytes.hpp"

#include <fmt/format.h>

#include <future>
#include <utility>
#include <variant>

namespace troupe::actors {

namespace {

FileAsker::behavior_type file_asker(FileAskerSelf self,
                                    std::shared_ptr<FileRequests> requests,
                                    std::shared_ptr<AskTable> asks) {
  self->state.asks = Asks{std::move(asks)};
  return {
    [=](take_atom) { requests->take()(self); },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace

void FileRequests::put(Request request) {
  const std::lock_guard lock{mutex_};
  waiting_.push_back(std::move(request));
}

FileRequests::Request FileRequests::take() {
  const std::lock_guard lock{mutex_};
  auto request = std::move(waiting_.front());
  waiting_.pop_front();
  return request;
}

MasterFiles::MasterFiles(caf::actor_system& system, net::DataPlane& data_plane,
                         MasterFilesSetup setup)
  : data_plane_(data_plane),
    setup_(std::move(setup)),
    asker_(system.spawn(file_asker, requests_, setup_.asks)) {}

MasterFiles::~MasterFiles() {
  caf::anon_send_exit(asker_, caf::exit_reason::user_shutdown);
}

template <class Done, class Atom, class Order>
Done MasterFiles::ask_master(Atom atom, Order order, std::string name) {
  auto result = std::make_shared<std::promise<Result<Done>>>();
  const Context context{
    .flow = 0, .step = StepId{}, .incarnation = setup_.incarnation};
  requests_->put([=, master = setup_.master](FileAskerSelf self) {
    ask<Done>(
      self, master, atom, context, order, {.name = name},
      [=](Done& done) { result->set_value(std::move(done)); },
      [=](Failure failure) { result->set_value(std::move(failure)); });
  });
  caf::anon_send(asker_, take_atom::value);
  auto got = result->get_future().get();
  if (auto* failure = std::get_if<Failure>(&got))
    throw FailureError{std::move(*failure)};
  return std::move(std::get<Done>(got));
}

/// Opens the master's files at the first use, of whichever thread.
OpenFilesDone MasterFiles::opened() {
  std::call_once(opened_, [this] {
    found_ = ask_master<OpenFilesDone>(open_atom::value, setup_.self,
                                       "open the master's files");
    data_plane_.set_peer(master_peer, setup_.master_host, found_.data_port);
  });
  return found_;
}

std::vector<SharedFile> MasterFiles::open() {
  return opened().files;
}

void MasterFiles::read(std::uint64_t number, std::uint64_t offset,
                       std::span<std::byte> into) {
  try {
    pull_bytes(data_plane_, master_peer, shared_file_id(number), offset, into);
  } catch (const FailureError& error) {
    auto failure = error.failure();
    failure.who = fmt::format("the files of the master ({}:{})",
                              setup_.master_host, found_.data_port);
    throw FailureError{failure};
  }
}

void MasterFiles::give(TakeFileOrder order, std::span<const std::byte> bytes) {
  opened();
  order.worker = setup_.self.worker;
  order.bytes = bytes.size();
  order.number = next_number_++;
  const auto id = shared_file_id(order.number);
  const auto name = "take " + order.file;
  data_plane_.export_memory(id, bytes.data(), bytes.size());
  try {
    ask_master<TakeFileDone>(take_atom::value, std::move(order), name);
  } catch (...) {
    data_plane_.withdraw(id);
    throw;
  }
  data_plane_.withdraw(id);
}

} // namespace troupe::actors
