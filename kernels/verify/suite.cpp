#include "kernels/verify/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "kernels/core/require.h"
#include "kernels/verify/fixture.h"
#include "model/quantity/hash.h"

namespace cpfit::kernels {

namespace {

using attention::Layout;
using attention::MaskShape;
using attention::round_up;

constexpr std::int32_t kDegrees[] = {2, 3, 4, 8};
constexpr Number kNumbers[] = {Number::kFp64, Number::kFp32, Number::kBf16, Number::kFp16};
constexpr std::int64_t kEven = 240;  // divides by 2 * cp of each of these degrees

/// A sequence as a function of the degree: what it must be padded to depends on it.
struct SuiteShape {
  const char* name;
  MaskShape mask = MaskShape::kCausal;
  std::int64_t window = 0;
  std::vector<std::int64_t> (*lengths)(std::int64_t multiple) = nullptr;  // real lengths of the documents
  std::int64_t tail = 0;                       // padding behind the last document, before it is rounded up
  std::int64_t queries = kEven, keys = kEven;  // without documents
  Layout layout = Layout::kZigzag;
  bool per_document = false;
  double scale_times = 1;  // > 1: large scores
  std::int32_t qk_dim = 32, v_dim = 16;
  bool grouped = true;  // fewer KV heads than query heads
  bool quick = true;
  const char* not_in_fp32 = nullptr;  // why the tolerance of fp32 does not apply
};

using Lengths = std::vector<std::int64_t>;

/// Scores beyond 100, so that exp(lse) overflows in fp32.
SuiteShape large_scores() {
  return {.name = "240, large scores",
          .scale_times = 24,
          .not_in_fp32 =
              "scores beyond 100 are known to 6e-6 in fp32, so its tolerance is not for them (bf16 and fp16 are compared "
              "with the kernel)"};
}

std::vector<SuiteShape> shapes() {
  const auto tail_698 = [](std::int64_t) { return Lengths{698}; };
  const auto awkward = [](std::int64_t m) { return Lengths{1, m - 1, 0, 3 * m + 1, 3 * m - 1, 2 * m, 50}; };
  const auto seams = [](std::int64_t) { return Lengths{1, 37, 0, 100, 102}; };
  const auto last_tail = [](std::int64_t m) { return Lengths{2 * m, 4 * m, 3 * m - 5}; };
  const auto short_one = [](std::int64_t) { return Lengths{20}; };
  constexpr MaskShape kDocuments = MaskShape::kDocuments;
  std::vector<SuiteShape> all;
  const auto add = [&](SuiteShape shape) { all.push_back(shape); };
  add({.name = "240"});
  add({.name = "240", .mask = MaskShape::kFull});
  add({.name = "240, window 37", .mask = MaskShape::kWindow, .window = 37});
  add({.name = "698 real, padded tail", .mask = kDocuments, .lengths = tail_698});
  add({.name = "documents of 1, 2cp-1, 0, 6cp+1, 6cp-1, 4cp, 50", .mask = kDocuments, .lengths = awkward, .per_document = true});
  add({.name = "documents across chunks", .mask = kDocuments, .lengths = seams});
  add({.name = "only the last document padded", .mask = kDocuments, .lengths = last_tail, .per_document = true});
  add({.name = "20 real of 240, a rank of padding", .mask = kDocuments, .lengths = short_one, .tail = 220});
  add({.name = "20 real of 240, a rank of padding",
       .mask = kDocuments,
       .lengths = short_one,
       .tail = 220,
       .layout = Layout::kContiguous});
  add({.name = "96 queries, 240 keys", .queries = 96});
  add({.name = "240 queries, 96 keys", .keys = 96});
  add({.name = "240", .layout = Layout::kContiguous});
  add({.name = "240", .layout = Layout::kStriped});
  add(large_scores());
  // The full suite only: longer, larger heads, windows inside documents, other layouts of the rest.
  add({.name = "698 real, padded tail", .mask = kDocuments, .lengths = tail_698, .per_document = true, .quick = false});
  add({.name = "documents across chunks", .mask = kDocuments, .lengths = seams, .layout = Layout::kContiguous, .quick = false});
  add({.name = "documents across chunks", .mask = kDocuments, .lengths = seams, .layout = Layout::kStriped, .quick = false});
  add({.name = "awkward documents, window 7",
       .mask = kDocuments,
       .window = 7,
       .lengths = awkward,
       .per_document = true,
       .quick = false});
  add({.name = "240, window 37", .mask = MaskShape::kWindow, .window = 37, .layout = Layout::kContiguous, .quick = false});
  add({.name = "240, window 37", .mask = MaskShape::kWindow, .window = 37, .layout = Layout::kStriped, .quick = false});
  add({.name = "240", .mask = MaskShape::kFull, .layout = Layout::kStriped, .quick = false});
  add({.name = "96 queries, 240 keys", .mask = MaskShape::kFull, .queries = 96, .quick = false});
  add({.name = "1200, head 64", .queries = 1200, .keys = 1200, .qk_dim = 64, .v_dim = 64, .grouped = false, .quick = false});
  add({.name = "720, head 192/128", .queries = 720, .keys = 720, .qk_dim = 192, .v_dim = 128, .quick = false});
  return all;
}

/// Ranks that exchange heads.
std::int32_t exchange_ranks(const Method& method, std::int32_t cp, std::int32_t inner) {
  if (method.exchange == Exchange::kAllToAll) return cp;
  if (method.exchange == Exchange::kAllToAllRing) return inner > 0 ? inner : method.a2a_degree;
  return 1;
}

/// As few heads as the exchange can serve: at least two KV heads (one of three ranks' where KV is repeated), two query heads for
/// each when grouped. Many heads are made small, since the truth costs by head and number.
Heads heads_for(const SuiteShape& shape, const Method& method, std::int32_t ranks) {
  constexpr std::int32_t kMany = 8;
  Heads heads;
  heads.kv = method.repeat_kv && ranks > 1 ? (ranks % 2 == 0 ? 2 : 1) : std::max(2, ranks);
  heads.q = std::lcm(shape.grouped && (ranks < kMany || !shape.quick) ? 2 * heads.kv : heads.kv, ranks);
  const std::int32_t shrink = heads.q >= kMany && shape.quick ? 2 : 1;
  heads.qk_dim = shape.qk_dim / shrink;
  heads.v_dim = shape.v_dim / shrink;
  heads.scale = shape.scale_times / std::sqrt(static_cast<double>(heads.qk_dim));
  return heads;
}

void set_lengths(const SuiteShape& shape, std::int32_t cp, Case& made) {
  const std::int64_t multiple = std::int64_t{2} * cp;
  made.query_tokens = round_up(shape.queries, multiple);
  made.key_tokens = round_up(shape.keys, multiple);
  if (shape.lengths == nullptr) return;
  std::int64_t stored = 0;
  for (const std::int64_t real : shape.lengths(multiple)) {
    const std::int64_t padded = shape.per_document ? round_up(real, multiple) : real;
    made.documents.push_back({real, padded});
    stored += padded;
  }
  const std::int64_t wanted = round_up(stored + shape.tail, multiple);
  made.documents.back().padded += wanted - stored;
  made.query_tokens = made.key_tokens = wanted;
}

Case make_case(const SuiteShape& shape, const Method& method, std::int32_t cp, std::int32_t inner, Number number) {
  Case made;
  made.method = method.name;
  made.shape = shape.name;
  made.mask = shape.mask;
  made.window = shape.window;
  set_lengths(shape, cp, made);
  made.layout = shape.layout;
  made.per_document = shape.per_document;
  made.cp = cp;
  made.inner = inner;
  made.number = number;
  made.heads = heads_for(shape, method, exchange_ranks(method, cp, inner));
  made.name = fmt::format("{} | {} {} | {} | cp {}{} | {}", method.name, name_of(shape.mask), shape.name, layout_text(made), cp,
                          inner > 0 ? fmt::format(", {} inner", inner) : "", name_of(number));
  return made;
}

template <class Value>
bool wanted(const std::vector<Value>& filter, const Value& value) {
  return filter.empty() || std::ranges::find(filter, value) != filter.end();
}

/// Inner degrees to try beside the method's own.
std::vector<std::int32_t> inner_degrees(const Method& method, std::int32_t cp, SuiteSize size) {
  const bool has_inner = method.exchange == Exchange::kAllToAllRing || method.exchange == Exchange::kDoubleRing;
  if (has_inner && size == SuiteSize::kFull && cp == 8) return {0, 4};
  if (has_inner && cp == 3) return {3};
  return {0};
}

/// The quick suite takes every number type at cp 4 and the two that find most elsewhere.
bool in_quick(std::int32_t cp, Number number) {
  return cp == 4 || number == Number::kFp64 || (cp == 2 && number != Number::kFp16) || number == Number::kBf16;
}

/// A fault's case: fp64 unless it needs an overflow.
Case control(Fault fault, const char* method, const SuiteShape& shape, std::int32_t cp, Number number = Number::kFp64) {
  const auto found = std::ranges::find_if(methods(), [&](const Method& known) { return known.name == method; });
  require(found != methods().end(), "the control {} names the unknown method {}", name_of(fault), method);
  Case made = make_case(shape, *found, cp, 0, number);
  made.fault = fault;
  return made;
}

}  // namespace

SuiteCases suite_cases(SuiteSize size, const SuiteFilter& filter) {
  SuiteCases suite;
  std::map<std::string, std::int64_t> left_out;
  const std::vector<std::int32_t> degrees =
      filter.cp.empty() ? std::vector<std::int32_t>(std::begin(kDegrees), std::end(kDegrees)) : filter.cp;
  for (const Method& method : methods()) {
    if (!wanted(filter.methods, method.name)) continue;
    for (const SuiteShape& shape : shapes()) {
      if (!wanted(filter.masks, shape.mask) || (size == SuiteSize::kQuick && !shape.quick)) continue;
      for (const std::int32_t cp : degrees) {
        for (const std::int32_t inner : inner_degrees(method, cp, size)) {
          for (const Number number : kNumbers) {
            const bool asked_for = !filter.numbers.empty() || !filter.cp.empty();
            if (!wanted(filter.numbers, number)) continue;
            if (size == SuiteSize::kQuick && !asked_for && !in_quick(cp, number)) continue;
            Case made = make_case(shape, method, cp, inner, number);
            const Outcome<Method> resolved = method_of(made);
            std::string reason = why_not(*resolved, layer_of(made), cp);
            if (number == Number::kFp32 && shape.not_in_fp32 != nullptr) reason = shape.not_in_fp32;
            if (reason.empty())
              suite.cases.push_back(std::move(made));
            else
              ++left_out[reason];
          }
        }
      }
    }
  }
  suite.left_out.assign(left_out.begin(), left_out.end());
  std::ranges::stable_sort(suite.left_out, [](const auto& a, const auto& b) { return a.second > b.second; });
  return suite;
}

std::vector<Case> control_cases() {
  const SuiteShape causal{.name = "240"};
  const SuiteShape padded{
      .name = "698 real, padded tail", .mask = MaskShape::kDocuments, .lengths = [](std::int64_t) { return Lengths{698}; }};
  return {control(Fault::kSeamOffByOne, "te_p2p", causal, 4),
          control(Fault::kMaskShiftedByBlock, "te_p2p", causal, 4),
          control(Fault::kPermutationNotInverted, "te_p2p", causal, 4),
          control(Fault::kMergeThroughExp, "fp32_ring", large_scores(), 4, Number::kBf16),
          control(Fault::kDkvOneHopShort, "fp32_ring", causal, 4),
          control(Fault::kKvOfStepZero, "te_p2p", causal, 4),
          control(Fault::kLengthFloored, "te_p2p", padded, 4),
          control(Fault::kPaddedKeyAttended, "te_p2p", padded, 4)};
}

bool has_padded_twin(const Case& verified) {
  return verified.number == Number::kFp64 && verified.fault == Fault::kNone &&
         std::ranges::any_of(verified.documents, [](const DocumentLength& length) { return length.real < length.padded; });
}

Case padded_twin(const Case& verified) {
  Case twin = verified;
  twin.name += " | padded further";
  for (DocumentLength& length : twin.documents) length.padded += std::int64_t{2} * verified.cp;
  twin.query_tokens += std::int64_t{2} * verified.cp * static_cast<std::int64_t>(twin.documents.size());
  twin.key_tokens = twin.query_tokens;
  return twin;
}

std::string hash_of_fixtures(const std::vector<Case>& cases) {
  std::set<std::string> seen;
  std::string hashes;
  for (const Case& verified : cases) {
    Case sequence = verified;  // what the numbers depend on
    sequence.name = sequence.method = sequence.shape = "";
    sequence.layout = Layout::kZigzag;
    sequence.per_document = false;
    sequence.cp = 1;
    sequence.inner = 0;
    sequence.fault = Fault::kNone;
    sequence.heads.scale = 1;
    const bool wide = sequence.number == Number::kFp64 || sequence.number == Number::kFp32;
    sequence.number = wide ? Number::kFp64 : Number::kBf16;
    if (seen.insert(case_json(sequence)).second) hashes += fixture_hash(sequence);
  }
  return sha256_hex(hashes);
}

std::string layout_text(const Case& verified) {
  return std::string(name_of(verified.layout)) + (verified.per_document ? " per document" : "");
}

std::string heads_text(const Heads& heads) {
  return fmt::format("{} query heads, {} KV heads, d_qk {}, d_v {}", heads.q, heads.kv, heads.qk_dim, heads.v_dim);
}

}  // namespace cpfit::kernels
