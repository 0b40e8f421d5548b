#include "actors/system.hpp"

#include "troupe/sample.hpp"

namespace troupe::actors {

void add_message_types(caf::actor_system_config& config) {
  config.add_message_type<Context>("troupe::Context")
    .add_message_type<JoinRequest>("troupe::JoinRequest")
    .add_message_type<JoinAnswer>("troupe::JoinAnswer")
    .add_message_type<SetupOrder>("troupe::SetupOrder")
    .add_message_type<SetupDone>("troupe::SetupDone")
    .add_message_type<LoadOrder>("troupe::LoadOrder")
    .add_message_type<LoadDone>("troupe::LoadDone")
    .add_message_type<PingOrder>("troupe::PingOrder")
    .add_message_type<Pong>("troupe::Pong")
    .add_message_type<FetchOrder>("troupe::FetchOrder")
    .add_message_type<FetchDone>("troupe::FetchDone")
    .add_message_type<RunOrder>("troupe::RunOrder")
    .add_message_type<RunDone>("troupe::RunDone")
    .add_message_type<LendOrder>("troupe::LendOrder")
    .add_message_type<LendDone>("troupe::LendDone")
    .add_message_type<MoveOrder>("troupe::MoveOrder")
    .add_message_type<MoveDone>("troupe::MoveDone")
    .add_message_type<LifeOrder>("troupe::LifeOrder")
    .add_message_type<LifeDone>("troupe::LifeDone")
    .add_message_type<CopyOrder>("troupe::CopyOrder")
    .add_message_type<CopyDone>("troupe::CopyDone")
    .add_message_type<WriteOrder>("troupe::WriteOrder")
    .add_message_type<WriteDone>("troupe::WriteDone")
    .add_message_type<CopyRowsOrder>("troupe::CopyRowsOrder")
    .add_message_type<WriteRowsOrder>("troupe::WriteRowsOrder")
    .add_message_type<LoadRowsOrder>("troupe::LoadRowsOrder")
    .add_message_type<CommitOrder>("troupe::CommitOrder")
    .add_message_type<CommitDone>("troupe::CommitDone")
    .add_message_type<CallTask>("troupe::CallTask")
    .add_message_type<CallDone>("troupe::CallDone")
    .add_message_type<MoveTask>("troupe::MoveTask")
    .add_message_type<NextOrder>("troupe::NextOrder")
    .add_message_type<DataBatch>("troupe::DataBatch")
    .add_message_type<SaveTask>("troupe::SaveTask")
    .add_message_type<SaveCopied>("troupe::SaveCopied")
    .add_message_type<WriteTask>("troupe::WriteTask")
    .add_message_type<SaveDone>("troupe::SaveDone")
    .add_message_type<Trouble>("troupe::Trouble")
    .add_message_type<ShardActor>("troupe::ShardActor")
    .add_message_type<FunctionActor>("troupe::FunctionActor")
    .add_message_type<NodeActor>("troupe::NodeActor")
    .add_message_type<LobbyActor>("troupe::LobbyActor")
    .add_message_type<Sample>("troupe::Sample");
}

SystemConfig::SystemConfig(std::uint32_t number) {
  actors::add_message_types(*this);
  load<caf::io::middleman>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::size_t{2});
  set("middleman.enable-automatic-connections", false);
  // Messages are small: the I/O thread reads them itself, without waking
  // another.
  set("middleman.workers", std::size_t{0});
  config_file_path = ""; // never read caf-application.ini by accident
  for (std::uint32_t i = 0; i < number; ++i)
    caf::node_id::default_data::local(*this);
}

} // namespace troupe::actors
