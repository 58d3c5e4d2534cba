#include <algorithm>
#include <cctype>
#include <cmath>

#include "model/quantity/text.h"
#include "sim/ask/oom.h"

namespace cpfit::ask {

namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// The text with every run of blanks as one: a pasted message is broken anywhere.
std::string flattened(std::string_view text) {
  std::string flat;
  for (const char c : text) {
    if (!is_blank(c)) {
      flat += c;
    } else if (!flat.empty() && flat.back() != ' ') {
      flat += ' ';
    }
  }
  return flat;
}

struct Amount {
  Bytes bytes;
  Bytes resolution;
};

/// "70.46 GiB" at the beginning of `text`.
std::optional<Amount> amount_at(std::string_view text) {
  std::size_t end = 0, point = std::string_view::npos;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
    if (text[end] == '.') point = end;
    ++end;
  }
  if (end == 0 || end + 1 >= text.size() || text[end] != ' ') return std::nullopt;
  const std::string_view number = text.substr(0, end);
  std::size_t stop = end + 1;
  while (stop < text.size() && std::isalpha(static_cast<unsigned char>(text[stop])) != 0) ++stop;
  std::string unit(text.substr(end + 1, stop - end - 1));
  if (unit == "bytes") unit = "B";
  const Outcome<Bytes> bytes = parse_bytes(std::string(number) + " " + unit);
  const Outcome<Bytes> one = parse_bytes("1 " + unit);
  if (!bytes.ok() || !one.ok()) return std::nullopt;
  const double decimals = point == std::string_view::npos ? 0.0 : static_cast<double>(end - point - 1);
  return Amount{*bytes, Bytes(0.5 * one->value() * std::pow(10.0, -decimals))};
}

std::optional<Amount> after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  return at == std::string_view::npos ? std::nullopt : amount_at(text.substr(at + words.size()));
}

/// The amount that stands right before `words`.
std::optional<Bytes> before(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t unit = text.rfind(' ', at - 1);
  if (at == 0 || unit == std::string_view::npos || unit == 0) return std::nullopt;
  std::size_t begin = unit;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '.')) --begin;
  const std::optional<Amount> amount = amount_at(text.substr(begin));
  return amount ? std::optional(amount->bytes) : std::nullopt;
}

std::optional<Bytes> difference(const std::optional<Bytes>& whole, const std::optional<Bytes>& part) {
  if (!whole || !part) return std::nullopt;
  return Bytes(std::max(0.0, whole->value() - part->value()));
}

}  // namespace

std::optional<Bytes> OomMessage::cached() const { return difference(reserved, allocated); }
std::optional<Bytes> OomMessage::outside() const { return difference(in_use, reserved); }
std::optional<Bytes> OomMessage::other_processes() const { return difference(difference(capacity, free), in_use); }

Outcome<OomMessage> parse_oom(std::string_view pasted) {
  constexpr std::size_t kLongest = 1u << 20;
  const std::string text = flattened(pasted.substr(0, kLongest));
  const std::optional<Amount> tried = after(text, "Tried to allocate ");
  if (!tried) {
    return Problem{"ask.no_oom", "", "the text holds no \"Tried to allocate\" with an amount",
                   "paste the whole message that begins with \"CUDA out of memory\""};
  }
  OomMessage message;
  message.tried = tried->bytes;
  message.tried_resolution = tried->resolution;
  for (const char* words : {"total capacity of ", "total capacty of "}) {  // PyTorch 2.1 and 2.2 misspell it
    if (const std::optional<Amount> amount = after(text, words); amount && !message.capacity) message.capacity = amount->bytes;
  }
  if (!message.capacity) message.capacity = before(text, " total capacity");
  message.free = before(text, " is free");
  if (!message.free) message.free = before(text, " free;");
  if (const std::optional<Amount> own = after(text, "this process has ")) message.in_use = own->bytes;
  message.allocated = before(text, " is allocated by PyTorch");
  if (!message.allocated) message.allocated = before(text, " already allocated");
  if (!message.allocated) message.allocated = before(text, " allocated by PyTorch");
  message.reserved = before(text, " reserved in total by PyTorch");
  if (!message.reserved) {
    if (const std::optional<Bytes> cached = before(text, " is reserved by PyTorch but unallocated"); cached && message.allocated)
      message.reserved = *message.allocated + *cached;
  }
  return message;
}

}  // namespace cpfit::ask
