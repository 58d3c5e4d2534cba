#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/identity.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/smi_matrix.h"

namespace cpfit {
namespace {

constexpr std::string_view kCodes[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Length of the code that `text` begins with; 0 when it begins with none. Cells may be glued: "NODENODE".
std::size_t code_length(std::string_view text) {
  for (const std::string_view code : kCodes) {
    if (text.starts_with(code)) return code.size();
  }
  if (text.starts_with("NV") && text.size() > 2 && is_digit(text[2])) {
    std::size_t end = 2;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end;
  }
  return text.starts_with('X') &&
                 (text.size() == 1 || !std::isalpha(static_cast<unsigned char>(text[1])) || code_length(text.substr(1)) > 0)
             ? 1
             : 0;
}

bool is_gpu(std::string_view name) {
  return name.size() > 3 && name.starts_with("GPU") && std::all_of(name.begin() + 3, name.end(), is_digit);
}

struct Titles {
  bool cpu = false, numa = false;
};

/// Device names up to the first of the titles "CPU Affinity", "NUMA Affinity", "GPU NUMA ID".
std::vector<std::string> header_names(const std::vector<std::string_view>& words, Titles& titles) {
  std::vector<std::string> names;
  bool in_titles = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view{};
    const bool cpu = words[i] == "CPU", numa = words[i] == "NUMA" && next != "ID";
    if (cpu || numa || words[i] == "GPU") in_titles = true;
    titles.cpu = titles.cpu || cpu;
    titles.numa = titles.numa || numa;
    if (!in_titles) names.emplace_back(words[i]);
  }
  return names;
}

struct Row {
  std::size_t line = 0;
  std::string_view text;               // after the name
  std::vector<std::string_view> more;  // lines the terminal wrapped
};

struct Cells {
  std::vector<std::string> codes;
  std::string rest;
};

/// At most `count` codes; `rest` begins where they end.
Cells take_codes(std::string_view text, std::size_t count) {
  Cells cells;
  while (cells.codes.size() < count) {
    const std::size_t at = text.find_first_not_of(" \t");
    if (at == std::string_view::npos) break;
    const std::size_t length = code_length(text.substr(at));
    if (length == 0) break;
    cells.codes.emplace_back(text.substr(at, length));
    text.remove_prefix(at + length);
  }
  cells.rest = text;
  return cells;
}

Cells cells_of(const Row& row, std::size_t count) {
  std::string spaced(row.text), glued(row.text);
  for (const std::string_view line : row.more) {
    spaced.append(" ").append(line);
    glued.append(line);
  }
  Cells cells = take_codes(spaced, count);
  if (cells.codes.size() == count || row.more.empty()) return cells;
  Cells other = take_codes(glued, count);  // wrapped in the middle of a cell
  return other.codes.size() > cells.codes.size() ? other : cells;
}

/// NUMA node, else CPU list, of what follows the codes.
std::string affinity_of(const std::string& rest, Titles titles) {
  std::vector<std::string> cells;
  if (rest.find('\t') != std::string::npos) {
    std::string_view left = rest;
    left.remove_prefix(std::min(left.find('\t') + 1, left.size()));
    for (;;) {
      const std::size_t tab = left.find('\t');
      cells.emplace_back(scan::trimmed(left.substr(0, tab)));
      if (tab == std::string_view::npos) break;
      left.remove_prefix(tab + 1);
    }
  } else {
    for (const std::string_view word : scan::words(rest)) cells.emplace_back(word);
    if (titles.cpu && titles.numa && cells.size() == 1) return "";  // which of both it is cannot be told
  }
  const auto cell = [&](std::size_t at) { return at < cells.size() ? cells[at] : std::string(); };
  const std::string cpu = titles.cpu ? cell(0) : "", numa = titles.numa ? cell(titles.cpu ? 1 : 0) : "";
  if (!numa.empty() && numa != "N/A") return fmt::format("numa {}", numa);
  return cpu.empty() || cpu == "N/A" ? std::string() : fmt::format("cpus {}", cpu);
}

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& where)
      : plain_(scan::without_escapes(text)), lines_(scan::lines(plain_)), where_(where) {}

  Outcome<SmiMatrix> read() {
    std::size_t at = 0;
    while (at < lines_.size() && !is_smi_header(lines_[at])) ++at;
    if (at == lines_.size())
      return scan::problem("no_matrix", where_, 0, "no header of GPU names was found", "save the output of `nvidia-smi topo -m`");
    const std::size_t header = at + 1;
    std::vector<std::string_view> words = scan::words(lines_[at++]);
    for (; at < lines_.size() && !scan::trimmed(lines_[at]).empty() && !starts_row(lines_[at], words); ++at) {
      for (const std::string_view word : scan::words(lines_[at])) words.push_back(word);
      if (words.size() > 2 * kMostDevices) break;
    }
    matrix_.names = header_names(words, titles_);
    if (Problems found = check_names(header); !found.empty()) return found;
    collect_rows(at);
    if (Problems found = fill(); !found.empty()) return found;
    read_legend(at);
    return std::move(matrix_);
  }

 private:
  /// A name of the header and a code, or the name alone.
  static bool starts_row(std::string_view line, const std::vector<std::string_view>& names) {
    const std::vector<std::string_view> words = scan::words(line);
    if (words.empty() || std::find(names.begin(), names.end(), words[0]) == names.end()) return false;
    return words.size() == 1 || code_length(words[1]) > 0;
  }

  Problems check_names(std::size_t line) {
    const std::vector<std::string>& names = matrix_.names;
    if (names.size() > kMostDevices) {
      return {scan::problem("too_large", where_, line, fmt::format("the matrix has {} columns", names.size()),
                            fmt::format("a host with up to {} devices can be read", kMostDevices))};
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].find("MIG") != std::string::npos) {
        return {scan::problem("mig", where_, line, fmt::format("column '{}' is a MIG instance", scan::shown(names[i])),
                              "training takes whole GPUs: switch MIG off, then save the matrix again")};
      }
      if (!std::isalpha(static_cast<unsigned char>(names[i][0]))) {
        return {scan::problem("header", where_, line, fmt::format("column '{}' is no device name", scan::shown(names[i])),
                              "the header was damaged: save the output of `nvidia-smi topo -m` to a file")};
      }
      if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
          names.begin() + static_cast<std::ptrdiff_t>(i)) {
        return {scan::problem("header", where_, line, fmt::format("column '{}' appears twice", scan::shown(names[i])))};
      }
    }
    return {};
  }

  void collect_rows(std::size_t at) {
    Row* open = nullptr;
    for (; at < lines_.size(); ++at) {
      const std::string_view line = scan::trimmed(lines_[at]);
      if (line.empty() || line.starts_with("Legend")) {
        if (!rows_.empty()) break;
        continue;
      }
      const std::string_view first = scan::words(line)[0];
      const auto name = std::find(matrix_.names.begin(), matrix_.names.end(), first);
      if (name != matrix_.names.end() && !is_smi_header(line)) {
        const auto row = static_cast<std::size_t>(name - matrix_.names.begin());
        if (rows_.contains(row)) break;  // a second matrix
        open = &rows_[row];
        *open = {at + 1, lines_[at].substr(lines_[at].find(first) + first.size()), {}};
      } else if (is_smi_header(line)) {
        matrix_.notes.push_back(fmt::format("line {} begins another matrix: the first one is taken", at + 1));
        break;
      } else if (open != nullptr) {
        open->more.push_back(line);
      }
    }
  }

  Problems fill() {
    const std::size_t n = matrix_.names.size();
    matrix_.codes.assign(n, std::vector<std::string>(n));
    matrix_.affinity.assign(n, "");
    matrix_.labels = matrix_.names;
    if (rows_.empty()) {
      return {
          scan::problem("cut", where_, 0, "the header has no rows below it", "save the whole output of `nvidia-smi topo -m`")};
    }
    for (const auto& [row, text] : rows_) {
      const Cells cells = cells_of(text, n);
      const std::string_view rest = scan::trimmed(cells.rest);
      const std::string& name = matrix_.names[row];
      if (cells.codes.size() == n && code_length(rest) > 0) {
        return {scan::problem("cut", where_, text.line,
                              fmt::format("row '{}' has more codes than the header has columns ({})", scan::shown(name), n),
                              "the header was cut at the right: save the output to a file instead of copying it")};
      }
      if (cells.codes.size() < n && !rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0])) && rest[0] != 'N') {
        return {scan::problem("code", where_, text.line,
                              fmt::format("row '{}', column '{}': '{}' is no connection code", scan::shown(name),
                                          scan::shown(matrix_.names[cells.codes.size()]), scan::shown(scan::words(rest)[0])),
                              "known codes: X NV# PIX PXB PHB NODE SYS")};
      }
      for (std::size_t column = 0; column < cells.codes.size(); ++column) {
        const std::string& code = cells.codes[column];
        if (code.size() > 5 || (code == "X") != (row == column)) {
          return {scan::problem("code", where_, text.line,
                                fmt::format("row '{}', column '{}' holds '{}'", scan::shown(name),
                                            scan::shown(matrix_.names[column]), scan::shown(code)),
                                "X stands on the diagonal and only there; NV# has one to three digits")};
        }
        matrix_.codes[row][column] = code == "SOC" ? "SYS" : code;  // the old word
      }
      if (is_gpu(name)) matrix_.affinity[row] = affinity_of(cells.rest, titles_);
    }
    return settle_symmetry();
  }

  Problems settle_symmetry() {
    const std::size_t n = matrix_.names.size();
    std::size_t filled = 0, unknown = 0;
    for (std::size_t i = 0; i < n; ++i) {
      matrix_.codes[i][i] = "X";
      for (std::size_t j = i + 1; j < n; ++j) {
        std::string &there = matrix_.codes[i][j], &back = matrix_.codes[j][i];
        if (!there.empty() && !back.empty() && there != back) {
          return {scan::problem(
              "asymmetric", where_, rows_.contains(i) ? rows_[i].line : 0,
              fmt::format("{} to {} says {}, {} to {} says {}", scan::shown(matrix_.names[i]), scan::shown(matrix_.names[j]),
                          there, scan::shown(matrix_.names[j]), scan::shown(matrix_.names[i]), back),
              "the matrix must be symmetric: the text was damaged, save it again")};
        }
        if (there.empty() && back.empty()) {
          if (is_gpu(matrix_.names[i]) && is_gpu(matrix_.names[j])) {
            return {scan::problem(
                "cut", where_, 0,
                fmt::format("the code of {} and {} is missing", scan::shown(matrix_.names[i]), scan::shown(matrix_.names[j])),
                "save the whole output of `nvidia-smi topo -m`")};
          }
          ++unknown;
        } else if (there.empty() || back.empty()) {
          (there.empty() ? there : back) = there.empty() ? back : there;
          ++filled;
        }
      }
    }
    if (filled > 0) matrix_.notes.push_back(fmt::format("the matrix is cut: {} codes are taken from the other half", filled));
    if (unknown > 0) {
      matrix_.notes.push_back(
          fmt::format("{} codes are in neither half (rows are missing): these devices are placed by their other codes", unknown));
    }
    return {};
  }

  void read_legend(std::size_t from) {
    for (std::size_t at = from; at < lines_.size(); ++at) {
      const std::vector<std::string_view> words = scan::words(lines_[at]);
      if (words.size() != 2 || !words[0].ends_with(':')) continue;
      const auto name = std::find(matrix_.names.begin(), matrix_.names.end(), words[0].substr(0, words[0].size() - 1));
      if (name != matrix_.names.end()) matrix_.labels[static_cast<std::size_t>(name - matrix_.names.begin())] = words[1];
    }
  }

  std::string plain_;
  std::vector<std::string_view> lines_;
  const std::string& where_;
  SmiMatrix matrix_;
  Titles titles_;
  std::map<std::size_t, Row> rows_;
};

}  // namespace

bool is_smi_header(std::string_view line) {
  const std::vector<std::string_view> words = scan::words(line);
  if (words.size() < 2 || !is_gpu(words[0])) return false;
  return is_gpu(words[1]) || words[1] == "CPU" || words[1] == "NUMA" ||
                 words[1].find_first_of("0123456789") != std::string_view::npos
             ? code_length(words[1]) == 0 && std::isalpha(static_cast<unsigned char>(words[1][0])) != 0
             : false;
}

Outcome<SmiMatrix> read_smi_matrix(std::string_view text, const std::string& where) { return MatrixReader(text, where).read(); }

Outcome<ImportedTopology> import_smi_topo(std::string_view text, const std::string& where) {
  Outcome<SmiMatrix> matrix = read_smi_matrix(text, where);
  if (!matrix) return matrix.problems();
  ImportedTopology imported;
  imported.format = TopologyFormat::kSmiTopo;
  imported.where = where;
  imported.notes = matrix->notes;
  ImportedHost host = host_of(*matrix, imported.notes);
  std::size_t gpus = 0, nics = 0;
  for (const ImportedDevice& device : host.devices) {
    gpus += device.kind == VertexKind::kGpu ? 1 : 0;
    nics += device.kind == VertexKind::kNic ? 1 : 0;
  }
  std::map<std::int32_t, std::int32_t> links;  // per GPU
  std::int32_t most = 0, widest = 0, fewest = 1 << 20;
  for (const BondedPair& pair : host.bonded) {
    links[pair.a] += pair.lanes;
    links[pair.b] += pair.lanes;
    widest = std::max(widest, pair.lanes);
    fewest = std::min(fewest, pair.lanes);
  }
  for (const auto& [gpu, count] : links) most = std::max(most, count);
  // More links than any GPU has: the pairs share them through NVSwitches, and each pair shows all of one GPU's.
  const bool switched = most > kMostNvlinks && widest == fewest;
  identify_by_links(host, switched ? widest : most, !switched, gpus);
  imported.summary = fmt::format("one host with {} GPUs and {} NICs; link classes, no rates", gpus, nics);
  imported.holds = std::move(host);
  return imported;
}

}  // namespace cpfit
