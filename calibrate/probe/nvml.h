// What the driver's management library says about one GPU: clocks, what slows it down, power. Its library is part of the driver
// and is loaded when it is there; without it nothing is known and nothing fails.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace cpfit::probe {

class Nvml {
 public:
  /// `pci_bus_id` as the CUDA runtime prints it: "0000:3b:00.0".
  explicit Nvml(const std::string& pci_bus_id);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  [[nodiscard]] std::optional<double> clock_mhz() const;          // of the multiprocessors, now
  [[nodiscard]] std::optional<double> highest_clock_mhz() const;  // that they could have
  [[nodiscard]] std::optional<double> power_limit_watts() const;
  [[nodiscard]] std::string driver_version() const;  // empty: not known
  /// What slows it down now, in words; empty: nothing, or not known. An idle GPU is not slowed down.
  [[nodiscard]] std::string throttle_reason() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

/// The words for NVML's bits of reasons.
[[nodiscard]] std::string throttle_words(unsigned long long reasons);

}  // namespace cpfit::probe
