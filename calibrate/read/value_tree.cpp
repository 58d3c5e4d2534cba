#include "calibrate/read/value_tree.h"

namespace cpfit {

namespace {
const std::vector<NodeId> kNoChildren;
}  // namespace

void ValueTree::count(std::size_t more) {
  counted_ += more;
  if (counted_ > limits_.nodes || text_bytes_ > limits_.text_bytes) full_ = true;
}

NodeId ValueTree::add(Node node) {
  count(1);
  if (full_ && !nodes_.empty()) return 0;
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId ValueTree::boolean(bool value) {
  Node node{NodeKind::kBoolean, {}};
  node.payload.integer = value ? 1 : 0;
  return add(node);
}

NodeId ValueTree::integer(std::int64_t value) {
  Node node{NodeKind::kInteger, {}};
  node.payload.integer = value;
  return add(node);
}

NodeId ValueTree::real(double value) {
  Node node{NodeKind::kReal, {}};
  node.payload.real = value;
  return add(node);
}

NodeId ValueTree::text(std::string_view value) {
  if (full_ && !nodes_.empty()) return 0;
  const auto [at, is_new] = known_texts_.try_emplace(std::string(value), 0);
  if (!is_new) return at->second;
  text_bytes_ += 2 * value.size();  // here and as the key above
  Node node{NodeKind::kText, {}};
  node.payload.index = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(value);
  return at->second = add(node);
}

NodeId ValueTree::container(NodeKind kind) {
  count(2);  // an empty vector is as large as two nodes
  if (full_ && !nodes_.empty()) return 0;
  Node node{kind, {}};
  node.payload.index = static_cast<std::uint32_t>(children_.size());
  children_.emplace_back();
  return add(node);
}

void ValueTree::append(NodeId container, NodeId child) {
  const Node& node = nodes_[container];
  if (node.kind != NodeKind::kList && node.kind != NodeKind::kDictionary) return;
  count(1);
  if (!full_) children_[node.payload.index].push_back(child);
}

std::optional<std::int64_t> ValueTree::integer_of(NodeId node) const {
  if (nodes_[node].kind != NodeKind::kInteger) return std::nullopt;
  return nodes_[node].payload.integer;
}

std::optional<double> ValueTree::number_of(NodeId node) const {
  if (nodes_[node].kind == NodeKind::kReal) return nodes_[node].payload.real;
  if (nodes_[node].kind == NodeKind::kInteger) return static_cast<double>(nodes_[node].payload.integer);
  return std::nullopt;
}

std::string_view ValueTree::text_of(NodeId node) const {
  return nodes_[node].kind == NodeKind::kText ? std::string_view(texts_[nodes_[node].payload.index]) : std::string_view();
}

const std::vector<NodeId>& ValueTree::children(NodeId node) const {
  const NodeKind kind = nodes_[node].kind;
  return kind == NodeKind::kList || kind == NodeKind::kDictionary ? children_[nodes_[node].payload.index] : kNoChildren;
}

std::optional<NodeId> ValueTree::find(NodeId dictionary, std::string_view key) const {
  if (nodes_[dictionary].kind != NodeKind::kDictionary) return std::nullopt;
  const std::vector<NodeId>& pairs = children(dictionary);
  for (std::size_t i = pairs.size() / 2; i > 0; --i) {
    if (kind(pairs[2 * i - 2]) == NodeKind::kText && text_of(pairs[2 * i - 2]) == key) return pairs[2 * i - 1];
  }
  return std::nullopt;
}

std::optional<std::int64_t> ValueTree::integer_at(NodeId dictionary, std::string_view key) const {
  const std::optional<NodeId> at = find(dictionary, key);
  return at ? integer_of(*at) : std::nullopt;
}

std::string_view ValueTree::text_at(NodeId dictionary, std::string_view key) const {
  const std::optional<NodeId> at = find(dictionary, key);
  return at ? text_of(*at) : std::string_view();
}

}  // namespace cpfit
