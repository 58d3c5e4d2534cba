// The JSON that scripts read: every key that the design names, and the sums that must hold.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

void has_keys(const json& object, const std::vector<std::string>& keys, const std::string& what) {
  ASSERT_TRUE(object.is_object()) << what << ": " << object.dump().substr(0, 100);
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << what << " lacks " << key;
}

/// Sums and signs of one memory object; `what` names it.
void check_memory(const json& memory, const std::string& what) {
  has_keys(memory,
           {"fits", "resident_bytes", "forward_peak_bytes", "backward_peak_bytes", "peak_bytes", "peak_upper_bytes",
            "reserved_bytes", "device_bytes", "capacity_bytes", "margin_bytes", "stage", "cp_rank", "phase", "components"},
           what);
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : memory["components"].items()) {
    EXPECT_GE(bytes.get<std::int64_t>(), 0) << what << " " << name;
    sum += bytes.get<std::int64_t>();
  }
  EXPECT_EQ(sum, memory["device_bytes"]) << what;
  // Margin is what the upper bound leaves of the device; each of the three is rounded to a byte by itself.
  EXPECT_NEAR(memory["capacity_bytes"].get<double>() - memory["peak_upper_bytes"].get<double>(),
              memory["margin_bytes"].get<double>(), 2.0)
      << what;
  EXPECT_GE(memory["peak_bytes"], memory["backward_peak_bytes"]) << what;
  EXPECT_GE(memory["peak_bytes"], memory["forward_peak_bytes"]) << what;
  EXPECT_GE(memory["reserved_bytes"], memory["peak_bytes"]) << what;
}

void check_time(const json& candidate, const std::string& what) {
  const json& time = candidate["time"];
  has_keys(time, {"step_seconds", "compute", "exposed", "bubble", "launch", "optimizer", "other"}, what);
  has_keys(time["exposed"], {"cp", "tp", "pp", "dp"}, what + ".exposed");
  // In the order in which the parts are added: the sum is exact, not nearly so.
  double sum = time["compute"];
  for (const char* part : {"cp", "tp", "pp", "dp"}) sum += time["exposed"][part].get<double>();
  for (const char* part : {"bubble", "launch", "optimizer", "other"}) sum += time[part].get<double>();
  EXPECT_EQ(sum, time["step_seconds"].get<double>()) << what;
  EXPECT_EQ(candidate["step_seconds"], time["step_seconds"]) << what;
  EXPECT_LE(candidate["step_seconds_low"], candidate["step_seconds"]) << what;
  EXPECT_GE(candidate["step_seconds_high"], candidate["step_seconds"]) << what;
}

void check_candidate(const json& candidate, const std::string& what) {
  has_keys(candidate,
           {"recipe", "memory", "step_seconds", "step_seconds_low", "step_seconds_high", "tokens_per_second_per_gpu", "mfu",
            "hfu", "time", "exposed_seconds_per_layer", "shard", "status", "reasons", "differs", "proof", "sources"},
           what);
  check_memory(candidate["memory"], what + ".memory");
  ASSERT_TRUE(candidate["memory"].contains("stages")) << what;
  std::int64_t worst = 0;
  for (const json& stage : candidate["memory"]["stages"]) {
    check_memory(stage, what + ".memory.stages");
    worst = std::max(worst, stage["device_bytes"].get<std::int64_t>());
  }
  EXPECT_EQ(worst, candidate["memory"]["device_bytes"]) << what << ": the candidate's memory is its worst stage's";
  check_time(candidate, what + ".time");
  has_keys(candidate["shard"], {"tokens_per_rank", "heads", "occupancy", "q_len", "kv_len"}, what + ".shard");
  for (const auto& [surface, evidence] : candidate["sources"].items())
    EXPECT_THAT(evidence.get<std::string>(), testing::AnyOf("measured", "fitted", "assumed")) << what << " " << surface;
  EXPECT_THAT(candidate["status"].get<std::string>(), testing::AnyOf("ship", "control", "reject", "ok")) << what;
}

json without_run_facts(json plan) {
  plan.erase("run");
  plan["stats"].erase("seconds");
  plan["stats"].erase("timeline_seconds");
  return plan;
}

TEST(PlanJson, HoldsWhatTheDesignNames) {
  for (const char* name : {"llama3-8b-128k-1node", "llama3-70b-32k-8nodes"}) {
    SCOPED_TRACE(name);
    const json plan = cpfit_json({"plan", example(name), "--no-crossover"});
    EXPECT_EQ(plan["schema_version"], 1);
    has_keys(plan, {"run", "verdict", "neighbours", "levers", "crossover", "candidates", "front", "stats"}, "plan");
    has_keys(plan["verdict"], {"ship", "control", "answer"}, "verdict");
    has_keys(plan["crossover"], {"needed_at_tokens", "faster_at_tokens", "held_constant"}, "crossover");
    has_keys(plan["stats"], {"considered", "legal", "evaluated", "seconds", "rejected_by_rule"}, "stats");
    EXPECT_TRUE(plan["run"].is_null()) << "nothing was stored";
    check_candidate(plan["verdict"]["ship"], "ship");
    check_candidate(plan["verdict"]["control"], "control");
    EXPECT_EQ(plan["verdict"]["ship"]["status"], "ship");
    ASSERT_FALSE(plan["candidates"].empty());
    ASSERT_FALSE(plan["front"].empty());
    for (const json& candidate : plan["candidates"]) check_candidate(candidate, "candidate");
    for (const json& candidate : plan["front"]) check_candidate(candidate, "front");
    ASSERT_FALSE(plan["neighbours"].empty());
    for (const json& neighbour : plan["neighbours"]) {
      has_keys(neighbour, {"recipe", "rule", "amount", "unit", "sentence"}, "neighbour");
      EXPECT_FALSE(neighbour["sentence"].get<std::string>().empty());
    }
    for (const json& lever : plan["levers"]) has_keys(lever, {"change", "gains", "costs"}, "lever");
    std::int64_t rejected = 0;
    for (const auto& [rule, count] : plan["stats"]["rejected_by_rule"].items()) rejected += count.get<std::int64_t>();
    EXPECT_EQ(plan["stats"]["considered"].get<std::int64_t>() - rejected, plan["stats"]["legal"].get<std::int64_t>());
    for (const json& ledger : plan["ledgers"]) {
      std::int64_t sum = 0;
      for (const json& entry : ledger["entries"]) sum += entry["bytes"].get<std::int64_t>();
      EXPECT_EQ(sum, ledger["device_bytes"]) << ledger["recipe"];
    }
  }
}

/// The sum of the parts of one rank, in the order in which they are added.
double sum_of(const json& time) {
  double sum = time["compute"];
  for (const char* part : {"cp", "tp", "pp", "dp"}) sum += time["exposed"][part].get<double>();
  for (const char* part : {"bubble", "launch", "optimizer", "other"}) sum += time[part].get<double>();
  return sum;
}

/// What a step at timeline fidelity says beyond a candidate.
void check_timeline(const json& simulated, const std::string& what) {
  has_keys(simulated["timeline"],
           {"screen_step_seconds", "ratio", "disagreement", "ranks", "axes", "edges", "critical_path", "folded", "events"},
           what + ".timeline");
  const json& timeline = simulated["timeline"];
  const double step = simulated["step_seconds"];
  EXPECT_GT(timeline["events"].get<std::int64_t>(), 0);
  ASSERT_FALSE(timeline["ranks"].empty()) << what;
  bool last_seen = false;
  for (const json& rank : timeline["ranks"]) {
    has_keys(rank, {"rank", "node", "stage", "time"}, what + ".ranks");
    EXPECT_EQ(sum_of(rank["time"]), rank["time"]["step_seconds"].get<double>()) << what << " rank " << rank["rank"];
    // Every rank's time is the step; its nine parts are rounded by themselves, each to a quarter of a picosecond.
    EXPECT_NEAR(rank["time"]["step_seconds"].get<double>(), step, 9 * 0.25e-12) << what << " rank " << rank["rank"];
    if (rank["rank"] != timeline["last_rank"]) continue;
    last_seen = true;
    EXPECT_EQ(rank["time"], simulated["time"]) << "the candidate's time is that of the rank that ends last";
  }
  EXPECT_TRUE(last_seen) << what;
  std::map<std::string, double> exposed;
  for (const json& row : timeline["axes"]) {
    has_keys(row, {"axis", "pass", "layer", "bytes", "transfers", "busy_seconds", "hidden_seconds", "exposed_seconds"},
             what + ".axes");
    EXPECT_NEAR(
        row["running_seconds"].get<double>() + row["waiting_seconds"].get<double>() + row["slowed_kernel_seconds"].get<double>(),
        row["exposed_seconds"].get<double>(), 1e-11);
    EXPECT_NEAR(row["busy_seconds"].get<double>(), row["hidden_seconds"].get<double>() + row["running_seconds"].get<double>(),
                1e-11);
    exposed[row["axis"]] += row["exposed_seconds"].get<double>();
  }
  for (const auto& [axis, sum] : exposed)
    EXPECT_NEAR(sum, simulated["time"]["exposed"][axis].get<double>(), 1e-9 * step) << what << " " << axis;
  double path = 0;
  for (const json& part : timeline["critical_path"]) path += part["seconds"].get<double>();
  EXPECT_NEAR(path, step, 1e-9 * step) << what << ": the critical path is as long as the step";
  double busy = step * (1 + 1e-9);
  for (const json& link : simulated["links"]) {
    EXPECT_LE(link["busy_seconds"].get<double>(), busy) << what << ": the busiest link comes first, none beyond the step";
    busy = link["busy_seconds"];
  }
  for (const json& edge : timeline["edges"]) has_keys(edge, {"from_rank", "to_rank", "bytes", "busy_seconds"}, what + ".edges");
}

TEST(TimelineJson, IsACandidateWhoseTimeAddsUpExactly) {
  for (const char* recipe : {"tp=2,cp=4,pp=1,dp=1,recompute=full", "tp=1,cp=8,pp=1,dp=1,recompute=full",
                             "tp=2,cp=2,pp=2,dp=1,recompute=full", "tp=1,cp=1,pp=1,dp=8,recompute=full"}) {
    const json simulated = cpfit_json({"simulate", example("llama3-8b-128k-1node"), "--recipe", recipe, "--fidelity", "timeline"},
                                      std::string(recipe).find("cp=1,") == std::string::npos ? 0 : 3);
    check_candidate(simulated, recipe);
    check_timeline(simulated, recipe);
    EXPECT_NEAR(simulated["timeline"]["ratio"].get<double>() * simulated["timeline"]["screen_step_seconds"].get<double>(),
                simulated["step_seconds"].get<double>(), 1e-9);
    EXPECT_EQ(simulated["timeline"]["disagreement"] == "", std::abs(simulated["timeline"]["ratio"].get<double>() - 1) <= 0.02);
    EXPECT_FALSE(simulated.contains("quiet"));
  }
}

TEST(TraceJson, ReadsWhatSimulateWrote) {
  // cp=8 on one node: every rank of our own trace has ring messages, nearly all of them beside attention. What the intervals say
  // is exposed is at most what the schedule says the ring moved, and adds up with what is hidden.
  const Folder folder;
  const std::string path = folder / "step.json";
  const json simulated = cpfit_json({"simulate", example("llama3-8b-128k-1node"), "--recipe",
                                     "tp=1,cp=8,pp=1,dp=1,recompute=full", "--fidelity", "timeline", "--trace", path});
  const json trace = cpfit_json({"trace", path});
  ASSERT_EQ(trace["devices"].size(), simulated["timeline"]["ranks"].size());
  for (std::size_t i = 0; i < trace["devices"].size(); ++i)
    EXPECT_EQ(trace["devices"][i]["rank"], simulated["timeline"]["ranks"][i]["rank"]);
  for (const json& device : trace["devices"]) {
    has_keys(device, {"communication_seconds", "compute_seconds", "overlapped_seconds", "exposed_seconds", "span_seconds"},
             "device");
    EXPECT_EQ(device["format"], "cpfit");
    EXPECT_GT(device["communication_seconds"].get<double>(), 0.0);
    EXPECT_NEAR(device["overlapped_seconds"].get<double>() + device["exposed_seconds"].get<double>(),
                device["communication_seconds"].get<double>(), 1e-9);
    EXPECT_GT(device["overlapped_seconds"].get<double>(), 0.5 * device["communication_seconds"].get<double>());
  }
}

TEST(TimelineJson, OfADisturbedStepHoldsTheQuietOneBeside) {
  const Words words{"simulate", example("llama3-8b-128k-1node"), "--recipe", "tp=1,cp=8,pp=1,dp=1,recompute=full", "--fidelity",
                    "timeline"};
  Words slow = words;
  slow.insert(slow.end(), {"--slow-rank", "3=1.5"});
  const json quiet = cpfit_json(words), disturbed = cpfit_json(slow);
  check_candidate(disturbed, "disturbed");
  check_timeline(disturbed, "disturbed");
  has_keys(disturbed, {"quiet", "disturbances", "link_changes"}, "disturbed");
  EXPECT_EQ(disturbed["disturbances"].size(), 1u);
  EXPECT_EQ(disturbed["quiet"]["step_seconds"], quiet["step_seconds"]);
  EXPECT_EQ(disturbed["quiet"]["time"], quiet["time"]);
  EXPECT_EQ(disturbed["quiet"]["links"], quiet["links"]);
  EXPECT_GT(disturbed["step_seconds"], quiet["step_seconds"]);
  EXPECT_EQ(disturbed["timeline"]["screen_step_seconds"], quiet["timeline"]["screen_step_seconds"]);
}

TEST(PlanJson, ConfirmedCandidatesCarryTheirTimeline) {
  const json plan = cpfit_json({"plan", example("llama3-8b-128k-1node"), "--no-crossover"});
  const json& ship = plan["verdict"]["ship"];
  has_keys(ship["timeline"], {"step_seconds", "ratio", "exposed_seconds_per_layer", "disagreement"}, "ship.timeline");
  const json simulated = cpfit_json(
      {"simulate", example("llama3-8b-128k-1node"), "--recipe", ship["recipe"].get<std::string>(), "--fidelity", "timeline"});
  EXPECT_EQ(simulated["step_seconds"], ship["timeline"]["step_seconds"]) << "one recipe, one timeline";
  EXPECT_EQ(simulated["exposed_seconds_per_layer"], ship["timeline"]["exposed_seconds_per_layer"]);
  EXPECT_EQ(simulated["timeline"]["screen_step_seconds"], ship["step_seconds"]);
  EXPECT_TRUE(plan["stats"].contains("timeline_seconds"));
  const json without = cpfit_json({"plan", example("llama3-8b-128k-1node"), "--no-crossover", "--no-timeline"});
  EXPECT_FALSE(without["verdict"]["ship"].contains("timeline"));
}

TEST(PlanJson, IsTheSameTwice) {
  const Words words{"plan", example("gemma3-12b-128k-window")};
  EXPECT_EQ(without_run_facts(cpfit_json(words)), without_run_facts(cpfit_json(words)));
}

TEST(PlanJson, OfNothingThatFitsIsWholeAndSaysSo) {
  const Folder folder;
  const json plan = cpfit_json({"plan", folder.file("a.toml", small_scenario("[search]\ncp = [3]\n"))}, 3);
  EXPECT_TRUE(plan["verdict"]["ship"].is_null());
  EXPECT_TRUE(plan["verdict"]["control"].is_null());
  EXPECT_TRUE(plan["stats"]["rejected_by_rule"].is_object());
  EXPECT_TRUE(plan["candidates"].is_array());
}

TEST(SimulateJson, IsOneCandidateThatReadsBack) {
  // The scenario's own recipe differs from the defaults: a printed recipe must not take these values on its way back.
  const Folder folder;
  const std::string scenario =
      folder.file("a.toml", small_scenario("[recipe]\nrecompute = \"full\"\nmicro_batch = 2\nstate_sharding = \"none\"\n"));
  const json plan = cpfit_json({"plan", scenario, "--no-crossover"});
  const json& ship = plan["verdict"]["ship"];
  const json simulated = cpfit_json({"simulate", scenario, "--recipe", ship["recipe"].get<std::string>()});
  EXPECT_EQ(simulated["schema_version"], 1);
  check_candidate(simulated, "simulate");
  for (const char* key : {"recipe", "step_seconds", "time", "memory", "shard", "links"})
    EXPECT_EQ(simulated[key], ship[key]) << key;
}

TEST(SimulateJson, LedgerSumsToTheStage) {
  const json simulated = cpfit_json({"simulate", example("llama3-70b-32k-8nodes"), "--recipe",
                                     "tp=8,cp=2,pp=4,dp=1,recompute=full", "--ledger", "--stage", "3"});
  EXPECT_EQ(simulated["ledger"]["stage"], 3);
  std::int64_t sum = 0;
  for (const json& entry : simulated["ledger"]["entries"]) sum += entry["bytes"].get<std::int64_t>();
  EXPECT_EQ(sum, simulated["ledger"]["device_bytes"]);
  EXPECT_EQ(simulated["memory"]["stages"][3]["device_bytes"], simulated["ledger"]["device_bytes"]);
}

TEST(SimulateJson, FrameworkOfTheRecipeDecides) {
  const std::string scenario = example("llama3-8b-128k-1node");
  const Said said =
      cpfit({"simulate", scenario, "--recipe", "cp=8,cp_comm=all_gather,state_sharding=zero3,framework=torchtitan"});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_THAT(said.err, HasSubstr("torchtitan has no all_gather"));
}

TEST(CurveJson, HasAPointPerDegreeAndLength) {
  const json curve = cpfit_json({"curve", example("llama3-8b-128k-1node"), "--seq", "64k,128k", "--cp", "1,2", "--recipe",
                                 "tp=2,cp=2,pp=1,dp=2,recompute=full"});
  has_keys(curve, {"schema_version", "held_constant", "control", "crossover", "points"}, "curve");
  ASSERT_EQ(curve["points"].size(), 4u);
  for (const json& point : curve["points"]) {
    check_memory(point["candidate"]["memory"], "point");
    check_time(point["candidate"], "point");
    EXPECT_EQ(point["gpus"], 4 * point["cp"].get<int>()) << "tp 2 * dp 2 * cp";
  }
}

TEST(ValidateJson, HoldsWhatTheDesignNames) {
  const Folder folder;
  const std::string csv = folder.file(
      "rows.csv",
      "source,source_location,gpu,gpu_mem_gb,nodes_or_gpus,interconnect,framework,model,n_params,layers,hidden,ffn_hidden,heads,"
      "kv_heads,vocab,seq_len,micro_batch,global_batch,tp,pp,vpp,cp,cp_method,dp,ep,sharding,precision,recompute,step_time_s,"
      "tokens_per_s_per_gpu,tflops_per_gpu,mfu,peak_mem_gb,notes\n"
      "test,here,H100,80,8,NVLink,Megatron-LM,Llama 3 8B,8B,32,4096,14336,32,8,128256,8192,1,16,2,1,,1,,4,,,BF16,,10,,,,,\n"
      "test,here,NoSuchGPU,80,8,NVLink,Megatron-LM,Llama 3 "
      "8B,8B,32,4096,14336,32,8,128256,8192,1,16,2,1,,1,,4,,,BF16,,10,,,,,\n");
  const json scored = cpfit_json({"validate", csv});
  has_keys(scored, {"schema_version", "rows", "summary", "skipped"}, "validate");
  ASSERT_FALSE(scored["rows"].empty()) << scored.dump();
  for (const json& row : scored["rows"]) {
    has_keys(row, {"line", "metric", "measured", "predicted", "low", "high", "error"}, "row");
    EXPECT_NEAR(row["error"].get<double>(), row["predicted"].get<double>() / row["measured"].get<double>() - 1.0, 1e-12);
    const json& metric = scored["summary"][row["metric"].get<std::string>()];
    has_keys(metric, {"rows", "mape", "median_abs_error", "max_abs_error", "bias"}, "summary");
    EXPECT_NEAR(metric["max_abs_error"].get<double>(), std::abs(row["error"].get<double>()), 1e-12) << "one row per metric";
  }
  EXPECT_EQ(scored["rows"][0]["line"], 2);
  ASSERT_EQ(scored["skipped"].size(), 1u);
  EXPECT_EQ(scored["skipped"][0]["line"], 3);
  EXPECT_FALSE(scored["skipped"][0]["reason"].get<std::string>().empty());
}

TEST(OtherJson, EveryCommandPrintsOneObjectWithItsVersion) {
  for (const Words& words : std::vector<Words>{{"presets", "models"},
                                               {"presets", "gpus"},
                                               {"presets", "clusters"},
                                               {"presets", "frameworks"},
                                               {"presets", "rates"},
                                               {"topology", "show", "dgx-h100", "--nodes", "2"},
                                               {"topology", "check", "dgx-h100"}}) {
    SCOPED_TRACE(testing::PrintToString(words));
    EXPECT_EQ(cpfit_json(words)["schema_version"], 1);
  }
}

}  // namespace
}  // namespace cpfit::cli_test
