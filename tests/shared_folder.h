// Where the public measured data lies, if it is there. Tests that read it begin with CPFIT_REQUIRE_SHARED(path).
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace cpfit::test {

inline std::string shared_path(const std::string& below) { return std::string(CPFIT_SHARED_DIR) + "/" + below; }

}  // namespace cpfit::test

#define CPFIT_REQUIRE_SHARED(below)                                                          \
  if (!std::filesystem::exists(cpfit::test::shared_path(below))) {                           \
    GTEST_SKIP() << "needs the public measured data at " << cpfit::test::shared_path(below); \
  }
