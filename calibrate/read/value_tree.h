// Data as JSON and Python's pickle hold it: nothing, booleans, numbers, texts, lists, dictionaries. Nodes live in one place and
// name each other by number, so that what a file shares is held once, what is nested deeply costs no stack, and a limit on nodes
// and text bounds the memory whatever the file claims. A file may make a container hold itself: walk only to a depth you know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cpfit {

using NodeId = std::uint32_t;
enum class NodeKind : std::uint8_t { kNone, kBoolean, kInteger, kReal, kText, kList, kDictionary };

struct TreeLimits {
  std::size_t nodes = std::size_t{1} << 26U;  // with their children: about 2 GiB of memory
  std::size_t text_bytes = std::size_t{1} << 28U;
};

class ValueTree {
 public:
  explicit ValueTree(const TreeLimits& limits = {}) : limits_(limits) {}

  // Makers. Past a limit `full()` is true and nodes are no longer to be trusted.
  NodeId none() { return add({NodeKind::kNone, {}}); }
  NodeId boolean(bool value);
  NodeId integer(std::int64_t value);
  NodeId real(double value);
  NodeId text(std::string_view value);  // equal texts are one node
  NodeId container(NodeKind kind);      // list or dictionary
  /// To a list: one element; to a dictionary a key, then its value.
  void append(NodeId container, NodeId child);
  [[nodiscard]] bool full() const { return full_; }

  // Readers. Of another kind than asked for: nothing, empty.
  [[nodiscard]] NodeKind kind(NodeId node) const { return nodes_[node].kind; }
  [[nodiscard]] std::optional<std::int64_t> integer_of(NodeId node) const;
  [[nodiscard]] std::optional<double> number_of(NodeId node) const;
  [[nodiscard]] std::string_view text_of(NodeId node) const;
  /// Elements of a list; of a dictionary key, value, key, value.
  [[nodiscard]] const std::vector<NodeId>& children(NodeId node) const;
  /// The value of a key; the last of several, as Python keeps it.
  [[nodiscard]] std::optional<NodeId> find(NodeId dictionary, std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> integer_at(NodeId dictionary, std::string_view key) const;
  [[nodiscard]] std::string_view text_at(NodeId dictionary, std::string_view key) const;
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

 private:
  union Payload {
    std::int64_t integer;
    double real;
    std::uint32_t index;  // into texts_ or children_
  };
  struct Node {
    NodeKind kind;
    Payload payload;
  };
  NodeId add(Node node);
  void count(std::size_t more);

  TreeLimits limits_;
  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
  std::vector<std::vector<NodeId>> children_;
  std::unordered_map<std::string, NodeId> known_texts_;
  std::size_t counted_ = 0, text_bytes_ = 0;
  bool full_ = false;
};

}  // namespace cpfit
