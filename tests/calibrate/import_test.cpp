// Outputs of other tools, recognised by content: miniatures of our own, and the real samples of the shared folder.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "calibrate/read/imported.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

using testing::HasSubstr;

const CollectiveMeasurement& collective(const ImportedFile& file, std::size_t row) {
  return std::get<CollectiveMeasurement>(file.table.rows.at(row).what);
}

constexpr const char* kTwoNodes =
    "mpirun prints something here\n"
    "# nccl-tests version 2.18.3 nccl-headers=23003 nccl-library=23003\n"
    "# Collective test starting: all_gather_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: "
    "0\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  12 on node-a device  0 [0000:06:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  13 on node-a device  1 [0000:09:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid  14 on node-b device  0 [0000:06:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid  15 on node-b device  1 [0000:09:00] NVIDIA H100 80GB HBM3\n"
    "node-a:12:12 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
    "#\n"
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "           0             0     float    none      -1     8.00    0.00    0.00      0     8.10    0.00    0.00    N/A\n"
    "        1024            64     float    none      -1    20.50    0.05    0.04      0    20.10    0.05    0.04      0\n"
    "        2048           128     float    none      -1    21.00    0.10    0.07      7    20.60    0.10    0.07      0\n"
    "        4096           256     float    none      -1    22.00    0.19    0.14      7    22.60    0.18    0.14      3\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 0.08\n";

TEST(NcclTests, ReadsRanksHostsVersionAndBothTimings) {
  const ImportedFile file = import_text(kTwoNodes, "run.txt").value();
  EXPECT_EQ(file.format, "nccl-tests all_gather");
  EXPECT_EQ(file.machine.nccl, "2.28.9");  // the log's version over the coded one of the headers
  EXPECT_EQ(file.machine.cuda, "13.0");
  EXPECT_THAT(file.machine.hosts, testing::ElementsAre("node-a", "node-b"));
  EXPECT_EQ(file.machine.gpus_per_host, 2);
  ASSERT_EQ(file.table.rows.size(), 2u);
  EXPECT_EQ(file.table.rows[0].gpu, "H100-SXM5-80GB");
  EXPECT_EQ(collective(file, 0).kind, CollectiveKind::kAllGather);
  EXPECT_EQ(collective(file, 0).ranks, 4);
  EXPECT_EQ(collective(file, 0).nodes, 2);
  EXPECT_DOUBLE_EQ(file.table.rows[0].time.value(), 20.50e-6);
  EXPECT_DOUBLE_EQ(file.table.rows[1].time.value(), 20.60e-6);  // out of place was wrong seven times: in place stands in
  ASSERT_EQ(file.table.unused.size(), 2u);
  EXPECT_THAT(file.table.unused[0].reason, HasSubstr("size 0"));
  EXPECT_THAT(file.table.unused[1].reason, HasSubstr("wrong results"));
  EXPECT_EQ(file.table.unused[1].line, 19);
  EXPECT_EQ(file.sha256.size(), 64u);
}

TEST(NcclTests, OldColumnsAndTwoTestsInOneText) {
  // 2019: "error" for "#wrong", no Group, bus ids in hexadecimal; all_gather without redop and root.
  const std::string text =
      "./build/all_reduce_perf -b 1M -e 1M -g 4\n"
      "# nThread 1 nGpus 4 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
      "# Using devices\n"
      "#   Rank  0 Pid   3509 on       box device  0 [0x07] Tesla V100-SXM2-32GB\n"
      "#   Rank  1 Pid   3509 on       box device  1 [0x0a] Tesla V100-SXM2-32GB\n"
      "#   Rank  2 Pid   3509 on       box device  2 [0x0b] Tesla V100-SXM2-32GB\n"
      "#   Rank  3 Pid   3509 on       box device  3 [0x85] Tesla V100-SXM2-32GB\n"
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "     1048576        262144   float     sum     60.0   17.48   26.21  2e-07     58.0   18.08   27.12  2e-07\n"
      "./build/all_gather_perf -b 1M -e 1M -g 2\n"
      "# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
      "# Using devices\n"
      "#   Rank  0 Pid   3509 on       box device  0 [0x07] Tesla V100-SXM2-32GB\n"
      "#   Rank  1 Pid   3509 on       box device  1 [0x0a] Tesla V100-SXM2-32GB\n"
      "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "     1048576        131072   float     30.0   34.95   17.48  0e+00     31.0   33.83   16.91  0e+00\n"
      "./build/broadcast_perf -b 1M -e 1M -g 2\n"
      "# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
      "# Using devices\n"
      "#   Rank  0 Pid   3509 on       box device  0 [0x07] Tesla V100-SXM2-32GB\n"
      "#   Rank  1 Pid   3509 on       box device  1 [0x0a] Tesla V100-SXM2-32GB\n"
      "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "     1048576        131072   float     30.0   34.95   34.95  0e+00     31.0   33.83   33.83  0e+00\n";
  const ImportedFile file = import_text(text, "old.log").value();
  ASSERT_EQ(file.table.rows.size(), 2u);
  EXPECT_EQ(collective(file, 0).kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(collective(file, 0).ranks, 4);
  EXPECT_EQ(collective(file, 1).kind, CollectiveKind::kAllGather);
  EXPECT_EQ(collective(file, 1).ranks, 2);
  ASSERT_EQ(file.table.unused.size(), 1u);
  EXPECT_THAT(file.table.unused[0].reason, HasSubstr("broadcast_perf"));
}

TEST(NcclTests, AnUnnamedTestIsToldByItsRatioOrLeftOut) {
  // busbw / algbw: 2(8-1)/8 = 1.75 with a sum is an all-reduce; 7/8 without an operation may be all-gather or all-to-all.
  std::string head = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor)\n# Using devices\n";
  for (int rank = 0; rank < 8; ++rank)
    head += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  1 on n device  0 [0000:06:00] NVIDIA B200\n";
  head += "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  const ImportedFile reduced = import_text(head + "  16777216  4194304  float  sum  -1  100.0  167.77  293.60  0\n", "x").value();
  ASSERT_EQ(reduced.table.rows.size(), 1u);
  EXPECT_EQ(collective(reduced, 0).kind, CollectiveKind::kAllReduce);
  const ImportedFile gathered =
      import_text(head + "  16777216  4194304  float  none  -1  100.0  167.77  146.80  0\n", "x").value();
  EXPECT_TRUE(gathered.table.rows.empty());
  EXPECT_THAT(gathered.table.unused.at(0).reason, HasSubstr("no line names the test"));
  // The file's name may tell it.
  EXPECT_EQ(import_text(head + "  16777216  4194304  float  none  -1  100.0  167.77  146.80  0\n", "out/alltoall_b200.txt")
                .value()
                .table.rows.size(),
            1u);
}

TEST(Nvbandwidth, TakesTheMedianPairAndHalvesBothWays) {
  const std::string text =
      R"json({"nvbandwidth": {"CUDA Runtime Version": 13000, "Driver Version": "580.65.06", "version": "v0.8",
    "GPU Device list": ["0: NVIDIA H200 (00000000:06:00)", "1: NVIDIA H200 (00000000:09:00)"],
    "testcases": [
      {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.0", "56.0"]], "sum": 111.0},
      {"name": "device_to_device_bidirectional_memcpy_read_ce", "status": "Passed",
       "bandwidth_matrix": [["N/A", "780.0"], ["780.0", "N/A"]], "sum": 1560.0},
      {"name": "device_to_device_memcpy_write_sm", "status": "Waived"},
      {"name": "device_local_copy", "status": "Passed", "bandwidth_matrix": [["2000.0", "2000.0"]]}]}})json";
  const ImportedFile file = import_text("a banner\n" + text, "nvb.json").value();
  EXPECT_EQ(file.machine.driver, "580.65.06");
  EXPECT_EQ(file.machine.cuda, "13.0");
  ASSERT_EQ(file.table.rows.size(), 2u);
  // 512 MiB at the upper middle of 55 and 56 GB/s; 780 GB/s of both ways are 390 each.
  EXPECT_NEAR(file.table.rows[0].time.value(), 512.0 * 1024 * 1024 / 56e9, 1e-9);
  EXPECT_EQ(collective(file, 0).link, "pcie");
  EXPECT_NEAR(file.table.rows[1].time.value(), 512.0 * 1024 * 1024 / 390e9, 1e-9);
  EXPECT_TRUE(collective(file, 1).both_ways);
  EXPECT_EQ(file.table.unused.size(), 2u);
  EXPECT_EQ(import_text(text.substr(0, 200), "cut.json").problems().at(0).code, "import.unknown");
}

TEST(Nvbandwidth, ItsWordsWithoutABraceAreNoJson) {
  EXPECT_EQ(import_text("\"nvbandwidth\" has \"testcases\"", "notes.txt").problems().at(0).code, "import.nvbandwidth");
}

TEST(FlashOutput, BothBenchmarksAndTheLanesFromTheRate) {
  ImportHints options;
  EXPECT_EQ(import_text("### headdim = 128, causal = True, seqlen = 1024 ###\nFav3 fwd: 0.1ms, 300 TFLOPS\n", "fa", options)
                .problems()
                .at(0)
                .code,
            "import.gpu");
  options.gpu = "H100-SXM5-80GB";
  // 16 x 16 lanes: 4 * 1024^2 / 2 * 128 * 256 FLOPs = 68.7 GFLOP in 0.229 ms are 300 TFLOP/s.
  const ImportedFile three =
      import_text(
          "### headdim = 128, causal = True, seqlen = 1024, deterministic = True ###\n"
          "Fav2 fwd: 0.229ms, 300.1 TFLOPS\nFav3 bwd: 0.573ms, 299.8 TFLOPS\nTriton fwd: 0.2ms, 340 TFLOPS\n",
          "fa", options)
          .value();
  ASSERT_EQ(three.table.rows.size(), 2u);
  const auto& forward = std::get<AttentionMeasurement>(three.table.rows[0].what);
  EXPECT_EQ(forward.shape.heads, 256);
  EXPECT_EQ(forward.library, AttentionLibrary::kFlash2);
  EXPECT_EQ(std::get<AttentionMeasurement>(three.table.rows[1].what).pass, MeasuredPass::kBackward);
  EXPECT_TRUE(std::get<AttentionMeasurement>(three.table.rows[1].what).shape.deterministic);
  EXPECT_EQ(three.table.unused.size(), 1u);

  const ImportedFile two = import_text(
                               "### causal=False, headdim=64, batch_size=32, seqlen=512 ###\n"
                               "Flash2 fwd: 100.00 TFLOPs/s, bwd: 80.00 TFLOPs/s, fwd + bwd: 85.00 TFLOPs/s\n",
                               "fa", options)
                               .value();
  ASSERT_EQ(two.table.rows.size(), 2u);
  // 32 sequences x 2048/64 heads: 4 * 512^2 * 64 * 1024 / 100e12
  EXPECT_NEAR(two.table.rows[0].time.value(), 4.0 * 512 * 512 * 64 * 1024 / 100e12, 1e-12);
  EXPECT_NEAR(two.table.rows[1].time.value(), 10.0 * 512 * 512 * 64 * 1024 / 80e12, 1e-12);
}

TEST(NvidiaSmi, QueryTextSaysDriverClocksLimitAndThrottling) {
  const std::string text =
      "==============NVSMI LOG==============\n\n"
      "Timestamp                                 : Wed Aug  9 15:02:09 2023\n"
      "Driver Version                            : 535.154.05\n"
      "CUDA Version                              : 12.2\n\n"
      "Attached GPUs                             : 2\n"
      "GPU 00000000:04:00.0\n"
      "    Product Name                          : NVIDIA H100 80GB HBM3\n"
      "    Clocks Event Reasons\n"
      "        Idle                              : Not Active\n"
      "        Applications Clocks Setting       : Active\n"
      "        SW Power Cap                      : Active\n"
      "        HW Slowdown                       : Not Active\n"
      "    FB Memory Usage\n"
      "        Total                             : 81559 MiB\n"
      "    BAR1 Memory Usage\n"
      "        Total                             : 131072 MiB\n"
      "    GPU Power Readings\n"
      "        Power Draw                        : 99.31 W\n"
      "        Current Power Limit               : 500.00 W\n"
      "        Default Power Limit               : 700.00 W\n"
      "    Module Power Readings\n"
      "        Current Power Limit               : 1000.00 W\n"
      "    Clocks\n"
      "        Graphics                          : 1695 MHz\n"
      "        SM                                : 1410 MHz\n"
      "    Max Clocks\n"
      "        SM                                : 1980 MHz\n"
      "GPU 00000000:05:00.0\n"
      "    Product Name                          : NVIDIA H100 80GB HBM3\n"
      "    Clocks\n"
      "        SM                                : 1980 MHz\n";
  const ImportedFile file = import_text(text, "smi.txt").value();
  EXPECT_EQ(file.format, "nvidia-smi -q");
  EXPECT_EQ(file.machine.driver, "535.154.05");
  EXPECT_EQ(file.machine.cuda, "12.2");
  EXPECT_EQ(file.machine.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(file.machine.gpus_per_host, 2);
  EXPECT_EQ(file.machine.gpu_memory_bytes, std::int64_t{81559} << 20);
  EXPECT_DOUBLE_EQ(file.machine.power_limit_watts.value(), 500);
  EXPECT_DOUBLE_EQ(file.machine.clocks_mhz.value().min, 1410);
  EXPECT_DOUBLE_EQ(file.machine.clocks_mhz.value().max, 1980);
  EXPECT_EQ(file.machine.throttled, "GPU 0: SW Power Cap");
  EXPECT_THAT(file.remarks, testing::Contains(HasSubstr("below its default of 700 W")));
  EXPECT_EQ(file.points(), 0);
}

TEST(NvidiaSmi, TableAndCsv) {
  const ImportedFile table = import_text(
                                 "| NVIDIA-SMI 535.154.05             Driver Version: 535.154.05   CUDA Version: 12.2     |\n"
                                 "|-----------------------------------------+----------------------+----------------------+\n"
                                 "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:04:00.0 Off |                    0 |\n"
                                 "| N/A   32C    P0              91W / 700W |     20MiB / 81559MiB |      0%      Default |\n"
                                 "|   1  NVIDIA H100 80GB HBM3          On  | 00000000:05:00.0 Off |                    0 |\n"
                                 "| N/A   32C    P0              91W / 650W |     20MiB / 81559MiB |      0%      Default |\n"
                                 "| Processes:                                                                            |\n",
                                 "smi")
                                 .value();
  EXPECT_EQ(table.machine.driver, "535.154.05");
  EXPECT_EQ(table.machine.gpus_per_host, 2);
  EXPECT_EQ(table.machine.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_DOUBLE_EQ(table.machine.power_limit_watts.value(), 650);
  const ImportedFile csv =
      import_text(
          "index, name, driver_version, clocks.current.sm [MHz], power.limit [W], clocks_event_reasons.sw_power_cap, "
          "clocks_event_reasons.gpu_idle\n"
          "0, NVIDIA B200, 580.65, 1965 MHz, 1000.00 W, Not Active, Active\n"
          "0, NVIDIA B200, 580.65, 1200 MHz, 1000.00 W, Active, Not Active\n",
          "smi.csv")
          .value();
  EXPECT_EQ(csv.machine.driver, "580.65");
  EXPECT_EQ(csv.machine.gpus_per_host, 1);  // a log of one GPU
  EXPECT_DOUBLE_EQ(csv.machine.clocks_mhz.value().min, 1200);
  EXPECT_EQ(csv.machine.throttled, "GPU 0: sw_power_cap");
}

TEST(MeasuredPoints, BecomeKernelsMessagesLaunchesAndOverlaps) {
  MeasurementFile file;
  file.backend = "host";
  file.machine.cpu = "CPU X";
  file.machine.link = "shared memory";
  file.machine.blas = "OpenBLAS 0.3.21";
  const auto result = [](const char* name, double median) {
    return MeasuredResult{name, median, 0.98 * median, 1.02 * median, 0.01 * median, 25, 0};
  };
  const auto axis = [](const char* name, AxisValue value) { return MeasuredAxis{name, std::move(value)}; };
  const auto count = [](std::int64_t value) { return AxisValue(value); };
  file.points.push_back({"attention",
                         {axis("q", count(128)), axis("kv", count(256)), axis("heads", count(2)), axis("kv_heads", count(1)),
                          axis("head_dim", count(64)), axis("head_dim_v", count(64)), axis("mask", "causal"),
                          axis("pass", "backward"), axis("dtype", "fp32"), axis("kernel", "blas")},
                         MeasuredOutcome::kMeasured,
                         "",
                         1,
                         {result("seconds", 1e-3)},
                         {}});
  file.points.push_back(
      {"p2p",
       {axis("bytes", count(4096)), axis("pair", "0-1"), axis("direction", "both"), axis("link", "shared memory")},
       MeasuredOutcome::kMeasured,
       "",
       1,
       {result("seconds", 5e-6)},
       {}});
  file.points.push_back({"launch", {axis("mode", "eager")}, MeasuredOutcome::kMeasured, "", 1, {result("seconds", 2e-6)}, {}});
  file.points.push_back({"overlap",
                         {axis("bytes", count(4096))},
                         MeasuredOutcome::kMeasured,
                         "",
                         1,
                         {result("compute_alone_seconds", 1e-3), result("compute_beside_seconds", 1.2e-3),
                          result("message_alone_seconds", 1e-3), result("message_beside_seconds", 1.1e-3)},
                         {}});
  file.points.push_back({"gemm", {axis("m", count(8))}, MeasuredOutcome::kSkipped, "no BLAS", 0, {}, {}});
  file.points.push_back({"ring_step", {}, MeasuredOutcome::kMeasured, "", 1, {result("seconds", 1)}, {}});

  const ImportedFile imported = import_text(measurement_json(file), "host.json").value();
  EXPECT_EQ(imported.points(), 4);
  EXPECT_EQ(imported.table.rows.at(0).gpu, "host CPU X");
  const auto& attention = std::get<AttentionMeasurement>(imported.table.rows.at(0).what);
  // Query i of 128 sees 256 - 128 + i + 1 keys: 128 * 128 + 128 * 129 / 2
  EXPECT_DOUBLE_EQ(attention.shape.pairs, 128 * 128 + 128 * 129 / 2);
  EXPECT_EQ(attention.shape.math, MathKind::kFp32);
  EXPECT_EQ(attention.library, AttentionLibrary::kOwn);
  EXPECT_NEAR(imported.table.rows.at(0).spread, 0.04 / (2 * 1.96), 1e-12);  // of the interval, wider than the samples' scatter
  EXPECT_EQ(collective(imported, 1).link, "shared memory");
  EXPECT_NEAR(imported.overlaps.at(0).compute_slowdown, 1.2, 1e-12);
  ASSERT_EQ(imported.table.unused.size(), 2u);
  EXPECT_THAT(imported.table.unused[0].reason, HasSubstr("gemm skipped: no BLAS"));
}

TEST(Import, UnknownContentSaysWhatIsAccepted) {
  for (const char* text : {"{\"traceEvents\": []}", "hello", "a,b\n1,2\n", "[1, 2]"}) {
    const Outcome<ImportedFile> file = import_text(text, "x");
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_EQ(file.problems()[0].code, "import.unknown") << text;
    EXPECT_THAT(file.problems()[0].repair, HasSubstr("nccl-tests"));
  }
  EXPECT_THAT(import_text("{\"traceEvents\": []}", "x").problems()[0].message, HasSubstr("cpfit trace"));
  EXPECT_EQ(import_text(" \n", "x").problems()[0].code, "import.empty");
  EXPECT_EQ(import_file("/nowhere/file").problems()[0].code, "import.unreadable");
}

TEST(Import, RawCudnnFrontendColumnsAreRead) {
  const ImportedFile file =
      import_text(
          "config_name,model_name,backend,data_type,attn_mask,batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,"
          "head_dim_qk,head_dim_vo,profile_pass,deterministic_bwd,time_ms,tflops,max_diff,num_iterations,"
          "sliding_window_size,success,error_message,gpu_name,cudnn_version,cudnn_backend_version\n"
          "x,x,cudnn,bfloat16,top_left,1,4,4,8,2,128,128,fwd,False,0.5,1,0,10,,True,,NVIDIA GB200,1.21.1,92200.000\n"
          "x,x,cudnn,bfloat16,no_mask,1,4,4,8,2,128,128,bwd,True,1.5,1,0,10,,True,,NVIDIA GB200,1.21.1,92200.000\n",
          "raw.csv")
          .value();
  ASSERT_EQ(file.table.rows.size(), 2u);
  EXPECT_EQ(std::get<AttentionMeasurement>(file.table.rows[0].what).pass, MeasuredPass::kForward);
  EXPECT_EQ(std::get<AttentionMeasurement>(file.table.rows[1].what).pass, MeasuredPass::kBackward);
}

TEST(Import, EverySharedTableIsRecognised) {
  CPFIT_REQUIRE_SHARED("reference/hardware/reference/nccl_perf_half.csv");
  struct Sample {
    const char* path;
    std::size_t at_least;  // measurements
  };
  // Rows that the folder's README states, less what no surface takes (prefixes, attention with host launches, windows).
  for (const Sample& sample : {Sample{"reference/hardware/reference/nccl_perf_half.csv", 1800},
                               Sample{"reference/hardware/reference/attention_fwd_causal_sweep.csv", 1700},
                               Sample{"reference/hardware/reference/gemm_bf16_sweep.csv", 1900},
                               Sample{"reference/hardware/reference/cudnn_sdpa_fwd_bwd.csv", 500},
                               Sample{"reference/hardware/reference/simumax_efficiency.csv", 90},
                               Sample{"published/cudnn_sdpa.csv", 400}, Sample{"published/cudnn_norms.csv", 90},
                               Sample{"published/flash_attention_kernels.csv", 90}, Sample{"published/nccl_busbw.csv", 500}}) {
    const Outcome<ImportedFile> file = import_file(test::shared_path(sample.path));
    ASSERT_TRUE(file.ok()) << sample.path << ": " << to_text(file.problems()[0]);
    EXPECT_GE(file->table.rows.size(), sample.at_least) << sample.path;
    for (const KernelMeasurement& row : file->table.rows) ASSERT_GT(row.time.value(), 0) << sample.path << ":" << row.line;
  }
  // What is not a measurement is refused by name.
  EXPECT_EQ(import_file(test::shared_path("reference/hardware/gpus.csv")).problems().at(0).code, "import.unknown");
}

}  // namespace
}  // namespace cpfit
