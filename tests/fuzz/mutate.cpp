#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <iterator>

namespace cpfit::fuzz {

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Where a run of digits begins, searched from a random place on; npos when there is none.
std::size_t number_in(const std::string& text, Dice& dice) {
  const std::size_t from = dice.below(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t at = (from + i) % text.size();
    if (digit(text[at]) && (at == 0 || !digit(text[at - 1]))) return at;
  }
  return std::string::npos;
}

void flip_bits(std::string& text, Dice& dice) {
  for (std::size_t i = 0, count = 1 + dice.below(8); i < count && !text.empty(); ++i) {
    char& c = text[dice.below(text.size())];
    c = static_cast<char>(static_cast<unsigned char>(c) ^ (1U << dice.below(8)));
  }
}

void lose_bytes(std::string& text, Dice& dice) {
  const std::size_t at = dice.below(text.size());
  text.erase(at, 1 + dice.below(32));
}

void splice(std::string& text, const std::string& other, Dice& dice) {
  const std::size_t from = dice.below(other.size());
  text.replace(dice.below(text.size()), dice.below(64), other, from, 1 + dice.below(other.size()));
}

void repeat_block(std::string& text, Dice& dice) {
  const std::size_t at = dice.below(text.size());
  const std::string block = text.substr(at, 1 + dice.below(200));
  std::string repeated;
  for (std::size_t i = 0, count = std::size_t{1} << dice.below(8); i < count; ++i) repeated += block;
  text.insert(at, repeated);
}

void change_number(std::string& text, Dice& dice) {
  static const char* const kNumbers[] = {"0",
                                         "-1",
                                         "1",
                                         "2147483647",
                                         "2147483648",
                                         "-2147483648",
                                         "4294967295",
                                         "4294967296",
                                         "16777217",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "-9223372036854775808",
                                         "1e308",
                                         "1e400",
                                         "1e-320",
                                         "nan",
                                         "inf",
                                         "18446744073709551616",
                                         "1048576",
                                         "65536",
                                         "99999999999",
                                         "0.5",
                                         "1000000"};
  const std::size_t at = number_in(text, dice);
  if (at == std::string::npos) return;
  std::size_t end = at;
  while (end < text.size() && digit(text[end])) ++end;
  text.replace(at, end - at, kNumbers[dice.below(std::size(kNumbers))]);
}

void nest(std::string& text, Dice& dice) {
  static const char* const kOpen[] = {"[", "{\"a\":", "(", "{", "<a>", "a = [", "a.", "\"", "- "};
  const char* open = kOpen[dice.below(std::size(kOpen))];
  std::string deep;
  for (std::size_t i = 0, count = std::size_t{8} << dice.below(15); i < count; ++i) deep += open;
  text.insert(dice.below(text.size() + 1), deep);
}

}  // namespace

std::uint64_t Dice::next() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return (state_ * 2685821657736338717ULL) >> 16;
}

std::string mutated(const std::vector<std::string>& seeds, const std::vector<std::string>& words, Dice& dice, std::size_t most) {
  std::string text = seeds[dice.below(seeds.size())];
  for (std::size_t i = 0, count = 1 + dice.below(4); i < count; ++i) {
    switch (dice.below(9)) {
      case 0:
        flip_bits(text, dice);
        break;
      case 1:
        lose_bytes(text, dice);
        break;
      case 2:
        text.resize(dice.below(text.size() + 1));
        break;
      case 3:
        splice(text, seeds[dice.below(seeds.size())], dice);
        break;
      case 4:
        repeat_block(text, dice);
        break;
      case 5:
        nest(text, dice);
        break;
      case 6:
        if (!words.empty()) text.insert(dice.below(text.size() + 1), words[dice.below(words.size())]);
        break;
      default:
        change_number(text, dice);
    }
  }
  if (text.size() > most) text.resize(most);
  return text;
}

std::vector<std::string> dictionary(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!inside && c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"') {
      if (inside) words.push_back(word);
      inside = !inside;
      word.clear();
    } else if (inside && c == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      if (next == 'x' && i + 2 < text.size()) {
        word += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        word += next;
      }
    } else if (inside) {
      word += c;
    }
  }
  return words;
}

}  // namespace cpfit::fuzz
