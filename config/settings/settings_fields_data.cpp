#include "config/settings/settings_fields.hpp"

namespace troupe {

namespace {

void add_models(FieldTable& table) {
  auto add = [&]<class T>(const char* key, T ModelSettings::*member,
                          const char* sentence) -> Field& {
    return table.add(
      std::string("models.ROLE.") + key,
      [member](Settings& settings, const std::string& role) -> Slot {
        return &(settings.models[role].*member);
      },
      sentence);
  };
  add("path", &ModelSettings::path,
      "Folder of the weights to start from, in Hugging Face format, relative "
      "to the working directory or beside the settings file. Default of ref: "
      "the actor's.")
    .required();
  add("dtype", &ModelSettings::dtype,
      "Number format of compute. auto: bf16 on GPU, fp32 on CPU. Master "
      "weights are always fp32; on the CPU only the operands of products "
      "are bf16, everything else is fp32.")
    .one_of({"auto", "fp32", "bf16"});
  add("save_dtype", &ModelSettings::save_dtype,
      "Number format of saved weights. auto: that of the folder in path.")
    .one_of({"auto", "fp32", "bf16"})
    .trained_only();
  add("ema_decay", &ModelSettings::ema_decay,
      "Makes the role the EMA of a trained one, ref of the actor: after an "
      "update its weights become ema_decay * weights + (1 - ema_decay) * "
      "trained. 1: they stay as they are.")
    .at_least(0)
    .at_most(1)
    .frozen_only();
  add("ema_every", &ModelSettings::ema_every,
      "Training steps between two EMA updates.")
    .at_least(1)
    .frozen_only();
}

void add_lora(FieldTable& table) {
  using L = LoraSettings;
  auto add = [&]<class T>(const char* key, T L::*member,
                          const char* sentence) -> Field& {
    return table
      .add(
        std::string("models.ROLE.lora.") + key,
        [member](Settings& settings, const std::string& role) -> Slot {
          return &(settings.models[role].lora.*member);
        },
        sentence)
      .trained_only();
  };
  add("rank", &L::rank,
      "Rank of the adapters that are trained in place of the weights, which "
      "stay as they are. 0: no adapters. Checkpoints are PEFT folders.")
    .at_least(0);
  add("alpha", &L::alpha,
      "Factor of what adapters add to a product, divided by their rank.")
    .above(0);
  add("targets", &L::targets,
      "Adapted matrices of each layer, as [q_proj, v_proj]. all-linear: all "
      "that can be adapted.");
}

void add_optimizer(FieldTable& table) {
  using O = OptimizerSettings;
  auto add = [&]<class T>(const char* key, T O::*member,
                          const char* sentence) -> Field& {
    return table
      .add(
        std::string("models.ROLE.optimizer.") + key,
        [member](Settings& settings, const std::string& role) -> Slot {
          return &(settings.models[role].optimizer.*member);
        },
        sentence)
      .trained_only();
  };
  add("lr", &O::lr, "Highest learning rate of AdamW.").at_least(0);
  add("weight_decay", &O::weight_decay,
      "Decoupled weight decay; matrices decay, vectors do not.")
    .at_least(0);
  add("betas", &O::betas, "Decay rates of the two moments.")
    .at_least(0)
    .below(1);
  add("eps", &O::eps, "Added to the root of the second moment.").above(0);
  add("schedule", &O::schedule,
      "Learning rate after warm-up, to the run's last optimizer step. cosine, "
      "linear: falls to 0.")
    .one_of({"cosine", "linear", "constant"});
  add("warmup", &O::warmup,
      "Optimizer steps of linear warm-up: below 1 a share of all optimizer "
      "steps, else a number of steps.")
    .at_least(0);
  add("clip", &O::clip, "Largest global gradient norm. 0: no clipping.")
    .at_least(0);
  add("router_bias_rate", &O::router_bias_rate,
      "How far an optimizer step moves the correction of each expert's score, "
      "up where the expert had fewer tokens than the mean and down where it "
      "had more (auxiliary-loss-free balancing of DeepSeek-V3). For models "
      "whose routers have corrections (glm4_moe). 0: they stay.")
    .at_least(0);
  add("router_aux_loss_coef", &O::router_aux_loss_coef,
      "Weight of a loss that is least where the experts of a layer share the "
      "tokens of each sequence evenly (sequence-wise auxiliary loss of "
      "DeepSeek-V3). For models with experts. 0: none.")
    .at_least(0);
}

void add_train(FieldTable& table) {
  table
    .add(
      "data.train",
      [](Settings& settings, const std::string&) -> Slot {
        return &settings.data;
      },
      "Training rows: a file (.jsonl, .jsonl.gz, .parquet; a path, or an "
      "address with https://, s3:// or hf://), a list of such "
      "files, or a mixture, [{path: a.jsonl, weight: 0.7}, ...]. Weights "
      "decide "
      "how often a file's rows come, whatever its size; without weights each "
      "row "
      "comes once an epoch.")
    .required();
}

void add_data(FieldTable& table) {
  using D = DataSettings;
  auto add = [&]<class T>(const char* key, T D::*member,
                          const char* sentence) -> Field& {
    return table.add("data", key, &Settings::data, member, sentence);
  };
  add("fields", &D::fields,
      "Maps the names Troupe knows (prompt, completion, chosen, ...) to "
      "columns, or to templates such as \"{question} Answer:\". `margin` of "
      "workflow reward: a column with a number by which the chosen response "
      "is to be ahead.");
  add("chat", &D::chat,
      "Whether prompts go through the tokenizer's chat template. auto: "
      "messages do, plain text does not; true: both do; false: neither.")
    .one_of({"auto", "true", "false"});
  add("batch_size", &D::batch_size,
      "Rows of the data file per step. Every other size counts samples "
      "(rows x rollout.n).")
    .at_least(1);
  add("max_prompt_tokens", &D::max_prompt_tokens,
      "Longest prompt, in tokens; data.overlong decides what happens to "
      "longer ones.")
    .at_least(1)
    .of(SettingsGroup::rollout);
  add("max_tokens", &D::max_tokens,
      "Longest sequence (prompt and answer together), in tokens; "
      "data.overlong decides what happens to longer ones.")
    .at_least(2)
    .of(SettingsGroup::sequences);
  add("overlong", &D::overlong,
      "Rows that are too long. skip: leave out and count; truncate: cut "
      "(prompts keep their end, sequences their start); error: stop.")
    .one_of({"skip", "truncate", "error"});
  add("on_bad_row", &D::on_bad_row,
      "Rows that the workflow cannot use. error: stop with file, line and "
      "field; skip: leave out and count.")
    .one_of({"error", "skip"});
  add("shuffle", &D::shuffle,
      "A new order of the rows each epoch, from run.seed.");
  add("ptx", &D::ptx,
      "JSONL file of texts, rows as for sft, on which the actor is trained "
      "beside its responses, with weight algorithm.ptx_coef. The longest may "
      "have data.max_prompt_tokens and rollout.max_new_tokens together.")
    .of(SettingsGroup::policy)
    .needs("algorithm.ptx_coef");
  add("ptx_batch_size", &D::ptx_batch_size,
      "Rows of data.ptx per step, shared among the mini-batches. 0: "
      "data.batch_size.")
    .at_least(0)
    .of(SettingsGroup::policy)
    .needs("data.ptx");
}

} // namespace

std::vector<Field> make_model_and_data_fields() {
  FieldTable table;
  add_models(table);
  add_optimizer(table);
  add_lora(table);
  add_train(table);
  add_data(table);
  return std::move(table.fields);
}

} // namespace troupe
