#include "sample_records.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace cpfit::sample {

namespace {

/// Hands out figures that never repeat and that binary fractions do not hold exactly.
class Figures {
 public:
  explicit Figures(double seed) : next_(seed) {}
  double operator()() { return next_ += 1.1; }
  Bytes bytes() { return Bytes((*this)() * 1e9); }
  Seconds seconds() { return Seconds((*this)() * 1e-3); }

 private:
  double next_;
};

StageMemory stage_memory(Figures& figure) {
  StageMemory memory;
  memory.stage = 3;
  memory.cp_rank = 2;
  memory.phase = Phase::kBackward;
  memory.moment = Moment::kAttentionBackward;
  memory.forward_moment = Moment::kAttentionForward;
  memory.backward_moment = Moment::kHeadBackward;
  for (Bytes* bytes :
       {&memory.resident, &memory.forward_peak, &memory.backward_peak, &memory.peak, &memory.reserved, &memory.device}) {
    *bytes = figure.bytes();
  }
  for (Bytes& component : memory.components) component = figure.bytes();
  return memory;
}

}  // namespace

Candidate candidate(std::int32_t i) {
  Figures figure(i);
  Candidate made;
  made.recipe.tp = 2;
  made.recipe.cp = 4;
  made.recipe.dp = i + 1;
  made.recipe.micro_batch = 1 + i % 4;
  made.recipe.recompute.kind = i % 2 == 0 ? RecomputeKind::kNone : RecomputeKind::kFull;
  made.memory = stage_memory(figure);
  made.verdict = {static_cast<Fit>(i % 3), figure.bytes(), figure.bytes(), Bytes(-figure())};
  TimeBreakdown& time = made.time;
  for (Seconds* part : {&time.compute, &time.exposed_cp, &time.exposed_tp, &time.exposed_pp, &time.exposed_dp, &time.bubble,
                        &time.launch, &time.optimizer, &time.other, &made.step_low, &made.step_high}) {
    *part = figure.seconds();
  }
  made.tokens_per_second_per_gpu = 1e6 / (i + 1);
  made.mfu = figure() / 1000;
  made.hfu = figure() / 1000;
  CpExposure& cp = made.cp;
  for (Seconds* part :
       {&cp.forward_exposed, &cp.backward_exposed, &cp.forward_message, &cp.backward_message, &cp.forward_step_compute}) {
    *part = figure.seconds();
  }
  cp.bytes_sent_per_layer = figure.bytes();
  cp.crosses_node = i % 2 == 1;
  made.relative_sigma = 0.07F;
  made.in_range = i % 5 != 0;
  return made;
}

std::vector<Candidate> batch(std::int32_t first, std::int32_t count) {
  std::vector<Candidate> candidates;
  candidates.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = first; i < first + count; ++i) candidates.push_back(candidate(i));
  return candidates;
}

Provenance provenance(const std::string& scenario_text) {
  Provenance from;
  from.tool_version = "0.1.0";
  from.scenario_name = "llama 8B, 128k";
  from.scenario_path = "examples/llama.toml";
  from.scenario_text = scenario_text;
  from.input_hashes = {{"scenario", "00ff"}, {"presets/gpus.toml", "11ee"}};
  from.rule_set = "megatron-core 0.14";
  from.rates_version = "2025-11";
  return from;
}

PlanResult plan_result() {
  PlanResult result;
  result.provenance = provenance();
  result.ships = true;
  result.ship = candidate(10);
  result.ship.status = CandidateStatus::kShip;
  result.ship.reasons = {"fits with 6.1 GiB to spare", "hides its ring: 1.3 of the compute"};
  result.ship.differs = {"cp", "micro_batch"};
  result.has_control = true;
  result.control = candidate(11);
  result.control.status = CandidateStatus::kControl;
  result.answer = "cp=4 is the smallest degree that fits; it\nhides its ring — 'quoted' text survives.";
  result.neighbours = {{candidate(12), "memory", 6.1e9, "bytes", "cp=2 misses by 6.1 GiB on stage 0 in backward"},
                       {candidate(13), "exposed_cp", 0.12, "share", "cp=8 leaves 12 % of the step exposed"}};
  result.levers = {{"recompute=full", "frees 20 GiB", "costs 30 % of the step", 1.25, {"recompute"}}, {"a", "b", "c", 0.5, {}}};
  result.crossover = {65536, 131072, "tp=2, pp=1"};
  result.candidates = {result.ship, candidate(14), candidate(12)};
  result.candidates[2].status = CandidateStatus::kReject;
  result.front = {candidate(14), result.ship};
  result.sweep = {{candidate(20), 8}, {candidate(21), 16}};
  Figures figure(500);
  StageLedger ledger;
  ledger.summary = stage_memory(figure);
  ledger.entries = {{Component::kWeights, "attention.qkv", "2*H*(a+2g)*d/tp", "cp_model.md B", figure.bytes()},
                    {Component::kContext, "cuda.context", "", "", Bytes(0.5)}};
  StageLedger empty;
  empty.summary = stage_memory(figure);
  result.ledgers = {{to_text(result.ship.recipe), ledger}, {to_text(result.control.recipe), empty}};
  result.links = {{to_text(result.ship.recipe), {{"gpu", "switch", figure.bytes(), figure.seconds()}, {"switch", "gpu", {}, {}}}},
                  {to_text(result.control.recipe), {{"nic", "leaf", figure.bytes(), figure.seconds()}}}};
  result.stats = {1000, 400, 300, 0.25, {{"legality.world_size", 500}, {"legality.heads", 100}}, 0.75};
  result.confirmations = {
      {to_text(result.ship.recipe), figure.seconds(), figure.seconds(), figure.seconds(), figure.seconds(),
       "timeline and screen differ by +3.0 %", "", 123456},
      {to_text(result.control.recipe), figure.seconds(), {}, {}, {}, "", "about 2 million activities", 2000000}};
  return result;
}

ValidationResult validation_result() {
  ValidationResult result;
  result.path = "published/megatron.csv";
  result.rows = {{2, "8B", Metric::kStepSeconds, 1.1, 1.2, 1.0, 1.3, 0.09, "healthy", "recompute,vpp"},
                 {3, "70B", Metric::kPeakBytes, 7e10, 6.5e10, 6e10, 7.1e10, -0.07, "other", ""}};
  result.summary = {{Metric::kStepSeconds, 1, 0.09, 0.091, 0.092, 0.093, 0.5}, {Metric::kPeakBytes, 1, 0.1, 0.2, 0.3, -0.4, 1}};
  result.groups = {{"healthy", {result.summary[0]}}, {"other", {result.summary[1], result.summary[0]}}};
  result.out_of_memory = {9, 8, 7, 1, 2, 3};
  result.skipped = {{4, "no sequence length"}, {9, "mixture of experts"}};
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "cpfit_store_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code left_behind;
  std::filesystem::remove_all(path_, left_behind);
}

int start_child(const std::function<void()>& work) {
  const int child = ::fork();
  if (child != 0) return child;
  try {
    work();
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "child: %s\n", exception.what());
    ::_exit(1);
  }
  ::_exit(0);
}

int wait_for(int child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace cpfit::sample
