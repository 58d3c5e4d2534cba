#include <cstring>

#include "calibrate/read/csv.h"
#include "calibrate/read/imported.h"
#include "model/quantity/hash.h"
#include "model/quantity/text_file.h"

namespace cpfit {

namespace {

Outcome<ImportedFile> unknown(const std::string& path, std::string_view text) {
  std::string what = "its content is none of the known formats";
  if (text.find("\"traceEvents\"") != std::string_view::npos) what = "this is a trace: `cpfit trace` reads it";
  if (text.starts_with("SQLite format 3")) what = "this is a database: `cpfit trace` reads Nsight Systems', --db names cpfit's";
  std::string accepted;
  for (const std::string& format : accepted_formats()) accepted += (accepted.empty() ? "" : "; ") + format;
  return Problem{"import.unknown", path, what, "accepted: " + accepted};
}

}  // namespace

std::vector<std::string> accepted_formats() {
  return {"cpfit-bench measurement (JSON)",
          "nccl-tests output as printed",
          "nvbandwidth -j (JSON)",
          "FlashAttention benchmark output",
          "nvidia-smi: -q, the table, or --query-gpu with --format=csv",
          "CSV of cudnn-frontend SDPA or norms, FlashAttention figures, aiconfigurator, SimuMax, GEMM rates, NCCL bus rates"};
}

Outcome<ImportedFile> import_text(const std::string& text, const std::string& path, const ImportHints& options) {
  const auto kept = [&](Outcome<ImportedFile> file) {
    if (file) file.value().sha256 = sha256_hex(text);
    return file;
  };
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return Problem{"import.empty", path, "the file is empty", "give a file with results in it"};
  // What a tool prints before its JSON (MPI's banners) does not belong to it.
  if (looks_like_nvbandwidth(text)) return kept(read_nvbandwidth(text, path, options));
  if (text[begin] == '{' && text.find("\"cpfit-measurement\"") != std::string::npos) {
    Outcome<MeasurementFile> measurement = parse_measurement(text, path);
    if (!measurement) return measurement.problems();
    return kept(read_measured_points(std::move(measurement).value(), path));
  }
  if (looks_like_nccl_tests(text)) return kept(read_nccl_tests(text, path, options));
  if (looks_like_flash_output(text)) return kept(read_flash_output(text, path, options));
  if (looks_like_nvidia_smi(text)) return kept(read_nvidia_smi(text, path));
  if (text[begin] == '{' || text[begin] == '[' || text.find('\0') != std::string::npos) return unknown(path, text);
  const Outcome<CsvTable> csv = CsvTable::parse(text, path);
  if (!csv) return unknown(path, text);
  Outcome<KernelTable> table = read_kernel_table(*csv);
  if (!table) return unknown(path, text);
  ImportedFile file;
  file.path = path;
  file.table = std::move(table).value();
  file.format = "table: " + file.table.source;
  return kept(std::move(file));
}

Outcome<ImportedFile> import_file(const std::string& path, const ImportHints& options) {
  const Outcome<std::string> text = read_text_file(path, kMostTableBytes, "import.unreadable");
  if (!text) return text.problems();
  return import_text(*text, path, options);
}

}  // namespace cpfit
