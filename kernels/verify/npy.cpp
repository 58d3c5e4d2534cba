#include "kernels/verify/npy.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>

#include "kernels/core/require.h"
#include "kernels/reference/small_float.h"

namespace cpfit::kernels {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr std::size_t kHeaderAt = 10;  // magic, then two bytes of the header's length

const char* npy_type(Number number) {
  switch (number) {
    case Number::kFp64:
      return "<f8";
    case Number::kFp32:
      return "<f4";
    case Number::kBf16:
      return "<u2";
    case Number::kFp16:
      return "<f2";
    case Number::kInt32:
      break;
  }
  return "<i4";
}

template <class Value>
void append(std::string& bytes, Value value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

void append_number(std::string& bytes, Number number, double value) {
  switch (number) {
    case Number::kFp64:
      return append(bytes, value);
    case Number::kFp32:
      return append(bytes, static_cast<float>(value));
    case Number::kBf16:
      return append(bytes, bf16_of(odd_float_of(value)));
    case Number::kFp16:
      return append(bytes, fp16_of(odd_float_of(value)));
    case Number::kInt32:
      return append(bytes, static_cast<std::int32_t>(value));
  }
}

template <class Value>
double number_at(const char* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

/// Bytes of one element and how to read it; 0 bytes: not a type that is read.
struct ElementReader {
  std::size_t bytes = 0;
  double (*read)(const char*) = nullptr;
};

ElementReader element_reader(std::string_view type) {
  if (type == "<f8") return {8, number_at<double>};
  if (type == "<f4") return {4, number_at<float>};
  if (type == "<i8") return {8, number_at<std::int64_t>};
  if (type == "<i4") return {4, number_at<std::int32_t>};
  if (type == "<f2" || type == "<u2") {
    return type == "<f2" ? ElementReader{2,
                                         [](const char* at) {
                                           std::uint16_t bits = 0;
                                           std::memcpy(&bits, at, sizeof bits);
                                           return static_cast<double>(float_of_fp16(bits));
                                         }}
                         : ElementReader{2, [](const char* at) {
                                           std::uint16_t bits = 0;
                                           std::memcpy(&bits, at, sizeof bits);
                                           return static_cast<double>(float_of_bf16(bits));
                                         }};
  }
  return {};
}

/// What follows "'key':" in the header's dictionary, up to the next comma outside of parentheses or the closing brace.
std::string_view header_value(std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "'";
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) return {};
  const std::size_t colon = header.find(':', at + quoted.size());
  if (colon == std::string_view::npos) return {};
  std::size_t end = colon + 1;
  for (int depth = 0; end < header.size(); ++end) {
    const char c = header[end];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (depth == 0 && (c == ',' || c == '}')) break;
  }
  std::string_view value = header.substr(colon + 1, end - colon - 1);
  const std::size_t first = value.find_first_not_of(" '\"");
  if (first == std::string_view::npos) return {};
  return value.substr(first, value.find_last_not_of(" '\"") - first + 1);
}

bool read_shape(std::string_view text, std::vector<std::int64_t>& shape) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  std::istringstream numbers{std::string(text.substr(1, text.size() - 2))};
  for (std::string part; std::getline(numbers, part, ',');) {
    const std::size_t first = part.find_first_not_of(' ');
    if (first == std::string::npos) continue;  // "(5,)"
    std::int64_t length = 0;
    for (std::size_t i = first; i < part.size(); ++i) {
      if (part[i] < '0' || part[i] > '9' || length > (std::int64_t{1} << 40)) return false;
      length = length * 10 + (part[i] - '0');
    }
    shape.push_back(length);
  }
  return true;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t length : shape) text += "[" + std::to_string(length) + "]";
  return text.empty() ? "one number" : text;
}

std::string npy_bytes(Number number, const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  std::int64_t count = 1;
  std::string lengths;
  for (const std::int64_t length : shape) {
    count *= length;
    lengths += std::to_string(length) + (shape.size() == 1 ? "," : ", ");
  }
  if (shape.size() > 1) lengths.resize(lengths.size() - 2);
  require(count == static_cast<std::int64_t>(values.size()), "{} numbers were to be written as {}", values.size(),
          shape_text(shape));
  std::string header = std::string("{'descr': '") + npy_type(number) + "', 'fortran_order': False, 'shape': (" + lengths + "), }";
  header.resize((kHeaderAt + header.size() + 1 + 63) / 64 * 64 - kHeaderAt, ' ');  // the data begin at a multiple of 64 bytes
  header.back() = '\n';
  std::string bytes(kMagic);
  append(bytes, static_cast<std::uint16_t>(header.size()));
  bytes += header;
  bytes.reserve(bytes.size() + values.size() * static_cast<std::size_t>(bytes_of(number)));
  for (const double value : values) append_number(bytes, number, value);
  return bytes;
}

Outcome<NpyArray> read_npy(const std::string& bytes, const std::string& where) {
  const auto problem = [&](const std::string& message) {
    return Problem{"npy.format", where, message, "Write it with numpy.save(file, array) as a little-endian C-ordered array"};
  };
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < kHeaderAt) return problem("this is no .npy file");
  const bool long_header = bytes[6] != 1;  // version 2 counts the header in four bytes
  const std::size_t header_at = long_header ? kHeaderAt + 2 : kHeaderAt;
  if (bytes.size() < header_at) return problem("the file is cut short");
  std::size_t header_bytes = static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  if (long_header)
    header_bytes += 65536U * static_cast<unsigned char>(bytes[10]) + 16777216U * static_cast<unsigned char>(bytes[11]);
  if (bytes.size() < header_at + header_bytes) return problem("the file is cut short");
  const std::string_view header = std::string_view(bytes).substr(header_at, header_bytes);
  NpyArray array;
  array.type = header_value(header, "descr");
  if (header_value(header, "fortran_order") != "False") return problem("the array is not in C order");
  if (!read_shape(header_value(header, "shape"), array.shape)) return problem("its shape cannot be read");
  const ElementReader element = element_reader(array.type);
  if (element.bytes == 0) return problem("its type '" + array.type + "' is not one of <f8 <f4 <f2 <u2 (bits of bf16) <i4 <i8");
  std::uint64_t count = 1;
  for (const std::int64_t length : array.shape) {
    count *= static_cast<std::uint64_t>(length);
    if (count > bytes.size()) break;  // more numbers than the file has bytes; and no overflow
  }
  const std::size_t data_at = header_at + header_bytes;
  if (count > bytes.size() || bytes.size() - data_at != count * element.bytes) {
    return problem("it holds " + std::to_string(bytes.size() - data_at) + " bytes of numbers, its shape " +
                   shape_text(array.shape) + " needs " +
                   (count > bytes.size() ? std::string("more") : std::to_string(count * element.bytes)));
  }
  array.values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) array.values.push_back(element.read(bytes.data() + data_at + i * element.bytes));
  return array;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error("cannot write '" + path + "'");
}

std::string read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot read '" + path + "'");
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

}  // namespace cpfit::kernels
