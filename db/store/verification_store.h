// Verifications (attention compared with the unsharded truth) in a store, and the proofs that they amount to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/store/store.h"
#include "model/record/verification.h"

namespace cpfit {

enum class VerificationId : std::int64_t {};

/// One transaction.
[[nodiscard]] VerificationId save_verification(Store& store, const Verification& verification);

struct VerificationListing {
  VerificationId id{};
  std::string suite, backend, implementation, implementation_version, tool_version, fixture_hash;
  std::int64_t stored_unix_seconds = 0;
  std::int64_t cases = 0, failed = 0, controls = 0, caught = 0;
};

/// Youngest first; none in a database from before there were any.
[[nodiscard]] std::vector<VerificationListing> list_verifications(const Store& store);

/// Problem "verification.unknown" when there is none of that id.
[[nodiscard]] Outcome<Verification> load_verification(const Store& store, VerificationId id);

/// What holds now: for every implementation, version, backend, method, mask, layout and number type the degrees at which ALL
/// cases of the youngest verification that has it passed, its planted faults all caught. A later failure takes a proof back.
/// Ordered by these.
[[nodiscard]] std::vector<AttentionProof> proofs_of(const Store& store);

}  // namespace cpfit
