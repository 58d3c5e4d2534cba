#include <algorithm>
#include <array>

#include "model/cluster/import/import.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/smi_matrix.h"

namespace cpfit {
namespace {

constexpr std::size_t kLinesLookedAt = 2000;  // prompts, warnings and job output may come first

/// The first element of an XML text: "system", "graphs", "topology".
std::string_view root_element(std::string_view text) {
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    const std::string_view here = text.substr(at);
    if (here.starts_with("<!--")) {
      at = text.find("-->", at);
    } else if (here.starts_with("<?") || here.starts_with("<!")) {
      at = text.find('>', at);
    } else {
      return here.substr(1, here.find_first_of(" \t\r\n/>", 1) - 1);
    }
    if (at == std::string_view::npos) break;
  }
  return {};
}

TopologyFormat by_line(std::string_view raw) {
  const std::string plain = scan::without_escapes(raw.substr(0, 20000));
  const std::string_view line = scan::trimmed(plain);
  if (line.empty()) return TopologyFormat::kUnknown;
  if (line.find("ROCm System Management Interface") != std::string_view::npos ||
      line.find("Link Type between two GPUs") != std::string_view::npos)
    return TopologyFormat::kRocmTopo;
  if (line.find("NCCL INFO") != std::string_view::npos) return TopologyFormat::kNcclLog;
  if (is_smi_header(line)) return TopologyFormat::kSmiTopo;
  if (line.starts_with("vendid=0x") || line.starts_with("switchguid=0x") || line.starts_with("caguid=0x") ||
      (line.starts_with("Switch") && line.find("\"S-") != std::string_view::npos) ||
      (line.starts_with("Ca") && line.find("\"H-") != std::string_view::npos))
    return TopologyFormat::kIbnetdiscover;
  const std::string key = scan::lower(line.substr(0, line.find('=')));
  if (line.find('=') != std::string_view::npos &&
      (key == "switchname" || key == "blockname" || key == "ringname" || key == "blocksizes"))
    return TopologyFormat::kSlurmConf;
  if (line.starts_with("- topology:") || line == "-topology:") return TopologyFormat::kSlurmYaml;
  if (line == "switches:" || line == "blocks:") return TopologyFormat::kTopographModel;
  return TopologyFormat::kUnknown;
}

/// nvidia-smi topo -p2p has the same header; its cells are other words.
bool is_p2p(std::string_view text) {
  std::size_t seen = 0;
  for (const std::string_view line : scan::lines(text)) {
    const std::vector<std::string_view> words = scan::words(line);
    if (++seen > kLinesLookedAt) break;
    if (words.size() < 3 || !words[0].starts_with("GPU")) continue;
    constexpr std::array kCells = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    const auto foreign = [&](std::string_view word) {
      return std::any_of(kCells.begin(), kCells.end(), [&](const char* cell) { return word == cell; });
    };
    if (std::any_of(words.begin() + 1, words.end(), foreign)) return true;
  }
  return false;
}

}  // namespace

TopologyFormat detect_format(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) return TopologyFormat::kGzip;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find('\0') != std::string_view::npos || text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return TopologyFormat::kBinary;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return TopologyFormat::kUnknown;
  if (text[first] == '{') return TopologyFormat::kOwn;
  if (text[first] == '<') {
    const std::string_view root = root_element(text);
    return root == "system"     ? TopologyFormat::kNcclTopology
           : root == "graphs"   ? TopologyFormat::kNcclGraph
           : root == "topology" ? TopologyFormat::kHwloc
                                : TopologyFormat::kUnknown;
  }
  for (std::size_t line = 0; line < kLinesLookedAt && !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const TopologyFormat format = by_line(text.substr(0, end));
    if (format == TopologyFormat::kSmiTopo) return is_p2p(text) ? TopologyFormat::kSmiP2p : format;
    if (format != TopologyFormat::kUnknown) return format;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return TopologyFormat::kUnknown;
}

std::string_view name_of(TopologyFormat format) {
  static constexpr std::string_view kNames[] = {"unknown",
                                                "cpfit topology",
                                                "nvidia-smi topo -m",
                                                "nvidia-smi topo -p2p",
                                                "rocm-smi --showtopotype",
                                                "NCCL topology XML",
                                                "NCCL graph XML",
                                                "NCCL log",
                                                "hwloc XML",
                                                "Slurm topology.conf",
                                                "Slurm topology.yaml",
                                                "topograph model",
                                                "ibnetdiscover",
                                                "gzip",
                                                "binary"};
  return kNames[static_cast<std::size_t>(format)];
}

}  // namespace cpfit
