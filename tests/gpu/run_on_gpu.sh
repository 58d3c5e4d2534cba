#!/usr/bin/env bash
# Everything that needs a GPU, in one command, about 25 minutes on one H200 at most: builds for the GPU of this machine, runs the
# GPU tests, runs the small ones again under compute-sanitizer, then times our own kernels and cuDNN's beside published figures
# (attention.json) and measures the GPU for `cpfit calibrate` (loopback.json; cuda.json where there are several GPUs and mpirun). Nothing is installed; no clock, power limit or mode of the GPU is changed.
#
#   tests/gpu/run_on_gpu.sh [BUILD_FOLDER [RESULT_FOLDER]]        by default build-gpu and build-gpu/results
#   CPFIT_BENCH_MINUTES   of each measurement, by default 6; a result folder that is given again is gone on with
#   CPFIT_CUDNN_FRONTEND  folder of cudnn_frontend.h, for cuDNN's side; without it that side is waived
#
# Ends with one line per part: passed, failed or waived with the reason. Exit codes: 0 all passed or waived, 1 something failed,
# 4 everything waived (no GPU, no nvcc).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build-gpu}
results=${2:-$build/results}
jobs=${CPFIT_JOBS:-$(nproc)}
published=$root/../shared/published/cudnn_sdpa.csv
summary=()
failed=0

say() { printf 'run_on_gpu: %s\n' "$*" >&2; }
record() { summary+=("$1"); say "$1"; }
waive_all() {
  printf 'waived: everything: %s\n' "$1"
  exit 4
}

# part NAME SECONDS COMMAND...: runs it with a deadline and notes how it ended. Its words go to RESULT_FOLDER/NAME.log as well.
part() {
  local name=$1 seconds=$2 status=0
  shift 2
  say "$name, at most $seconds s"
  timeout --kill-after=10 "$seconds" "$@" 2>&1 | tee "$results/$name.log" || status=$?
  case $status in
    0) record "passed: $name" ;;
    4) record "waived: $name: $(grep -m1 '^waived' "$results/$name.log" || echo 'see its log')" ;;
    124 | 137)
      record "failed: $name: not done within $seconds s"
      failed=1
      ;;
    *)
      record "failed: $name: exit code $status, see $results/$name.log"
      failed=1
      ;;
  esac
}

# --- is there anything to run on?
command -v nvidia-smi >/dev/null || waive_all "no nvidia-smi here"
gpu=$(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu,mig.mode.current \
  --format=csv,noheader --id=0) || waive_all "nvidia-smi finds no GPU: $gpu"
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || [ ! -x /usr/local/cuda/bin/nvcc ] || nvcc=/usr/local/cuda/bin/nvcc
[ -n "$nvcc" ] || waive_all "no nvcc here"
mkdir -p "$results"
say "GPU: $gpu"

# --- build for this GPU alone
targets=(gpu_test kernel_text_test cpfit_gpu_attention cpfit-bench)
configure() {
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCPFIT_BUILD_BENCHMARKS=OFF -DCPFIT_CUDA_ARCHITECTURES=native \
    -DCMAKE_CUDA_COMPILER="$nvcc" ${CPFIT_CUDNN_FRONTEND:+-DCPFIT_CUDNN_FRONTEND="$CPFIT_CUDNN_FRONTEND"} -Wno-dev
}
configure >"$results/configure.log" 2>&1 || {
  tail -n 20 "$results/configure.log" >&2
  printf 'failed: configure: see %s\n' "$results/configure.log"
  exit 1
}
ninja -C "$build" -t targets all >"$results/targets.log"
if grep -q '^gpu_nccl_test: ' "$results/targets.log"; then
  targets+=(gpu_nccl_test)
else
  record "waived: nccl: this build found no NCCL"
fi
part build 300 cmake --build "$build" --parallel "$jobs" --target "${targets[@]}"
if [ "$failed" -ne 0 ]; then
  printf '%s\n' "${summary[@]}"
  exit 1
fi

# Tests without a device are skipped and so look passed: ask once, loudly.
device=$("$build/tests/gpu/cpfit_gpu_attention" --check) || waive_all "${device#waived: }"

# --- right before fast: the kernels' text on the host, then the device
part kernel-text 30 "$build/tests/kernels/cuda/kernel_text_test" --gtest_brief=1
part operators 150 "$build/tests/gpu/gpu_test" --gtest_brief=1
if [ "${#targets[@]}" -eq 5 ]; then part nccl 60 "$build/tests/gpu/gpu_nccl_test" --gtest_brief=1; fi

# --- the same kernels under compute-sanitizer, on the blocks that the emulator has too: small, and every mask
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || [ ! -x "$(dirname "$nvcc")/compute-sanitizer" ] || sanitizer=$(dirname "$nvcc")/compute-sanitizer
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck synccheck; do
    part "$tool" 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$build/tests/gpu/gpu_test" --gtest_brief=1 \
      --gtest_filter='Small/GpuBlock.*:GpuOperators.RowsAndColumnsMove:GpuOperators.PartsAreSummed'
  done
else
  record "waived: memcheck, racecheck, synccheck: no compute-sanitizer beside nvcc"
fi

# --- timed only when everything above was right
if [ "$failed" -eq 0 ]; then
  measure=("$build/tests/gpu/cpfit_gpu_attention" --out "$results/attention.json" --smi "$gpu")
  if [ -r "$published" ]; then measure+=(--published "$published"); fi
  part attention 180 "${measure[@]}"

  bench=$build/calibrate/cpfit-bench
  minutes=${CPFIT_BENCH_MINUTES:-6}
  part bench-smoke 60 "$bench" --backend loopback --smoke
  part bench-loopback "$((minutes * 60 + 60))" "$bench" --backend loopback --budget "$minutes" --out "$results/loopback.json"
  gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
  if [ "$gpus" -gt 1 ] && command -v mpirun >/dev/null; then
    part bench-cuda "$((minutes * 60 + 120))" mpirun -n "$gpus" "$bench" --backend cuda --budget "$minutes" --out "$results/cuda.json"
  else
    record "waived: bench-cuda: rings over NCCL need several GPUs and mpirun; here are $gpus"
  fi
else
  record "waived: attention, bench: nothing is timed that was not right"
fi

printf '%s\n' "${summary[@]}"
printf 'results: %s\n' "$results"
exit "$failed"
