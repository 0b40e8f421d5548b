#include "actors/protocol/system.hpp"

#include "troupe/sample.hpp"

namespace troupe::actors {

namespace {

/// Orders and replies of several devices at once.
void add_local_mesh_types(caf::actor_system_config& config) {
  config
    .add_message_type<LocalMeshOrder<LoadOrder>>("troupe::LocalMeshLoadOrder")
    .add_message_type<LocalMeshDone<LoadDone>>("troupe::LocalMeshLoadDone")
    .add_message_type<LocalMeshOrder<FetchOrder>>("troupe::LocalMeshFetchOrder")
    .add_message_type<LocalMeshDone<FetchDone>>("troupe::LocalMeshFetchDone")
    .add_message_type<LocalMeshOrder<RunOrder>>("troupe::LocalMeshRunOrder")
    .add_message_type<LocalMeshDone<RunDone>>("troupe::LocalMeshRunDone")
    .add_message_type<LocalMeshOrder<PublishOrder>>(
      "troupe::LocalMeshPublishOrder")
    .add_message_type<LocalMeshDone<PublishDone>>(
      "troupe::LocalMeshPublishDone")
    .add_message_type<LocalMeshOrder<MoveOrder>>("troupe::LocalMeshMoveOrder")
    .add_message_type<LocalMeshDone<MoveDone>>("troupe::LocalMeshMoveDone")
    .add_message_type<LocalMeshOrder<ResidencyOrder>>(
      "troupe::LocalMeshResidencyOrder")
    .add_message_type<LocalMeshDone<ResidencyDone>>(
      "troupe::LocalMeshResidencyDone")
    .add_message_type<LocalMeshOrder<SnapshotOrder>>(
      "troupe::LocalMeshSnapshotOrder")
    .add_message_type<LocalMeshDone<SnapshotDone>>(
      "troupe::LocalMeshSnapshotDone");
}

} // namespace

void add_message_types(caf::actor_system_config& config) {
  add_local_mesh_types(config);
  config.add_message_type<Context>("troupe::Context")
    .add_message_type<JoinRequest>("troupe::JoinRequest")
    .add_message_type<JoinAccepted>("troupe::JoinAccepted")
    .add_message_type<OpenFilesOrder>("troupe::OpenFilesOrder")
    .add_message_type<OpenFilesDone>("troupe::OpenFilesDone")
    .add_message_type<TakeFileOrder>("troupe::TakeFileOrder")
    .add_message_type<TakeFileDone>("troupe::TakeFileDone")
    .add_message_type<ProgramRequest>("troupe::ProgramRequest")
    .add_message_type<ProgramReply>("troupe::ProgramReply")
    .add_message_type<TakeSession>("troupe::TakeSession")
    .add_message_type<SessionTaken>("troupe::SessionTaken")
    .add_message_type<OpenSession>("troupe::OpenSession")
    .add_message_type<SessionOpened>("troupe::SessionOpened")
    .add_message_type<SetupOrder>("troupe::SetupOrder")
    .add_message_type<SetupDone>("troupe::SetupDone")
    .add_message_type<LoadOrder>("troupe::LoadOrder")
    .add_message_type<LoadDone>("troupe::LoadDone")
    .add_message_type<PingOrder>("troupe::PingOrder")
    .add_message_type<HeartbeatReply>("troupe::HeartbeatReply")
    .add_message_type<FetchOrder>("troupe::FetchOrder")
    .add_message_type<FetchDone>("troupe::FetchDone")
    .add_message_type<RunOrder>("troupe::RunOrder")
    .add_message_type<RunDone>("troupe::RunDone")
    .add_message_type<PublishOrder>("troupe::PublishOrder")
    .add_message_type<PublishDone>("troupe::PublishDone")
    .add_message_type<MoveOrder>("troupe::MoveOrder")
    .add_message_type<MoveDone>("troupe::MoveDone")
    .add_message_type<ResidencyOrder>("troupe::ResidencyOrder")
    .add_message_type<ResidencyDone>("troupe::ResidencyDone")
    .add_message_type<CopyOrder>("troupe::CopyOrder")
    .add_message_type<CopyDone>("troupe::CopyDone")
    .add_message_type<SnapshotOrder>("troupe::SnapshotOrder")
    .add_message_type<SnapshotCopyOrder>("troupe::SnapshotCopyOrder")
    .add_message_type<SnapshotDone>("troupe::SnapshotDone")
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
    .add_message_type<FailureMessage>("troupe::FailureMessage")
    .add_message_type<LocalMeshActor>("troupe::LocalMeshActor")
    .add_message_type<ShardActor>("troupe::ShardActor")
    .add_message_type<FunctionActor>("troupe::FunctionActor")
    .add_message_type<NodeActor>("troupe::NodeActor")
    .add_message_type<JoinActor>("troupe::JoinActor")
    .add_message_type<Sample>("troupe::Sample");
}

SystemConfig::SystemConfig(std::uint32_t number) {
  actors::add_message_types(*this);
  load<caf::io::middleman>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::size_t{2});
  set("middleman.enable-automatic-connections", false);
  // Messages are small: the I/O thread reads them itself, without waking
  // another one.
  set("middleman.workers", std::size_t{0});
  config_file_path = ""; // never read caf-application.ini by accident
  for (std::uint32_t i = 0; i < number; ++i)
    caf::node_id::default_data::local(*this);
}

} // namespace troupe::actors
