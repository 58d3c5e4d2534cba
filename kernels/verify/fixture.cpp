#include "kernels/verify/fixture.h"

#include <bit>
#include <cstring>

#include "kernels/reference/fixture_numbers.h"
#include "model/quantity/hash.h"

namespace cpfit::kernels {

namespace {

enum class FixtureTensor : std::uint32_t { kQ = 1, kK, kV, kDout };

constexpr double kPaddingSize = 8.0;  // padded tokens are this many times larger than real ones; a power of two keeps them exact

/// Seed of one row's numbers: FNV-1a over the words that name it. Two rows that share a seed by chance are merely equal.
std::uint32_t row_seed(std::uint64_t seed, std::uint32_t document, std::uint64_t place, FixtureTensor tensor) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::uint64_t word : {seed, std::uint64_t{document}, place, static_cast<std::uint64_t>(tensor)}) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (word >> (8 * byte) & 0xffU)) * 0x100000001b3U;
  }
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

std::vector<double> rows_of(const Case& verified, const std::vector<TokenOrigin>& origins, FixtureTensor tensor,
                            std::int64_t columns) {
  const bool narrow = verified.number == Number::kBf16 || verified.number == Number::kFp16;
  const int fraction_bits = narrow ? 7 : 22;
  std::vector<double> values;
  values.reserve(origins.size() * static_cast<std::size_t>(columns));
  for (std::size_t row = 0; row < origins.size(); ++row) {
    const TokenOrigin& origin = origins[row];
    const bool padding = origin.document < 0;  // numbered by where it is stored
    const std::uint64_t place = padding ? row : static_cast<std::uint64_t>(origin.place);
    const std::uint32_t seed = row_seed(verified.seed, static_cast<std::uint32_t>(origin.document + 1), place, tensor);
    for (std::int64_t column = 0; column < columns; ++column) {
      values.push_back((padding ? kPaddingSize : 1.0) * grid_number(seed, static_cast<std::uint32_t>(column), fraction_bits));
    }
  }
  return values;
}

}  // namespace

std::vector<TokenOrigin> token_origins(const Case& verified, std::int64_t tokens) {
  std::vector<TokenOrigin> origins;
  origins.reserve(static_cast<std::size_t>(tokens));
  if (verified.documents.empty()) {
    for (std::int64_t t = 0; t < tokens; ++t) origins.push_back({0, t});
    return origins;
  }
  std::int32_t document = 0;
  for (const DocumentLength& length : verified.documents) {
    for (std::int64_t t = 0; t < length.padded; ++t) origins.push_back({t < length.real ? document : -1, t});
    ++document;
  }
  return origins;
}

Fixture fixture_of(const Case& verified) {
  const std::vector<TokenOrigin> queries = token_origins(verified, verified.query_tokens);
  const std::vector<TokenOrigin> keys = token_origins(verified, verified.key_tokens);
  const Heads& heads = verified.heads;
  Fixture fixture;
  fixture.q = rows_of(verified, queries, FixtureTensor::kQ, std::int64_t{heads.q} * heads.qk_dim);
  fixture.k = rows_of(verified, keys, FixtureTensor::kK, std::int64_t{heads.kv} * heads.qk_dim);
  fixture.v = rows_of(verified, keys, FixtureTensor::kV, std::int64_t{heads.kv} * heads.v_dim);
  fixture.dout = rows_of(verified, queries, FixtureTensor::kDout, std::int64_t{heads.q} * heads.v_dim);
  return fixture;
}

std::string fixture_hash(const Case& verified) {
  static_assert(std::endian::native == std::endian::little, "the hash is over little-endian doubles");
  const Fixture fixture = fixture_of(verified);
  std::string bytes;
  for (const std::vector<double>* values : {&fixture.q, &fixture.k, &fixture.v, &fixture.dout}) {
    const std::size_t begin = bytes.size();
    bytes.resize(begin + values->size() * sizeof(double));
    if (!values->empty()) std::memcpy(bytes.data() + begin, values->data(), values->size() * sizeof(double));
  }
  return sha256_hex(bytes);
}

}  // namespace cpfit::kernels
