// A recipe bundle: one recipe with everything that its prediction and its proof stand on, as one JSON file that people read and
// another machine verifies. It holds no clock and no path outside its own files: the same run gives the same bundle, byte for
// byte, and the SHA-256 over these bytes is its name. Made by `cpfit runs export`, verified by `cpfit runs import`, stored by db.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/quantity/problem.h"
#include "model/record/figures.h"
#include "model/record/run.h"
#include "model/record/verification.h"

namespace cpfit {

inline constexpr int kBundleVersion = 1;
inline constexpr std::int64_t kMaxBundledRanks = 1 << 20;  // each has a line of its own

/// Name and value for people, in an order.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// A file in full.
struct BundledFile {
  std::string path;  // as the scenario resolves it
  std::string text;
  friend bool operator==(const BundledFile&, const BundledFile&) = default;
};

/// A recipe with its figures. Roles: "ship", or "chosen" where a person named another one; "out_of_memory": a smaller CP degree
/// that does not fit; "no_margin": one that fits but for the required margin; "without_cp": the best recipe without CP, which
/// fits too; "slow": a larger degree that exposes its traffic or takes longer.
struct BundledRecipe {
  std::string role;
  std::string recipe;     // every key
  std::int64_t gpus = 0;  // of the cluster it was evaluated on: controls of the controlled sweep have more or fewer
  std::string fits;       // "fits", "at_risk", "oom"
  std::string sentence;   // what it shows, with figures
  std::vector<Figure> figures;
  friend bool operator==(const BundledRecipe&, const BundledRecipe&) = default;
};

/// Where a rank lies: its coordinate in the mesh, its host and the GPU of that host.
struct BundledRank {
  std::int64_t rank = 0;
  std::int32_t tp = 0, cp = 0, dp = 0, pp = 0;
  std::int64_t node = 0;
  std::int32_t gpu = 0;
  friend bool operator==(const BundledRank&, const BundledRank&) = default;
};

/// A case of the equivalence suite that speaks of the recipe's attention. Errors are normwise.
struct BundledCase {
  std::string name;        // "te_p2p | causal 240 | zigzag | cp 4 | bf16"
  std::uint64_t seed = 0;  // of its fixture; 0: not known, another program's run
  std::string fixture;     // SHA-256 of its inputs; empty: not known
  bool run = false;        // false: what `cpfit verify` would run; nothing was stored
  bool passed = false;
  std::vector<Figure> errors;  // by tensor: "out", "lse", "dq", "dk", "dv"; empty unless run
  friend bool operator==(const BundledCase&, const BundledCase&) = default;
};

struct BundledEquivalence {
  std::string sentence;                // whose attention was proved, or that nothing was
  std::string method, layout, dtype;   // what the recipe runs; method empty: nothing is cut
  std::vector<std::string> masks;      // of its layers
  std::vector<AttentionProof> proofs;  // one a mask; empty: unproven
  std::vector<BundledCase> cases;      // at the recipe's CP degree, in the order of the suite
  friend bool operator==(const BundledEquivalence&, const BundledEquivalence&) = default;
};

struct Bundle {
  std::string tool_version;
  std::string scenario_name;
  BundledFile scenario;
  std::vector<BundledFile> files;                               // that the scenario names
  NamedTexts model, sequence, implementation, software;         // software: versions, "unknown" where nobody says
  NamedTexts cluster;                                           // name, GPU, GPUs per node, nodes, ...
  std::vector<std::string> topology;                            // its links, a line each
  NamedTexts inputs;                                            // name -> SHA-256, as the run was stored with
  NamedTexts entries;                                           // what the presets say of this GPU, cluster, framework
  std::string rates_version, calibration_name, calibration_id;  // id: its hash
  std::string calibration;                                      // the calibration's file: the rates themselves
  std::string placement;                                        // how ranks are laid over GPUs
  std::vector<BundledRank> mesh;                                // of every rank
  BundledRecipe predicted;
  std::vector<BundledRecipe> controls;
  NamedTexts missing_controls;  // role -> why there is none
  std::vector<LinkLoad> links;  // busiest first
  BundledEquivalence equivalence;
  friend bool operator==(const Bundle&, const Bundle&) = default;
};

/// The file, with its hash in it. Texts that are no UTF-8 are written with replacement characters.
[[nodiscard]] std::string bundle_text(const Bundle& bundle);

/// The hash that `text` carries; empty where there is none.
[[nodiscard]] std::string bundle_id(const std::string& text);

/// Reads a file. `where` names it in messages. Problems: "bundle.syntax", "bundle.foreign" (no bundle), "bundle.newer",
/// "bundle.changed" (its bytes are not those that were hashed, with the parts that differ), "bundle.content" (a value that is
/// missing or of the wrong kind).
[[nodiscard]] Outcome<Bundle> parse_bundle(const std::string& text, const std::string& where);

}  // namespace cpfit
