// A folded run with its skipped copies kept short: of each jump only the first cycle of skipped copies (mostly one copy) remains,
// and stands for all of them. Everything behind it is moved forward. What is charged in these copies counts `weight` times; so
// the cost of an answer depends on the copies that the program holds, not on those it stands for. Internal to exposure.
#pragma once

#include <memory>

#include "sim/timeline/history.h"

namespace cpfit::timeline {

class ShortHistory {
 public:
  explicit ShortHistory(const History& full);
  [[nodiscard]] const History& full() const { return *full_; }
  [[nodiscard]] const History& history() const { return short_ ? *short_ : *full_; }  // the shortened one
  /// How many executions an instance of the shortened history stands for.
  [[nodiscard]] std::int32_t weight(const Instance& i) const;
  /// The `n`th of them (0..weight-1), as the full history has it.
  [[nodiscard]] Instance full_instance(const Instance& i, std::int32_t n) const;
  /// The execution of `other` that the `n`th execution of `from` met: as many copies apart as here; seen from outside the section
  /// the last one that `other` stands for.
  [[nodiscard]] Instance met_by(const Instance& from, std::int32_t n, const Instance& other) const;

 private:
  const History* full_;
  engine::Run run_;                       // activities' times and jumps only
  std::vector<engine::Jump> jump_of_;     // (sections) as in the full run; skipped 0 where there is none
  std::unique_ptr<const History> short_;  // refers to run_; none where nothing was skipped: the full one is short
};

}  // namespace cpfit::timeline
