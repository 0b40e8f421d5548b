// The commands of `troupe`, each in a source of its own; what they share is in
// runtime/planner/command_options.hpp.
#pragma once

#include "runtime/planner/command_options.hpp"

namespace troupe::runtime {

void add_train(CLI::App& app, CommandRun& chosen);
void add_worker(CLI::App& app, CommandRun& chosen);
void add_keeper(CLI::App& app, CommandRun& chosen);
void add_plan(CLI::App& app, CommandRun& chosen);
void add_profile(CLI::App& app, CommandRun& chosen);
void add_eval(CLI::App& app, CommandRun& chosen);
void add_generate(CLI::App& app, CommandRun& chosen);
void add_score(CLI::App& app, CommandRun& chosen);
void add_tokenize(CLI::App& app, CommandRun& chosen);
void add_convert(CLI::App& app, CommandRun& chosen);
void add_status(CLI::App& app, CommandRun& chosen);
void add_stop(CLI::App& app, CommandRun& chosen);
void add_logs(CLI::App& app, CommandRun& chosen);
void add_trace(CLI::App& app, CommandRun& chosen);
void add_explain(CLI::App& app, CommandRun& chosen);
void add_doctor(CLI::App& app, CommandRun& chosen);
void add_slurm(CLI::App& app, CommandRun& chosen);
void add_k8s(CLI::App& app, CommandRun& chosen);
void add_new(CLI::App& app, CommandRun& chosen);

} // namespace troupe::runtime
