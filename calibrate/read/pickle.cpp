#include "calibrate/read/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace cpfit {

namespace {

/// A single text of a file; snapshots hold paths and names.
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 24U;
constexpr std::size_t kLongestLine = 4096;  // of the textual instructions

/// Why reading stopped.
struct Stop {
  std::string code, message, repair;
};

class ByteStream {
 public:
  explicit ByteStream(std::istream& stream) : stream_(stream), buffer_(std::size_t{1} << 16U) {}
  [[nodiscard]] std::uint64_t at() const { return before_ + at_; }
  unsigned char byte() {
    if (at_ == end_) fill();
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  /// Little-endian, `size` bytes, at most 8.
  std::uint64_t number(int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  std::string_view text(std::uint64_t size) {
    if (size > kLongestText) {
      throw Stop{"pickle.too_large", fmt::format("a text of {} bytes at byte {}", size, at()), "is this a memory snapshot?"};
    }
    text_.clear();
    while (text_.size() < size) {
      if (at_ == end_) fill();
      const std::size_t part = std::min<std::size_t>(size - text_.size(), end_ - at_);
      text_.append(buffer_.data() + at_, part);
      at_ += part;
    }
    return text_;
  }
  std::string_view line() {
    text_.clear();
    for (char c = static_cast<char>(byte()); c != '\n'; c = static_cast<char>(byte())) {
      if (text_.size() == kLongestLine) throw Stop{"pickle.syntax", fmt::format("a line without end before byte {}", at()), ""};
      text_ += c;
    }
    return text_;
  }

 private:
  void fill() {
    before_ += end_;
    at_ = 0;
    stream_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    end_ = static_cast<std::size_t>(stream_.gcount());
    if (end_ == 0) {
      throw Stop{"pickle.truncated", fmt::format("ends in the middle, at byte {}", before_),
                 "copy the file again, or dump it anew"};
    }
  }
  std::istream& stream_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t before_ = 0;
  std::string text_;
};

[[noreturn]] void refuse_code(const std::string& what, std::uint64_t at) {
  throw Stop{"pickle.code", fmt::format("would {} (byte {}): only data is read, nothing is imported or called", what, at),
             "a snapshot of torch.cuda.memory._dump_snapshot holds plain data; do not open this file in Python either unless you "
             "trust who made it"};
}

class Machine {
 public:
  Machine(std::istream& stream, const TreeLimits& limits) : in_(stream), tree_(limits) {}

  PickledData run() {
    while (true) {
      if (tree_.full()) {
        throw Stop{"pickle.too_large", fmt::format("holds more than is read in one piece (byte {})", in_.at()),
                   "record fewer events: _record_memory_history(max_entries=100000)"};
      }
      opcode_at_ = in_.at();
      const unsigned char code = in_.byte();
      if (code == '.') break;
      step(code);
    }
    const NodeId root = pop();
    return {std::move(tree_), root};
  }

 private:
  [[noreturn]] void wrong(const std::string& message) const {
    throw Stop{"pickle.syntax", fmt::format("{} at byte {}", message, opcode_at_), "is this a pickle?"};
  }
  void push(NodeId node) {
    stack_.push_back(node);
    if (stack_.size() > kMostParts) throw Stop{"pickle.too_large", "holds more than is read in one piece", ""};
  }
  NodeId pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back())) wrong("takes more than there is");
    const NodeId node = stack_.back();
    stack_.pop_back();
    return node;
  }
  [[nodiscard]] NodeId top() const {
    if (stack_.empty()) wrong("takes more than there is");
    return stack_.back();
  }
  /// Where the items since the last mark begin; the mark is taken away.
  std::size_t mark() {
    if (marks_.empty()) wrong("takes back to a mark that is not there");
    const std::size_t at = marks_.back();
    marks_.pop_back();
    if (at > stack_.size()) wrong("takes more than there is");  // below its mark
    return at;
  }
  void collect(NodeKind kind, std::size_t from) {
    if (kind == NodeKind::kDictionary && (stack_.size() - from) % 2 != 0) wrong("a key without a value");
    const NodeId node = tree_.container(kind);
    for (std::size_t i = from; i < stack_.size(); ++i) tree_.append(node, stack_[i]);
    stack_.resize(from);
    push(node);
  }
  /// A tuple of the last `count`.
  void collect_last(std::size_t count) {
    if (stack_.size() < count + (marks_.empty() ? 0 : marks_.back())) wrong("takes more than there is");
    collect(NodeKind::kList, stack_.size() - count);
  }
  /// Adds what stands above `from` to the container below it.
  void extend(NodeKind kind, std::size_t from) {
    if (from == 0 || tree_.kind(stack_[from - 1]) != kind) wrong("adds to what is no container");
    if (kind == NodeKind::kDictionary && (stack_.size() - from) % 2 != 0) wrong("a key without a value");
    for (std::size_t i = from; i < stack_.size(); ++i) tree_.append(stack_[from - 1], stack_[i]);
    stack_.resize(from);
  }
  void extend_last(NodeKind kind, std::size_t count) {
    if (stack_.size() < count + 1 + (marks_.empty() ? 0 : marks_.back())) wrong("takes more than there is");
    extend(kind, stack_.size() - count);
  }
  /// Python numbers what it remembers without gaps; others may not.
  void remember(std::uint64_t index) {
    if (index < memo_.size()) {
      memo_[index] = top();
    } else if (index == memo_.size()) {
      memo_.push_back(top());
    } else {
      scattered_memo_[index] = top();
    }
    if (memo_.size() > kMostParts || scattered_memo_.size() > kMostScattered)
      throw Stop{"pickle.too_large", "remembers more parts than are read in one piece", ""};
  }
  void recall(std::uint64_t index) {
    if (index < memo_.size()) return push(memo_[index]);
    const auto found = scattered_memo_.find(index);
    if (found == scattered_memo_.end()) wrong("recalls what was never remembered");
    push(found->second);
  }
  std::uint64_t number_of_line() {
    const std::string_view line = in_.line();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc{} || end != line.data() + line.size()) wrong("no number");
    return value;
  }
  NodeId long_integer(std::uint64_t size) {
    if (size > 1024) throw Stop{"pickle.too_large", fmt::format("an integer of {} bytes", size), ""};
    const std::string_view bytes = in_.text(size);
    if (size > 8) {  // beyond 64 bits: as a double, or endless
      double value = 0;
      for (std::size_t i = size; i > 0; --i) value = value * 256 + static_cast<unsigned char>(bytes[i - 1]);
      return tree_.real((static_cast<unsigned char>(bytes[size - 1]) & 0x80U) != 0
                            ? value - std::ldexp(1.0, static_cast<int>(8 * size))
                            : value);
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    if (size > 0 && size < 8 && (static_cast<unsigned char>(bytes[size - 1]) & 0x80U) != 0)
      value |= ~std::uint64_t{0} << (8 * size);
    return tree_.integer(static_cast<std::int64_t>(value));
  }
  NodeId integer_of_line(bool is_long) {
    std::string_view line = in_.line();
    if (!is_long && (line == "00" || line == "01")) return tree_.boolean(line == "01");
    if (is_long && line.ends_with('L')) line.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc{} || end != line.data() + line.size()) wrong("no integer of 64 bits");
    return tree_.integer(value);
  }
  NodeId real_of_line() {
    const std::string_view line = in_.line();
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc{} || end != line.data() + line.size()) wrong("no number");
    return tree_.real(value);
  }
  /// Protocol 0's quoted text. Escapes stay as they are written: nobody compares such texts.
  NodeId quoted() {
    std::string_view line = in_.line();
    if (line.size() < 2 || line.front() != line.back()) wrong("no quoted text");
    return tree_.text(line.substr(1, line.size() - 2));
  }
  /// What STACK_GLOBAL would import, from the two texts on the stack.
  std::string stacked_name() {
    if (stack_.size() < 2) return "a name";
    return fmt::format("{}.{}", tree_.text_of(stack_[stack_.size() - 2]).substr(0, 80),
                       tree_.text_of(stack_.back()).substr(0, 80));
  }
  std::string named() {
    const std::string module(in_.line().substr(0, 80));
    return fmt::format("{}.{}", module, in_.line().substr(0, 80));
  }

  void step(unsigned char code);
  bool step_text(unsigned char code);
  bool step_container(unsigned char code);
  void refuse(unsigned char code);

  static constexpr std::size_t kMostParts = std::size_t{1} << 26U, kMostScattered = std::size_t{1} << 20U;
  ByteStream in_;
  ValueTree tree_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<NodeId> memo_;
  std::unordered_map<std::uint64_t, NodeId> scattered_memo_;
  std::uint64_t opcode_at_ = 0;
};

void Machine::step(unsigned char code) {
  switch (code) {
    case 0x80:  // PROTO
      if (const unsigned char version = in_.byte(); version > 5) wrong(fmt::format("pickle protocol {} is not known", version));
      return;
    case 0x95:  // FRAME: its length says nothing that the instructions do not
      (void)in_.number(8);
      return;
    case '(':
      marks_.push_back(stack_.size());
      if (marks_.size() > std::size_t{1} << 22U) throw Stop{"pickle.too_large", "marks nested without end", ""};
      return;
    case '0':
      (void)pop();
      return;
    case '1':
      stack_.resize(mark());
      return;
    case '2':
      return push(top());
    case 'N':
      return push(tree_.none());
    case 0x88:
    case 0x89:
      return push(tree_.boolean(code == 0x88));
    case 'I':
      return push(integer_of_line(false));
    case 'L':
      return push(integer_of_line(true));
    case 'J':
      return push(tree_.integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(in_.number(4)))));
    case 'K':
      return push(tree_.integer(static_cast<std::int64_t>(in_.number(1))));
    case 'M':
      return push(tree_.integer(static_cast<std::int64_t>(in_.number(2))));
    case 0x8a:
      return push(long_integer(in_.number(1)));
    case 0x8b:
      return push(long_integer(in_.number(4)));
    case 'F':
      return push(real_of_line());
    case 'G': {
      std::uint64_t bits = 0;
      for (int i = 0; i < 8; ++i) bits = bits << 8U | in_.byte();  // big-endian
      return push(tree_.real(std::bit_cast<double>(bits)));
    }
    case 'p':
      return remember(number_of_line());
    case 'q':
      return remember(in_.number(1));
    case 'r':
      return remember(in_.number(4));
    case 0x94:  // MEMOIZE
      return remember(memo_.size() + scattered_memo_.size());
    case 'g':
      return recall(number_of_line());
    case 'h':
      return recall(in_.number(1));
    case 'j':
      return recall(in_.number(4));
    default:
      if (step_text(code) || step_container(code)) return;
      refuse(code);
  }
}

bool Machine::step_text(unsigned char code) {
  switch (code) {
    case 'S':
      push(quoted());
      return true;
    case 'V':
      push(tree_.text(in_.line()));
      return true;
    case 'U':
    case 'C':
    case 0x8c:
      push(tree_.text(in_.text(in_.number(1))));
      return true;
    case 'T':
    case 'B':
    case 'X':
      push(tree_.text(in_.text(in_.number(4))));
      return true;
    case 0x8d:
    case 0x8e:
    case 0x96:
      push(tree_.text(in_.text(in_.number(8))));
      return true;
    default:
      return false;
  }
}

bool Machine::step_container(unsigned char code) {
  switch (code) {
    case ']':
    case ')':
    case 0x8f:  // EMPTY_SET
      push(tree_.container(NodeKind::kList));
      return true;
    case '}':
      push(tree_.container(NodeKind::kDictionary));
      return true;
    case 'l':
    case 't':
    case 0x91:  // FROZENSET
      collect(NodeKind::kList, mark());
      return true;
    case 'd':
      collect(NodeKind::kDictionary, mark());
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      collect_last(code - 0x84U);
      return true;
    case 'a':
      extend_last(NodeKind::kList, 1);
      return true;
    case 'e':
    case 0x90:  // ADDITEMS
      extend(NodeKind::kList, mark());
      return true;
    case 's':
      extend_last(NodeKind::kDictionary, 2);
      return true;
    case 'u':
      extend(NodeKind::kDictionary, mark());
      return true;
    default:
      return false;
  }
}

void Machine::refuse(unsigned char code) {
  switch (code) {
    case 'c':
      refuse_code("import " + named(), opcode_at_);
    case 'i':
      refuse_code("create " + named(), opcode_at_);
    case 0x93:
      refuse_code("import " + stacked_name(), opcode_at_);
    case 'R':
      refuse_code("call a function (REDUCE)", opcode_at_);
    case 'b':
      refuse_code("set up an object (BUILD)", opcode_at_);
    case 'o':
      refuse_code("create an object (OBJ)", opcode_at_);
    case 0x81:
    case 0x92:
      refuse_code("create an object (NEWOBJ)", opcode_at_);
    case 'P':
    case 'Q':
      refuse_code("fetch an object from elsewhere (PERSID)", opcode_at_);
    case 0x82:
    case 0x83:
    case 0x84:
      refuse_code("import a registered name (EXT)", opcode_at_);
    case 0x97:
    case 0x98:
      refuse_code("take a buffer from elsewhere (NEXT_BUFFER)", opcode_at_);
    default:
      wrong(fmt::format("0x{:02x} is no instruction", code));
  }
}

}  // namespace

Outcome<PickledData> read_pickle(std::istream& stream, const std::string& where, const TreeLimits& limits) {
  try {
    return Machine(stream, limits).run();
  } catch (const Stop& stop) {
    return Problem{stop.code, where, stop.message, stop.repair};
  }
}

}  // namespace cpfit
