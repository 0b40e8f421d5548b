#include "runtime/launch/k8s_manifest.hpp"

#include "config/settings/settings.hpp"
#include "config/yaml/yaml_tree.hpp"
#include "runtime/launch/slurm_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace troupe::runtime {

namespace {

/// Room for suffixes: Kubernetes takes 63 letters for the name of a host, such
/// as NAME-workers-0-12.
constexpr std::size_t longest_name = 40;
constexpr const char* secret_folder = "/run/troupe";

/// Numbers of a node's pod.
struct PodShape {
  int nodes = 1, workers = 1, devices = 1;
  bool gpus = false;
  std::uint32_t cpus = 1;
  std::uint32_t threads = 1; ///< per device
};

PodShape pod_shape(const ClusterSettings& cluster, const K8sOptions& options) {
  PodShape shape;
  shape.nodes = cluster.nodes.value_or(1);
  shape.devices = cluster.devices_per_node.value_or(1);
  shape.gpus = cluster.device == "gpu" || cluster.device == "cuda";
  shape.workers
    = cluster.workers_per_node.value_or(shape.gpus ? shape.devices : 1);
  const auto devices = static_cast<std::uint32_t>(shape.devices);
  shape.cpus = options.cpus == 0 ? devices : options.cpus;
  shape.threads = std::max(1U, shape.cpus / devices);
  return shape;
}

std::string quoted(const std::string& text) {
  return print_yaml_scalar(text, /*force_quotes=*/true);
}

/// Returns an argument that Kubernetes replaces no $(VARIABLE) in.
std::string literal(std::string text) {
  for (auto at = text.find("$("); at != std::string::npos;
       at = text.find("$(", at + 3))
    text.insert(at, "$");
  return text;
}

std::string indented(const std::string& text, std::size_t columns) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);)
    all += std::string(columns, ' ') + line + "\n";
  return all;
}

std::string secret_yaml(const std::string& name, const K8sOptions& options,
                        const std::string& secret_text) {
  return fmt::format(R"yaml(apiVersion: v1
kind: Secret
metadata:
  name: {name}
  namespace: {name_space}
type: Opaque
stringData:
  secret: |
{text}---
)yaml",
                     fmt::arg("name", name),
                     fmt::arg("name_space", options.name_space),
                     fmt::arg("text", indented(secret_text, 4)));
}

/// Returns the arguments of the master, one a line of a YAML list.
std::string master_arguments(const PodShape& shape,
                             const std::vector<std::string>& words) {
  std::vector<std::string> all{"train"};
  for (const auto& word : words)
    all.push_back(literal(word));
  all.insert(all.end(),
             {fmt::format("cluster.nodes={}", shape.nodes),
              fmt::format("cluster.devices_per_node={}", shape.devices),
              fmt::format("cluster.workers_per_node={}", shape.workers),
              "cluster.launcher=manual", "cluster.bind=$(POD_IP)",
              "cluster.ports=7077-7077",
              fmt::format("cluster.secret={}/secret", secret_folder)});
  std::string lines;
  for (const auto& word : all)
    lines += "- " + quoted(word) + "\n";
  return indented(lines, 16);
}

/// Returns what a node's pod runs: its workers, each started again until the
/// pod is to end. The shell leaves TERM to the master, which ends the workers
/// after it has saved.
std::string worker_script(const PodShape& shape, const std::string& program,
                          const std::string& master) {
  return fmt::format(
    R"sh(rm -f /tmp/ending
trap 'touch /tmp/ending' TERM
work() {{
  while [ ! -e /tmp/ending ]; do
    {program} worker --join {master}:7077 --token-file {secret}/secret \
      --number "$1" --threads {threads} --ports 7200-7299
    sleep 1
  done
}}
i=0
while [ "$i" -lt {workers} ]; do
  work "$((JOB_COMPLETION_INDEX * {workers} + i))" &
  i=$((i + 1))
done
until wait; do :; done
)sh",
    fmt::arg("program", shell_quoted(program)), fmt::arg("master", master),
    fmt::arg("secret", secret_folder), fmt::arg("threads", shape.threads),
    fmt::arg("workers", shape.workers));
}

std::string resources(const PodShape& shape) {
  std::string text
    = fmt::format("resources:\n  requests: {{cpu: \"{}\"}}\n", shape.cpus);
  if (shape.gpus)
    text
      += fmt::format("  limits: {{nvidia.com/gpu: \"{}\"}}\n", shape.devices);
  return indented(text, 14);
}

/// Returns what both kinds of pods have after their containers.
std::string volumes(const K8sOptions& options, const std::string& secret) {
  const auto text
    = fmt::format(R"yaml(volumes:
- name: work
  persistentVolumeClaim: {{claimName: {claim}}}
- name: secret
  secret: {{secretName: {secret}, defaultMode: 256}}
- name: memory
  emptyDir: {{medium: Memory}}
)yaml",
                  fmt::arg("claim", options.claim), fmt::arg("secret", secret));
  return indented(text, 12);
}

std::string mounts(const K8sOptions& options) {
  const auto text = fmt::format(R"yaml(workingDir: {folder}
volumeMounts:
- {{name: work, mountPath: {folder}}}
- {{name: secret, mountPath: {secret}, readOnly: true}}
- {{name: memory, mountPath: /dev/shm}}
)yaml",
                                fmt::arg("folder", quoted(options.folder)),
                                fmt::arg("secret", secret_folder));
  return indented(text, 14);
}

constexpr const char* job_set
  = R"yaml(# The claim {claim} has models, data and runs; all pods mount it at {folder}.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
  namespace: {name_space}
spec:
  # the headless service: the master is {master}
  network:
    enableDNSHostnames: true
    subdomain: {name}
    publishNotReadyAddresses: true
  successPolicy:
    operator: All
    targetReplicatedJobs: [master]
  # after the run's own restarts (cluster.max_restarts) and those of its job
  failurePolicy:
    maxRestarts: 3
    rules:
    - name: badInput
      action: FailJobSet
      targetReplicatedJobs: [master]
      onJobFailureReasons: [PodFailurePolicy]
  replicatedJobs:
  - name: master
    replicas: 1
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 3
        podFailurePolicy:
          rules:
          # wrong settings or a plan that cannot run: they would fail again
          - action: FailJob
            onExitCodes: {{operator: In, values: [2, 3]}}
          # stopped after a checkpoint: the next pod continues
          - action: Ignore
            onExitCodes: {{operator: In, values: [75]}}
          - action: Ignore
            onPodConditions: [{{type: DisruptionTarget, status: "True"}}]
        template:
          spec:
            restartPolicy: Never
            # TERM makes the run save a checkpoint
            terminationGracePeriodSeconds: 120
            containers:
            - name: master
              image: {image}
              command: [{program}]
              args:
{master_arguments}              env:
              - name: POD_IP
                valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}
              ports:
              - {{name: join, containerPort: 7077}}
              startupProbe:
                exec: {{command: [test, -s, {status_file}]}}
                periodSeconds: 5
                failureThreshold: 120
{mounts}{volumes}  - name: workers
    replicas: 1
    template:
      spec:
        parallelism: {nodes}
        completions: {nodes}
        completionMode: Indexed
        backoffLimit: 1000
        template:
          spec:
            restartPolicy: OnFailure
            terminationGracePeriodSeconds: 120
            containers:
            - name: workers
              image: {image}
              command: [sh, -c]
              args:
              - |
{script}              env:
              - name: OMP_NUM_THREADS
                value: "{threads}"
              ports:
              - {{name: data, containerPort: 7200}}
              readinessProbe:
                tcpSocket: {{port: 7200}}
                periodSeconds: 10
{resources}{mounts}{volumes})yaml";

} // namespace

std::string k8s_name(const std::string& run_name) {
  std::string name;
  for (const char letter : run_name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 128 && std::isalnum(byte) != 0)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    name = "run-" + name;
  name.resize(std::min(name.size(), longest_name));
  while (name.back() == '-')
    name.pop_back();
  return name;
}

std::string k8s_manifest(const Settings& settings, const K8sOptions& options,
                         const std::string& program,
                         const std::vector<std::string>& words,
                         const std::string& secret_text) {
  const auto name = k8s_name(settings.run.name);
  const auto shape = pod_shape(settings.cluster, options);
  const auto master = fmt::format("{0}-master-0-0.{0}", name);
  const bool own_secret = options.secret.empty();
  const auto secret = own_secret ? name + "-secret" : options.secret;
  const auto status = std::filesystem::path(options.folder) / settings.run.dir
                      / settings.run.name / "status.json";
  return (own_secret ? secret_yaml(secret, options, secret_text) : "")
         + fmt::format(
           fmt::runtime(job_set), fmt::arg("name", name),
           fmt::arg("master", master), fmt::arg("claim", options.claim),
           fmt::arg("folder", options.folder),
           fmt::arg("name_space", options.name_space),
           fmt::arg("image", quoted(options.image)),
           fmt::arg("program", quoted(program)),
           fmt::arg("master_arguments", master_arguments(shape, words)),
           fmt::arg("status_file", quoted(status.string())),
           fmt::arg("nodes", shape.nodes),
           fmt::arg("script",
                    indented(worker_script(shape, program, master), 16)),
           fmt::arg("threads", shape.threads),
           fmt::arg("resources", resources(shape)),
           fmt::arg("mounts", mounts(options)),
           fmt::arg("volumes", volumes(options, secret)));
}

} // namespace troupe::runtime
