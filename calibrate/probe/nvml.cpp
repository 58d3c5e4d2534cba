#include "calibrate/probe/nvml.h"

#include <array>

#include "kernels/transport/loaded_library.h"

namespace cpfit::probe {

namespace {

// NVML's interface as its versioned symbols promise it; its header is not part of every toolkit.
using Device = void*;
constexpr int kSuccess = 0;
constexpr int kClockOfMultiprocessors = 1;

struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_of)(const char*, Device*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*highest_clock)(Device, int, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;
};

struct ReasonWord {
  unsigned long long bit;
  const char* word;
};
// nvmlClocksThrottleReasons; 1 is an idle GPU, 2 clocks that somebody has set, 16 those of a partner in a group.
constexpr std::array<ReasonWord, 6> kReasons = {{{0x4, "power cap in software"},
                                                 {0x8, "slowdown in hardware"},
                                                 {0x20, "heat, in software"},
                                                 {0x40, "heat, in hardware"},
                                                 {0x80, "power brake"},
                                                 {0x2, "clocks that were set"}}};

}  // namespace

struct Nvml::Session {
  kernels::LoadedLibrary library{{"libnvidia-ml.so.1"}};
  Functions call;
  Device device = nullptr;
  bool open = false;

  explicit Session(const std::string& pci_bus_id) {
    if (!library.find("nvmlInit_v2", call.init) || call.init() != kSuccess) return;
    open = true;
    library.find("nvmlShutdown", call.shutdown);
    library.find("nvmlDeviceGetClockInfo", call.clock);
    library.find("nvmlDeviceGetMaxClockInfo", call.highest_clock);
    library.find("nvmlDeviceGetEnforcedPowerLimit", call.power_limit);
    library.find("nvmlSystemGetDriverVersion", call.driver);
    library.find("nvmlDeviceGetCurrentClocksThrottleReasons", call.reasons);
    if (library.find("nvmlDeviceGetHandleByPciBusId_v2", call.device_of)) {
      if (call.device_of(pci_bus_id.c_str(), &device) != kSuccess) device = nullptr;
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (open && call.shutdown != nullptr) call.shutdown();
  }

  [[nodiscard]] std::optional<double> clock_by(int (*function)(Device, int, unsigned*)) const {
    unsigned megahertz = 0;
    if (device == nullptr || function == nullptr || function(device, kClockOfMultiprocessors, &megahertz) != kSuccess) return {};
    return megahertz;
  }
};

Nvml::Nvml(const std::string& pci_bus_id) : session_(std::make_unique<Session>(pci_bus_id)) {}
Nvml::~Nvml() = default;

std::optional<double> Nvml::clock_mhz() const { return session_->clock_by(session_->call.clock); }
std::optional<double> Nvml::highest_clock_mhz() const { return session_->clock_by(session_->call.highest_clock); }

std::optional<double> Nvml::power_limit_watts() const {
  unsigned milliwatts = 0;
  const auto function = session_->call.power_limit;
  if (session_->device == nullptr || function == nullptr || function(session_->device, &milliwatts) != kSuccess) return {};
  return milliwatts / 1000.0;
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  const auto function = session_->call.driver;
  if (!session_->open || function == nullptr || function(text.data(), text.size() - 1) != kSuccess) return "";
  return text.data();
}

std::string Nvml::throttle_reason() const {
  unsigned long long reasons = 0;
  const auto function = session_->call.reasons;
  if (session_->device == nullptr || function == nullptr || function(session_->device, &reasons) != kSuccess) return "";
  return throttle_words(reasons);
}

std::string throttle_words(unsigned long long reasons) {
  std::string words;
  for (const ReasonWord& reason : kReasons) {
    if ((reasons & reason.bit) == 0) continue;
    if (!words.empty()) words += ", ";
    words += reason.word;
  }
  return words;
}

}  // namespace cpfit::probe
