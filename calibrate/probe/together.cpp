#include "calibrate/probe/together.h"

#include <algorithm>

namespace cpfit::probe {

namespace {

using kernels::Message;

constexpr std::size_t kTextBytes = 256;

kernels::View view_of(std::span<double> values) {
  return {values.data(), kernels::Number::kFp64, static_cast<std::int64_t>(values.size()), 1};
}

}  // namespace

std::vector<double> Together::gather(std::span<const double> own) {
  std::vector<double> mine(own.begin(), own.end());
  if (size() == 1) return mine;
  if (rank() != 0) {
    const Message message = kernels::send_to(0, view_of(mine));
    host_.wait(host_.start({&message, 1}));
    return {};
  }
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size()));
  std::ranges::copy(mine, all.begin());
  std::vector<Message> batch;
  for (std::int32_t peer = 1; peer < size(); ++peer) {
    const std::span<double> theirs(all.data() + static_cast<std::size_t>(peer) * mine.size(), mine.size());
    batch.push_back(kernels::receive_from(peer, view_of(theirs)));
  }
  host_.wait(host_.start(batch));
  return all;
}

void Together::share(std::span<double> values) {
  std::vector<Message> batch;
  if (rank() == 0) {
    for (std::int32_t peer = 1; peer < size(); ++peer) batch.push_back(kernels::send_to(peer, view_of(values)));
  } else {
    batch.push_back(kernels::receive_from(0, view_of(values)));
  }
  if (!batch.empty()) host_.wait(host_.start(batch));
}

double Together::largest(double own) {
  const std::vector<double> all = gather({&own, 1});
  double value = all.empty() ? 0 : *std::ranges::max_element(all);
  share({&value, 1});
  return value;
}

std::vector<std::string> Together::texts(const std::string& own) {
  std::vector<double> letters(kTextBytes, 0.0);
  for (std::size_t i = 0; i < std::min(own.size(), kTextBytes - 1); ++i) letters[i] = static_cast<unsigned char>(own[i]);
  std::vector<double> all = gather(letters);
  all.resize(kTextBytes * static_cast<std::size_t>(size()));
  share(all);
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < all.size(); begin += kTextBytes) {
    std::string text;
    for (std::size_t i = begin; all[i] != 0; ++i) text += static_cast<char>(static_cast<unsigned char>(all[i]));
    texts.push_back(text);
  }
  return texts;
}

std::string Together::text(const std::string& of_rank_0) {
  double length = static_cast<double>(of_rank_0.size());
  share({&length, 1});
  std::vector<double> letters(static_cast<std::size_t>(length), 0.0);
  if (rank() == 0) std::ranges::transform(of_rank_0, letters.begin(), [](char c) { return static_cast<unsigned char>(c); });
  share(letters);
  std::string text;
  for (const double letter : letters) text += static_cast<char>(static_cast<unsigned char>(letter));
  return text;
}

}  // namespace cpfit::probe
