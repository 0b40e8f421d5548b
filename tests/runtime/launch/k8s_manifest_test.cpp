// The manifest against the fields of the published schemas: JobSet v1alpha2,
// Job of batch/v1, Pod and Secret of v1 (Kubernetes 1.33, JobSet 0.10), as far
// as the manifest uses them.
#include "config/settings/settings.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "runtime/launch/k8s_manifest.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A field of a type: text, int, bool, port, map (of texts), a type of the
/// table, or [one of these].
struct K8sField {
  const char* type;
  const char* name;
  const char* kind;
  bool required = false;
};

const std::vector<K8sField> schema{
  {"JobSet", "apiVersion", "text", true},
  {"JobSet", "kind", "text", true},
  {"JobSet", "metadata", "ObjectMeta", true},
  {"JobSet", "spec", "JobSetSpec", true},
  {"ObjectMeta", "name", "text"},
  {"ObjectMeta", "namespace", "text"},
  {"ObjectMeta", "labels", "map"},
  {"ObjectMeta", "annotations", "map"},
  {"JobSetSpec", "replicatedJobs", "[ReplicatedJob]"},
  {"JobSetSpec", "network", "Network"},
  {"JobSetSpec", "successPolicy", "SuccessPolicy"},
  {"JobSetSpec", "failurePolicy", "FailurePolicy"},
  {"JobSetSpec", "startupPolicy", "StartupPolicy"},
  {"JobSetSpec", "suspend", "bool"},
  {"JobSetSpec", "coordinator", "Coordinator"},
  {"JobSetSpec", "managedBy", "text"},
  {"JobSetSpec", "ttlSecondsAfterFinished", "int"},
  {"Network", "enableDNSHostnames", "bool"},
  {"Network", "subdomain", "text"},
  {"Network", "publishNotReadyAddresses", "bool"},
  {"SuccessPolicy", "operator", "text", true},
  {"SuccessPolicy", "targetReplicatedJobs", "[text]"},
  {"FailurePolicy", "maxRestarts", "int"},
  {"FailurePolicy", "restartStrategy", "text"},
  {"FailurePolicy", "rules", "[FailurePolicyRule]"},
  {"FailurePolicyRule", "name", "text", true},
  {"FailurePolicyRule", "action", "text", true},
  {"FailurePolicyRule", "onJobFailureReasons", "[text]"},
  {"FailurePolicyRule", "onJobFailureMessagePatterns", "[text]"},
  {"FailurePolicyRule", "targetReplicatedJobs", "[text]"},
  {"StartupPolicy", "startupPolicyOrder", "text", true},
  {"Coordinator", "replicatedJob", "text", true},
  {"Coordinator", "jobIndex", "int"},
  {"Coordinator", "podIndex", "int"},
  {"ReplicatedJob", "name", "text", true},
  {"ReplicatedJob", "groupName", "text"},
  {"ReplicatedJob", "template", "JobTemplate", true},
  {"ReplicatedJob", "replicas", "int"},
  {"JobTemplate", "metadata", "ObjectMeta"},
  {"JobTemplate", "spec", "JobSpec"},
  {"JobSpec", "parallelism", "int"},
  {"JobSpec", "completions", "int"},
  {"JobSpec", "completionMode", "text"},
  {"JobSpec", "activeDeadlineSeconds", "int"},
  {"JobSpec", "backoffLimit", "int"},
  {"JobSpec", "backoffLimitPerIndex", "int"},
  {"JobSpec", "maxFailedIndexes", "int"},
  {"JobSpec", "podFailurePolicy", "PodFailurePolicy"},
  {"JobSpec", "podReplacementPolicy", "text"},
  {"JobSpec", "ttlSecondsAfterFinished", "int"},
  {"JobSpec", "suspend", "bool"},
  {"JobSpec", "template", "PodTemplate", true},
  {"PodFailurePolicy", "rules", "[PodFailureRule]", true},
  {"PodFailureRule", "action", "text", true},
  {"PodFailureRule", "onExitCodes", "OnExitCodes"},
  {"PodFailureRule", "onPodConditions", "[OnPodCondition]"},
  {"OnExitCodes", "containerName", "text"},
  {"OnExitCodes", "operator", "text", true},
  {"OnExitCodes", "values", "[int]", true},
  {"OnPodCondition", "type", "text", true},
  {"OnPodCondition", "status", "text", true},
  {"PodTemplate", "metadata", "ObjectMeta"},
  {"PodTemplate", "spec", "PodSpec"},
  {"PodSpec", "containers", "[Container]", true},
  {"PodSpec", "initContainers", "[Container]"},
  {"PodSpec", "volumes", "[Volume]"},
  {"PodSpec", "restartPolicy", "text"},
  {"PodSpec", "terminationGracePeriodSeconds", "int"},
  {"PodSpec", "nodeSelector", "map"},
  {"PodSpec", "serviceAccountName", "text"},
  {"PodSpec", "priorityClassName", "text"},
  {"Container", "name", "text", true},
  {"Container", "image", "text"},
  {"Container", "imagePullPolicy", "text"},
  {"Container", "command", "[text]"},
  {"Container", "args", "[text]"},
  {"Container", "workingDir", "text"},
  {"Container", "ports", "[ContainerPort]"},
  {"Container", "env", "[EnvVar]"},
  {"Container", "resources", "Resources"},
  {"Container", "volumeMounts", "[VolumeMount]"},
  {"Container", "livenessProbe", "Probe"},
  {"Container", "readinessProbe", "Probe"},
  {"Container", "startupProbe", "Probe"},
  {"ContainerPort", "name", "text"},
  {"ContainerPort", "containerPort", "int", true},
  {"ContainerPort", "protocol", "text"},
  {"EnvVar", "name", "text", true},
  {"EnvVar", "value", "text"},
  {"EnvVar", "valueFrom", "EnvVarSource"},
  {"EnvVarSource", "fieldRef", "FieldRef"},
  {"FieldRef", "apiVersion", "text"},
  {"FieldRef", "fieldPath", "text", true},
  {"Resources", "limits", "map"},
  {"Resources", "requests", "map"},
  {"VolumeMount", "name", "text", true},
  {"VolumeMount", "mountPath", "text", true},
  {"VolumeMount", "readOnly", "bool"},
  {"VolumeMount", "subPath", "text"},
  {"Probe", "exec", "ExecAction"},
  {"Probe", "tcpSocket", "TcpSocket"},
  {"Probe", "initialDelaySeconds", "int"},
  {"Probe", "periodSeconds", "int"},
  {"Probe", "timeoutSeconds", "int"},
  {"Probe", "successThreshold", "int"},
  {"Probe", "failureThreshold", "int"},
  {"ExecAction", "command", "[text]"},
  {"TcpSocket", "port", "port", true},
  {"TcpSocket", "host", "text"},
  {"Volume", "name", "text", true},
  {"Volume", "secret", "SecretVolume"},
  {"Volume", "emptyDir", "EmptyDir"},
  {"Volume", "persistentVolumeClaim", "ClaimVolume"},
  {"SecretVolume", "secretName", "text"},
  {"SecretVolume", "defaultMode", "int"},
  {"SecretVolume", "optional", "bool"},
  {"EmptyDir", "medium", "text"},
  {"EmptyDir", "sizeLimit", "text"},
  {"ClaimVolume", "claimName", "text", true},
  {"ClaimVolume", "readOnly", "bool"},
  {"Secret", "apiVersion", "text", true},
  {"Secret", "kind", "text", true},
  {"Secret", "metadata", "ObjectMeta", true},
  {"Secret", "type", "text"},
  {"Secret", "immutable", "bool"},
  {"Secret", "stringData", "map"},
  {"Secret", "data", "map"},
};

const std::map<std::string, std::vector<std::string>> choices{
  {"SuccessPolicy.operator", {"All", "Any"}},
  {"FailurePolicyRule.action",
   {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts",
    "RestartJob", "RestartJobAndIgnoreMaxRestarts"}},
  {"PodFailureRule.action", {"FailJob", "FailIndex", "Ignore", "Count"}},
  {"OnExitCodes.operator", {"In", "NotIn"}},
  {"OnPodCondition.status", {"True", "False", "Unknown"}},
  {"JobSpec.completionMode", {"Indexed", "NonIndexed"}},
  {"PodSpec.restartPolicy", {"Never", "OnFailure"}}, // of a job's pods
  {"EmptyDir.medium", {"", "Memory"}},
};

/// Finds what a YAML node has that its type does not allow.
class Checker {
public:
  std::vector<std::string> check(const YamlNode& node, const std::string& type);

private:
  void check_object(const YamlNode& node, const std::string& type,
                    const std::string& at);
  void check_kind(const YamlNode& node, const std::string& kind,
                  const std::string& at);
  void check_list(const YamlNode& node, const std::string& kind,
                  const std::string& at);
  static bool is_scalar(const YamlNode& node, const std::string& kind);

  std::vector<std::string> wrong_;
};

std::vector<std::string> Checker::check(const YamlNode& node,
                                        const std::string& type) {
  check_object(node, type, type);
  return wrong_;
}

const K8sField* field_of(const std::string& type, const std::string& name) {
  for (const auto& field : schema)
    if (field.type == type && field.name == name)
      return &field;
  return nullptr;
}

void Checker::check_object(const YamlNode& node, const std::string& type,
                           const std::string& at) {
  if (!node.is_mapping())
    return wrong_.push_back(at + " is no " + type);
  for (const auto& field : schema)
    if (field.type == type && field.required
        && node.find(field.name) == nullptr)
      wrong_.push_back(at + " has no " + field.name);
  for (const auto& [name, value] : node.entries) {
    const auto* field = field_of(type, name);
    if (field == nullptr) {
      wrong_.push_back(at + " has an unknown " + name);
      continue;
    }
    check_kind(value, field->kind, at + "." + name);
    const auto found = choices.find(type + "." + name);
    if (found != choices.end()
        && std::ranges::find(found->second, value.text) == found->second.end())
      wrong_.push_back(at + "." + name + " is no choice: " + value.text);
  }
}

void Checker::check_kind(const YamlNode& node, const std::string& kind,
                         const std::string& at) {
  if (kind.front() == '[')
    return check_list(node, kind.substr(1, kind.size() - 2), at);
  if (kind == "map") {
    for (const auto& [name, value] : node.entries)
      check_kind(value, "text", at + "." + name);
    if (!node.is_mapping())
      wrong_.push_back(at + " is no map");
    return;
  }
  const bool is_object = std::isupper(static_cast<unsigned char>(kind[0])) != 0;
  if (is_object)
    return check_object(node, kind, at);
  if (!is_scalar(node, kind))
    wrong_.push_back(at + " is no " + kind + ": " + node.text);
}

void Checker::check_list(const YamlNode& node, const std::string& kind,
                         const std::string& at) {
  if (!node.is_sequence())
    return wrong_.push_back(at + " is no list");
  for (const auto& item : node.items)
    check_kind(item, kind, at + "[]");
}

bool Checker::is_scalar(const YamlNode& node, const std::string& kind) {
  std::int64_t number = 0;
  const bool integer
    = node.is_scalar() && !node.quoted && read_whole(node.text, number);
  const bool boolean = node.is_scalar() && !node.quoted
                       && (node.text == "true" || node.text == "false");
  if (kind == "int" || kind == "port")
    return integer;
  if (kind == "bool")
    return boolean;
  return node.is_scalar() && !integer && !boolean;
}

Settings settings_of_run() {
  Settings settings;
  settings.run.name = "My_PPO run";
  settings.cluster.nodes = 2;
  settings.cluster.devices_per_node = 8;
  settings.cluster.device = "gpu";
  return settings;
}

const std::vector<std::string> command_words{"ppo.yaml",
                                             "run.name=a: $(b) 'c'"};

std::vector<std::string> documents(const Settings& settings,
                                   const K8sOptions& options = {}) {
  const auto text = k8s_manifest(settings, options, "troupe", command_words,
                                 "token\n-----BEGIN KEY-----\nabc=\n");
  const auto cut = text.find("---\napi");
  const auto comment = text.find("---\n#");
  const auto at = std::min(cut, comment);
  if (at == std::string::npos)
    return {text};
  return {text.substr(0, at), text.substr(at + 4)};
}

YamlNode job_set_of(const Settings& settings, const K8sOptions& options = {}) {
  return parse_yaml(documents(settings, options).back(), "manifest");
}

/// Returns spec of the master's pod (0) or the workers' (1).
const YamlNode& pod_of(const YamlNode& job_set, std::size_t index) {
  return *job_set.find_path("spec.replicatedJobs")
            ->items.at(index)
            .find_path("template.spec.template.spec");
}

TEST(K8sManifest, HasOnlyFieldsOfThePublishedSchemas) {
  const auto both = documents(settings_of_run());
  ASSERT_EQ(both.size(), 2U);
  EXPECT_THAT(Checker{}.check(parse_yaml(both[0], "secret"), "Secret"),
              IsEmpty());
  EXPECT_THAT(Checker{}.check(parse_yaml(both[1], "jobset"), "JobSet"),
              IsEmpty());
}

TEST(K8sManifest, TheCheckFindsUnknownMissingAndWrongFields) {
  auto job_set = job_set_of(settings_of_run());
  auto& spec = *job_set.find("spec");
  spec.entries.push_back({"replicas", {}});
  spec.find("network")->find("subdomain")->text = "7";
  spec.find("network")->find("subdomain")->quoted = false;
  std::erase_if(spec.find("successPolicy")->entries,
                [](const auto& entry) { return entry.first == "operator"; });
  EXPECT_THAT(Checker{}.check(job_set, "JobSet"),
              ::testing::UnorderedElementsAre(
                "JobSet.spec has an unknown replicas",
                "JobSet.spec.network.subdomain is no text: 7",
                "JobSet.spec.successPolicy has no operator"));
}

TEST(K8sManifest, NamesFitADnsLabel) {
  EXPECT_EQ(k8s_name("tiny_ppo"), "tiny-ppo");
  EXPECT_EQ(k8s_name("My_PPO run"), "my-ppo-run");
  EXPECT_EQ(k8s_name("7b"), "run-7b");
  EXPECT_EQ(k8s_name("__"), "run");
  EXPECT_EQ(k8s_name(std::string(70, 'a')).size(), 40U);
  EXPECT_EQ(k8s_name(std::string(39, 'a') + "_b"), std::string(39, 'a'));
}

TEST(K8sManifest, APodOfANodeHasItsDevicesAndAllItsWorkers) {
  auto settings = settings_of_run();
  settings.cluster.workers_per_node = 4;
  const auto job_set = job_set_of(settings, {.cpus = 64});
  const auto& container = pod_of(job_set, 1).find("containers")->items[0];
  EXPECT_EQ(container.find_path("resources.requests.cpu")->text, "64");
  const auto* limits = container.find_path("resources.limits");
  EXPECT_EQ(limits->find("nvidia.com/gpu")->text, "8");
  const auto& script = container.find("args")->items[0].text;
  EXPECT_THAT(script, HasSubstr("JOB_COMPLETION_INDEX * 4 + i"));
  EXPECT_THAT(script, HasSubstr("my-ppo-run-master-0-0.my-ppo-run:7077"));
  EXPECT_THAT(script, HasSubstr("--threads 8 ")); // 64 cores of 8 devices
  const auto& job = *job_set.find_path("spec.replicatedJobs")
                       ->items[1]
                       .find_path("template.spec");
  EXPECT_EQ(job.find("completions")->text, "2");
  EXPECT_EQ(job.find("completionMode")->text, "Indexed");
}

TEST(K8sManifest, TheMastersWordsAreLiteralAndItsOwnAddressIsNot) {
  const auto job_set = job_set_of(settings_of_run());
  std::vector<std::string> args;
  for (const auto& word :
       pod_of(job_set, 0).find("containers")->items[0].find("args")->items)
    args.push_back(word.text);
  EXPECT_THAT(
    args, ElementsAre("train", "ppo.yaml", "run.name=a: $$(b) 'c'",
                      "cluster.nodes=2", "cluster.devices_per_node=8",
                      "cluster.workers_per_node=8", "cluster.launcher=manual",
                      "cluster.bind=$(POD_IP)", "cluster.ports=7077-7077",
                      "cluster.secret=/run/troupe/secret"));
}

TEST(K8sManifest, ASecretOfTheClusterIsNamedAndNotPrinted) {
  const auto own = documents(settings_of_run());
  EXPECT_EQ(parse_yaml(own[0], "secret").find_path("stringData.secret")->text,
            "token\n-----BEGIN KEY-----\nabc=\n");
  const auto all = documents(settings_of_run(), {.secret = "theirs"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0], Not(HasSubstr("BEGIN")));
  EXPECT_THAT(all[0], HasSubstr("secretName: theirs"));
}

TEST(K8sManifest, BothPodsHaveTimeToSaveAndAProbe) {
  const auto job_set = job_set_of(settings_of_run());
  for (const std::size_t i : {0, 1})
    EXPECT_EQ(pod_of(job_set, i).find("terminationGracePeriodSeconds")->text,
              "120");
  const auto& master = pod_of(job_set, 0).find("containers")->items[0];
  EXPECT_THAT(master.find_path("startupProbe.exec.command")->items[2].text,
              HasSubstr("/data/runs/My_PPO run/status.json"));
  const auto& workers = pod_of(job_set, 1).find("containers")->items[0];
  EXPECT_EQ(workers.find_path("readinessProbe.tcpSocket.port")->text, "7200");
}

} // namespace
} // namespace troupe::runtime
