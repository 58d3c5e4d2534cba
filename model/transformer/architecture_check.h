// Is an architecture one that can exist? Every number positive and within reach of a real model, heads that group evenly.
#pragma once

#include <string>

#include "model/quantity/problem.h"
#include "model/transformer/architecture.h"

namespace cpfit {

/// Problems of the values, empty when sound. `where` prefixes each place: "model" gives "model.layers".
[[nodiscard]] Problems check_architecture(const Architecture& model, const std::string& where);

}  // namespace cpfit
