// One row of a published kernel or collective table as cpfit's own operators: what ran, on which device, and how long it took.
// A reader (calibrate/read) makes it, sim/evaluate predicts it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/framework/rule_set.h"
#include "model/rates/rate_set.h"
#include "model/recipe/rank_grid.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"

namespace cpfit {

enum class KernelKind : std::uint8_t {
  kGemm,                 // `gemms`, one after the other
  kAttention,            // one device
  kMemoryBound,          // a norm: `traffic` bytes in each pass
  kCollective,           // one collective of a group
  kDistributedAttention  // one attention operator over cp ranks, ring and head exchange included
};

struct MeasuredKernel {
  std::int64_t line = 0;  // of the CSV file, header = 1
  std::string label;
  std::string group;     // scoring group: GPU and library, so that errors can be read by device
  std::string supposed;  // cells that contradict the source's own scripts or times and are read otherwise ("head_dim")
  KernelKind kind = KernelKind::kGemm;
  Cluster cluster;     // the device is cluster.gpu; the network matters to collectives and distributed attention only
  double seconds = 0;  // measured
  double warm = 0;     // kGemm, kAttention: 1 where calls follow one another for so long that the GPU is at its power limit

  // kGemm
  std::vector<GemmShape> gemms;
  MathKind math = MathKind::kBf16;

  // kAttention (the work of this device), kDistributedAttention (batch, heads and the whole sequence: q_len = kv_len = s)
  AttentionShape attention;
  AttentionLibrary library = AttentionLibrary::kCudnn;
  bool forward = false, backward = false;

  // kMemoryBound
  std::optional<NormShape> norm;            // where it is a norm of known kernels; its traffic is that below
  Bytes forward_traffic, backward_traffic;  // read + written
  std::int32_t passes_launched = 1;         // kernels per pass

  // kCollective
  CollectiveKind collective = CollectiveKind::kAllReduce;
  GroupShape members;
  Bytes bytes;  // as collective_time() counts them
  CollectiveForm form = CollectiveForm::kUsual;

  // kDistributedAttention: cp, cp_comm, a2a_degree, shard_layout of this recipe; the framework's rules say how the ring runs
  Recipe recipe;
  std::shared_ptr<const RuleSet> rules;
  bool synchronized = false;    // the host waits after each call: what it queues before the first kernel is not hidden
  bool packed_qkv = false;      // Q, K and V leave in one head exchange
  bool packed_kv = false;       // K and V are slices of one tensor whose gradient is asked for
  bool indexed_halves = false;  // halves of shards by indices that the host copies to the GPU, waiting for it
  /// Packings that the calls take in turn (varlen), each the documents of one sequence; empty: one document.
  std::vector<std::vector<DocumentClass>> packings;
};

}  // namespace cpfit
