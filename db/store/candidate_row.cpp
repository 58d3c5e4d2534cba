#include "db/store/candidate_row.h"

namespace cpfit {

namespace {

constexpr int kPhaseCount = 4, kFitCount = 3, kStatusCount = 4;

constexpr const char* kStageMemoryColumns =
    "memory_stage, memory_cp_rank, memory_phase, memory_moment, forward_moment, backward_moment, resident_bytes, "
    "forward_peak_bytes, backward_peak_bytes, peak_bytes, "
    "reserved_bytes, device_bytes, weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes, recompute_bytes, "
    "cp_buffers_bytes, loss_bytes, transient_bytes, pipeline_bytes, workspace_bytes, reserved_extra_bytes, communicators_bytes, "
    "context_bytes";

// What follows from other columns, so that SQL can filter, group and order.
constexpr const char* kDerivedColumns =
    "tp, cp, pp, dp, vpp, gpus, micro_batch, cp_comm, recompute, state_sharding, step_seconds";
constexpr int kDerivedColumnCount = 11;

constexpr const char* kFigureColumns =
    "verdict, capacity_bytes, device_upper_bytes, margin_bytes, compute_seconds, exposed_cp_seconds, exposed_tp_seconds, "
    "exposed_pp_seconds, exposed_dp_seconds, bubble_seconds, launch_seconds, optimizer_seconds, other_seconds, "
    "step_low_seconds, step_high_seconds, tokens_per_second_per_gpu, mfu_share, hfu_share, cp_forward_exposed_seconds, "
    "cp_backward_exposed_seconds, cp_forward_message_seconds, cp_backward_message_seconds, cp_forward_step_compute_seconds, "
    "cp_sent_per_layer_bytes, cp_crosses_node, relative_sigma, in_range, differs";
constexpr int kFigureColumnCount = 28;

void bind_derived(Binder& binder, const Candidate& candidate) {
  const Recipe& recipe = candidate.recipe;
  binder.integer(recipe.tp).integer(recipe.cp).integer(recipe.pp).integer(recipe.dp).integer(recipe.vpp);
  binder.integer(recipe.world()).integer(recipe.micro_batch).word(name_of(recipe.cp_comm));
  binder.word(name_of(recipe.recompute.kind)).word(name_of(recipe.state_sharding)).seconds(candidate.time.step());
}

void bind_figures(Binder& binder, const Candidate& candidate) {
  const MemoryVerdict& verdict = candidate.verdict;
  binder.word(name_of(verdict.fit)).bytes(verdict.capacity).bytes(verdict.upper).bytes(verdict.margin);
  const TimeBreakdown& time = candidate.time;
  binder.seconds(time.compute).seconds(time.exposed_cp).seconds(time.exposed_tp).seconds(time.exposed_pp);
  binder.seconds(time.exposed_dp).seconds(time.bubble).seconds(time.launch).seconds(time.optimizer).seconds(time.other);
  binder.seconds(candidate.step_low).seconds(candidate.step_high);
  binder.real(candidate.tokens_per_second_per_gpu).real(candidate.mfu).real(candidate.hfu);
  const CpExposure& cp = candidate.cp;
  binder.seconds(cp.forward_exposed).seconds(cp.backward_exposed).seconds(cp.forward_message).seconds(cp.backward_message);
  binder.seconds(cp.forward_step_compute).bytes(cp.bytes_sent_per_layer).integer(cp.crosses_node);
  binder.real(candidate.relative_sigma).integer(candidate.in_range).text(join_words(candidate.differs));
}

void read_figures(RowReader& row, Candidate& candidate) {
  MemoryVerdict& verdict = candidate.verdict;
  verdict.fit = row.named<Fit>(kFitCount);
  for (Bytes* bytes : {&verdict.capacity, &verdict.upper, &verdict.margin}) *bytes = row.bytes();
  TimeBreakdown& time = candidate.time;
  for (Seconds* part : {&time.compute, &time.exposed_cp, &time.exposed_tp, &time.exposed_pp, &time.exposed_dp, &time.bubble,
                        &time.launch, &time.optimizer, &time.other, &candidate.step_low, &candidate.step_high}) {
    *part = row.seconds();
  }
  for (double* figure : {&candidate.tokens_per_second_per_gpu, &candidate.mfu, &candidate.hfu}) *figure = row.real();
  CpExposure& cp = candidate.cp;
  for (Seconds* part :
       {&cp.forward_exposed, &cp.backward_exposed, &cp.forward_message, &cp.backward_message, &cp.forward_step_compute}) {
    *part = row.seconds();
  }
  cp.bytes_sent_per_layer = row.bytes();
  cp.crosses_node = row.flag();
  candidate.relative_sigma = static_cast<float>(row.real());
  candidate.in_range = row.flag();
  candidate.differs = split_words(row.text());
}

Recipe read_recipe(const std::string& text) {
  Outcome<Recipe> recipe = parse_recipe(text, Recipe{});
  if (recipe.ok()) return std::move(recipe).value();
  throw Error("the database holds the recipe '" + text + "' that this cpfit cannot read: " + to_text(recipe.problems().front()) +
              ". Update cpfit");
}

}  // namespace

std::string stage_memory_columns() { return kStageMemoryColumns; }

void bind_stage_memory(Binder& binder, const StageMemory& memory) {
  binder.integer(memory.stage).integer(memory.cp_rank).word(name_of(memory.phase)).word(name_of(memory.moment));
  binder.word(name_of(memory.forward_moment)).word(name_of(memory.backward_moment)).bytes(memory.resident);
  binder.bytes(memory.forward_peak).bytes(memory.backward_peak).bytes(memory.peak).bytes(memory.reserved).bytes(memory.device);
  for (const Bytes component : memory.components) binder.bytes(component);
}

StageMemory read_stage_memory(RowReader& row) {
  StageMemory memory;
  memory.stage = row.small_integer();
  memory.cp_rank = row.small_integer();
  memory.phase = row.named<Phase>(kPhaseCount);
  for (Moment* moment : {&memory.moment, &memory.forward_moment, &memory.backward_moment})
    *moment = row.named<Moment>(kMomentCount);
  for (Bytes* bytes :
       {&memory.resident, &memory.forward_peak, &memory.backward_peak, &memory.peak, &memory.reserved, &memory.device}) {
    *bytes = row.bytes();
  }
  for (Bytes& component : memory.components) component = row.bytes();
  return memory;
}

CandidateWriter::CandidateWriter(SQLite::Database& database, std::int64_t run)
    : database_(database),
      run_(run),
      insert_(database, std::string("INSERT INTO candidate (run_id, origin, recipe, status, ") + kDerivedColumns + ", " +
                            kStageMemoryColumns + ", " + kFigureColumns + ") VALUES (" +
                            placeholders(4 + kDerivedColumnCount + kStageMemoryColumnCount + kFigureColumnCount) + ")"),
      insert_reason_(database, "INSERT INTO candidate_reason (candidate_id, ordinal, sentence) VALUES (?, ?, ?)") {}

std::int64_t CandidateWriter::write(const Candidate& candidate, std::string_view origin) {
  const std::string recipe = to_text(candidate.recipe);
  Binder binder(insert_);
  binder.integer(run_).word(origin).text(recipe).word(name_of(candidate.status));
  bind_derived(binder, candidate);
  bind_stage_memory(binder, candidate.memory);
  bind_figures(binder, candidate);
  binder.run();
  const std::int64_t id = database_.getLastInsertRowid();
  std::int64_t ordinal = 0;
  for (const std::string& sentence : candidate.reasons) {
    Binder(insert_reason_).integer(id).integer(ordinal++).text(sentence).run();
  }
  return id;
}

std::string candidate_columns() { return std::string("id, recipe, status, ") + kStageMemoryColumns + ", " + kFigureColumns; }

Candidate read_candidate(RowReader& row, std::int64_t& id) {
  Candidate candidate;
  id = row.integer();
  candidate.recipe = read_recipe(row.text());
  candidate.status = row.named<CandidateStatus>(kStatusCount);
  candidate.memory = read_stage_memory(row);
  read_figures(row, candidate);
  return candidate;
}

}  // namespace cpfit
