// NCCL ranks as threads of this process, one GPU each: as many as there are GPUs, up to 4. With one GPU the only rank talks to
// itself, which NCCL takes the same way. The exchange of the id needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/transport/in_process.h"
#include "kernels/transport/nccl_library.h"
#include "kernels/transport/nccl_transport.h"
#include "model/quantity/problem.h"
#include "on_gpu.h"

namespace cpfit::kernels {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class IdFolder : public testing::Test {
 protected:
  IdFolder() : folder_(fs::path(testing::TempDir()) / "cpfit_nccl_id_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~IdFolder() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST(NcclLibrary, ThatIsMissingIsNamedWithItsRepair) {
  try {
    (void)load_nccl({"libcpfit-has-no-such-library.so.2"});
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("libcpfit-has-no-such-library.so.2"));
    EXPECT_THAT(error.what(), HasSubstr("install libnccl2"));
  }
}

TEST(NcclLibrary, ThatLacksAFunctionIsTooOld) {
  try {
    (void)load_nccl({"libc.so.6"});  // a library, and not NCCL
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no ncclGetVersion"));
  }
}

TEST_F(IdFolder, RanksGetTheIdOfRankZero) {
  if (nccl_version().empty()) GTEST_SKIP() << "waived: no NCCL here";
  NcclId late;
  NcclId early;
  std::jthread waits([&] { early = share_nccl_id(folder_, "7.0", 1, std::chrono::seconds(30)); });
  const NcclId made = share_nccl_id(folder_, "7.0", 0, std::chrono::seconds(30));
  waits.join();
  late = share_nccl_id(folder_, "7.0", 2, std::chrono::seconds(30));
  EXPECT_EQ(early.bytes, made.bytes);
  EXPECT_EQ(late.bytes, made.bytes);
  remove_nccl_id(folder_, "7.0");
  remove_nccl_id(folder_, "7.0");  // whoever is second finds nothing, which is fine
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(IdFolder, ALeftOverIdIsRefusedAndAMissingOneTold) {
  (void)share_nccl_id(folder_, "7.0", 0, std::chrono::seconds(1));
  try {
    (void)share_nccl_id(folder_, "7.0", 0, std::chrono::seconds(1));
    FAIL() << "an id of an earlier start was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("already there"));
  }
  try {
    (void)share_nccl_id(folder_, "8.0", 3, std::chrono::milliseconds(50));
    FAIL() << "an id came from nowhere";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 3 waited 50 ms"));
  }
}

TEST(NcclIdOverHosts, RanksGetTheIdOfRankZero) {
  std::vector<NcclId> ids(3);
  run_ranks(3, std::chrono::seconds(30),
            [&](InProcessTransport& host) { ids[static_cast<std::size_t>(host.rank())] = share_nccl_id(host); });
  EXPECT_EQ(ids[1].bytes, ids[0].bytes);
  EXPECT_EQ(ids[2].bytes, ids[0].bytes);
  EXPECT_NE(ids[0].bytes, NcclId{}.bytes);
}

/// `work` on one thread per GPU. What a rank throws becomes its text.
std::vector<std::string> on_every_gpu(const NcclOptions& options, const std::function<void(DeviceOperators&, Transport&)>& work) {
  const int ranks = std::min(device_count(), 4);
  const NcclId id = make_nccl_id();
  std::vector<std::string> failures(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const auto operators = make_cuda_operators(rank, Number::kFp32);
          const auto transport = make_nccl_transport(*operators, id, rank, ranks, options);
          work(*operators, *transport);
        } catch (const std::exception& failure) {
          failures[static_cast<std::size_t>(rank)] = failure.what();
        }
      });
    }
  }
  return failures;
}

TEST(GpuNccl, MessagesArriveInOrderAndBesideKernels) {
  CPFIT_NEEDS_GPU();
  const auto failures = on_every_gpu({}, [](DeviceOperators& on, Transport& transport) {
    const std::int32_t next = (transport.rank() + 1) % transport.size();
    const std::int32_t last = (transport.rank() + transport.size() - 1) % transport.size();
    const Array a = on.allocate(Number::kBf16, 500, 64);
    const Array b = on.allocate(Number::kFp32, 10, 3);
    const Array got_a = on.allocate(Number::kBf16, 500, 64);
    const Array got_b = on.allocate(Number::kFp32, 10, 3);
    for (int round = 0; round < 10; ++round) {
      on.fill(a, transport.rank() + 8 * round);
      on.fill(b, -transport.rank() - 8 * round);
      const Message batch[] = {send_to(next, a), send_to(next, b), receive_from(last, got_a), receive_from(last, got_b)};
      transport.wait(transport.start(batch));
      on.fill(a, -100);
      EXPECT_THAT(on.download(got_a), testing::Each(last + 8 * round));
      EXPECT_THAT(on.download(got_b), testing::Each(-last - 8 * round));
    }
    transport.barrier();
  });
  EXPECT_THAT(failures, testing::Each(""));
}

TEST(GpuNccl, CollectivesOverAllRanks) {
  CPFIT_NEEDS_GPU();
  for (const bool native : {false, true}) {
    NcclOptions options;
    options.native_reductions = native;
    const auto failures = on_every_gpu(options, [](DeviceOperators& on, Transport& transport) {
      const std::int32_t size = transport.size();
      std::vector<std::int32_t> group;
      for (std::int32_t i = 0; i < size; ++i) group.push_back(i);
      const Array own = on.allocate(Number::kFp32, 4, 2);
      const Array all = on.allocate(Number::kFp32, 4 * size, 2);
      on.fill(own, 1 + transport.rank());
      transport.wait(transport.start_all_gather(group, own, all));
      const std::vector<double> gathered = on.download(all);
      for (std::size_t i = 0; i < gathered.size(); ++i) EXPECT_EQ(gathered[i], 1 + static_cast<double>(i / 8));
      const Array exchanged = on.allocate(Number::kFp32, 4 * size, 2);
      transport.wait(transport.start_all_to_all(group, all, exchanged));
      EXPECT_THAT(on.download(exchanged), testing::Each(1 + transport.rank()));  // everybody's part for me is the same number
      transport.reduce_scatter(on, group, all, own);
      EXPECT_THAT(on.download(own), testing::Each(size * (1 + transport.rank())));
      transport.all_reduce(on, group, own);
      EXPECT_THAT(on.download(own), testing::Each(size * size * (size + 1) / 2));
    });
    EXPECT_THAT(failures, testing::Each(""));
  }
}

TEST(GpuNccl, ARankThatStopsIsToldOnEveryOther) {
  CPFIT_NEEDS_GPU();
  if (device_count() < 2) GTEST_SKIP() << "waived: one GPU here, a peer needs another";
  NcclOptions options;
  options.timeout = std::chrono::seconds(5);
  const auto failures = on_every_gpu(options, [](DeviceOperators& on, Transport& transport) {
    transport.barrier();
    if (transport.rank() == 0) throw Error("rank 0 stops here");
    const Array a = on.allocate(Number::kFp32, 10, 1);
    const Message batch[] = {receive_from(0, a)};
    transport.wait(transport.start(batch));
    on.finish();
  });
  EXPECT_EQ(failures[0], "rank 0 stops here");
  for (std::size_t rank = 1; rank < failures.size(); ++rank) EXPECT_THAT(failures[rank], HasSubstr("NCCL"));
}

}  // namespace
}  // namespace cpfit::kernels
