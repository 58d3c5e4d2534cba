// A planning result back from its tables. Private to db.
#pragma once

#include <cstdint>
#include <optional>

#include "db/store/connection.h"
#include "model/record/run.h"

namespace cpfit {

/// Empty when there is no such run. Throws SQLite::Exception, and Error for a row this cpfit cannot read.
[[nodiscard]] std::optional<PlanResult> read_result(const Store::Connection& connection, std::int64_t run);

}  // namespace cpfit
