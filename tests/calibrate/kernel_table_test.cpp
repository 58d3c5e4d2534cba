// Readers of published kernel tables, on miniatures of our own.
#include "calibrate/read/kernel_table.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/shared_folder.h"

namespace cpfit {
namespace {

/// Tests run at the same time, each in its own process: a shared name would let one read what another writes.
std::filesystem::path own_path(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / (name + "_" + std::to_string(::getpid()) + ".csv");
}

KernelTable read(const std::string& text) {
  const std::filesystem::path path = own_path("kernel_table_test");
  std::ofstream(path) << text;
  KernelTable table = read_kernel_table(path.string()).value();
  std::filesystem::remove(path);
  return table;
}

TEST(KernelTable, ReadsAGemmAndSaysWhyARowIsNotUsed) {
  const KernelTable table = read(
      "system,gpu,framework,dtype,m,n,k,latency_ms\n"
      "x,NVIDIA H100 80GB HBM3,f,bfloat16,4096,2048,1024,0.5\n"
      "x,NVIDIA Q900,f,bfloat16,4096,2048,1024,0.5\n"
      "x,NVIDIA H100 80GB HBM3,f,bfloat16,4096,,1024,0.5\n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].gpu, "H100-SXM5-80GB");
  EXPECT_EQ(std::get<GemmMeasurement>(table.rows[0].what).shape.n, 2048);
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 0.5e-3);
  ASSERT_EQ(table.unused.size(), 2u);
  EXPECT_EQ(table.unused[0].line, 3);
  EXPECT_THAT(table.unused[0].reason, testing::HasSubstr("Q900"));
}

TEST(KernelTable, CountsPairsUnderMasksAndWindows) {
  const std::string header =
      "gpu_name,data_type,attn_mask,batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,head_dim_qk,head_dim_vo,pass_,"
      "deterministic_bwd,"
      "sliding_window_size,time_ms,success\n";
  const KernelTable table = read(header +
                                 "NVIDIA H200,bfloat16,top_left,1,4,4,8,2,128,128,bwd,True,,0.2,True\n"
                                 "NVIDIA H200,fp8,top_left,1,4,4,8,2,192,128,fwd,False,2,0.2,True\n"
                                 "NVIDIA H200,bfloat16,no_mask,1,4,4,8,2,128,128,fwd,False,,0.2,False\n");
  ASSERT_EQ(table.rows.size(), 2u);
  const auto& full = std::get<AttentionMeasurement>(table.rows[0].what);
  EXPECT_DOUBLE_EQ(full.shape.pairs, 10);  // 1 + 2 + 3 + 4
  EXPECT_TRUE(full.shape.deterministic);
  EXPECT_EQ(full.pass, MeasuredPass::kBackward);
  const auto& window = std::get<AttentionMeasurement>(table.rows[1].what);
  EXPECT_DOUBLE_EQ(window.shape.pairs, 7);  // 1 + 2 + 2 + 2
  EXPECT_EQ(window.shape.math, MathKind::kFp8Tensor);
  EXPECT_EQ(window.shape.head_dim_v, 128);
  EXPECT_EQ(table.unused.size(), 1u);
}

TEST(KernelTable, TurnsTflopsBackIntoTimeTheWayTheFigureCountedThem) {
  const KernelTable table = read(
      "gpu,kernel,pass_,head_dim,causal,seq_len,batch,heads,tflops\n"
      "A100 80GB SXM4,FlashAttention-2,fwd+bwd,128,yes,1024,2,16,150\n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_NEAR(table.rows[0].time.value(), 3.5 * 4 * 1024.0 * 1024 / 2 * 128 * 16 * 2 / 150e12, 1e-12);
}

TEST(KernelTable, TablesOfCallsOneAfterAnotherSaySo) {
  EXPECT_TRUE(read("gpu,op,peak_tflops,shape,efficiency\nB200,matmul,2250,\"b=1, m=64, k=64, n=64\",0.5\n").continuous);
  EXPECT_FALSE(read("system,gpu,framework,dtype,m,n,k,latency_ms\nx,NVIDIA H200,f,bfloat16,64,64,64,0.5\n").continuous);
}

TEST(KernelTable, BusRatesBecomeTimes) {
  const KernelTable table = read(
      "gpu,n_gpus,nodes,interconnect,collective,size_bytes,time_us,busbw_gbps,source\n"
      "H200,8,1,NVLink4,all_reduce,1000000000,,400,s\n"
      "H200,8,1,NVLink4,send_recv (pipeline p2p),1000,5,1,s\n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_NEAR(table.rows[0].time.value(), 1e9 * 2 * 7 / 8 / 400e9, 1e-9);
  EXPECT_EQ(table.unused.size(), 1u);
}

// The table and the extract of it name their columns apart and count milliseconds or microseconds; what they say is the same.
TEST(KernelTable, CollectivesOfATableAndOfItsExtractAreReadAlike) {
  const KernelTable whole = read(
      "system,gpu,nccl_version,collective,dtype,n_gpus,size_bytes,latency_ms\n"
      "x,NVIDIA H200,2.29.2,all_reduce,int8,8,4096,0.015\n"
      "x,NVIDIA H200,2.29.2,alltoall,int8,8,4096,0.015\n"
      "x,NVIDIA H200,2.29.2,all_reduce,int8,8,4096,\n");
  const KernelTable extract = read(
      "system,nccl_version,op,dtype,num_gpus,bytes,latency_us\n"
      "h200_sxm,2.29.2,all_reduce,int8,8,4096,15\n"
      "h200_sxm,2.29.2,alltoall,int8,8,4096,15\n"
      "h200_sxm,2.29.2,all_reduce,int8,8,4096,\n");
  for (const KernelTable& table : {whole, extract}) {
    ASSERT_EQ(table.rows.size(), 2u) << table.source;
    for (const KernelMeasurement& row : table.rows) {
      const auto& what = std::get<CollectiveMeasurement>(row.what);
      EXPECT_EQ(row.gpu, "H200-SXM-141GB");
      EXPECT_NEAR(row.time.value(), 15e-6, 1e-15);
      EXPECT_EQ(what.ranks, 8);
      EXPECT_EQ(what.bytes.value(), 4096);
      EXPECT_EQ(what.software, "2.29.2");
      EXPECT_EQ(what.form(), what.kind == CollectiveKind::kAllReduce ? CollectiveForm::kInt8Sums : CollectiveForm::kUsual);
    }
    ASSERT_EQ(table.unused.size(), 1u);
  }
  EXPECT_EQ(whole.unused[0].reason, "n_gpus, size_bytes or latency_ms is blank");
  EXPECT_EQ(extract.unused[0].reason, "num_gpus, bytes or latency_us is blank");
}

TEST(KernelTable, AnUnknownTableIsAProblemThatListsTheKnownOnes) {
  const std::filesystem::path path = own_path("kernel_table_unknown");
  std::ofstream(path) << "a,b\n1,2\n";
  const Outcome<KernelTable> table = read_kernel_table(path.string());
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.problems().front().code, "kernel_table.columns");
}

TEST(KernelTable, NamesOfGpusAsToolsPrintThem) {
  EXPECT_EQ(gpu_preset_of("NVIDIA B300 SXM6 AC"), "B300-SXM");
  EXPECT_EQ(gpu_preset_of("NVIDIA GB200"), "GB200");
  EXPECT_EQ(gpu_preset_of("A100 80GB SXM4"), "A100-SXM4-80GB");
  EXPECT_EQ(gpu_preset_of("A100-PCIe"), "A100-PCIe-80GB");
  EXPECT_EQ(gpu_preset_of("NVIDIA GH200 SXM"), "");
}

TEST(KernelTable, EveryPublishedKernelTableIsRead) {
  CPFIT_REQUIRE_SHARED("published/cudnn_sdpa.csv");
  for (const char* file : {"aiconfigurator_gemm_bf16.csv", "aiconfigurator_context_attention.csv", "cudnn_sdpa.csv",
                           "cudnn_norms.csv", "flash_attention_kernels.csv", "gemm.csv", "simumax_kernel_efficiency.csv",
                           "aiconfigurator_nccl.csv", "nccl_busbw.csv"}) {
    const Outcome<KernelTable> table = read_kernel_table(test::shared_path(std::string("published/") + file));
    ASSERT_TRUE(table.ok()) << file;
    EXPECT_FALSE(table->rows.empty()) << file;
    for (const KernelMeasurement& row : table->rows)
      ASSERT_TRUE(row.time.value() > 0 && std::isfinite(row.time.value())) << file << ":" << row.line;
  }
}

}  // namespace
}  // namespace cpfit
