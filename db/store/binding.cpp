#include "db/store/binding.h"

namespace cpfit {

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ',';
    text += word;
  }
  return text;
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  if (text.empty()) return words;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(',', begin);
    words.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return words;
    begin = end + 1;
  }
}

std::string placeholders(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}

}  // namespace cpfit
