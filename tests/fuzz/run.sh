#!/usr/bin/env bash
# Builds the libFuzzer targets and runs each for so many seconds:
#   tests/fuzz/run.sh SECONDS [TARGET...]
# Everything lies in build-fuzz/ (or $CPFIT_FUZZ_DIR): corpus/TARGET (our seeds, and the public samples beside the project where
# they are), findings/TARGET-*, logs/TARGET.log. Ends with 1 when there is a finding. To repeat one:
#   build-fuzz/tests/fuzz/fuzz_TARGET build-fuzz/findings/TARGET-crash-...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:?"usage: tests/fuzz/run.sh SECONDS [TARGET...]"}
shift
build=${CPFIT_FUZZ_DIR:-build-fuzz}
shared=../shared
most_bytes=65536
patience=${CPFIT_FUZZ_TIMEOUT:-10}  # seconds of the clock for one input: more where others use the machine
symbolizer=$(command -v llvm-symbolizer-19 || true)
[[ -z $symbolizer ]] || export ASAN_SYMBOLIZER_PATH=$symbolizer UBSAN_OPTIONS=external_symbolizer_path=$symbolizer

[[ -e $build/build.ninja ]] || cmake --preset fuzz -B "$build" -Wno-dev
mapfile -t all < <(sed -n 's/^      {"\([a-z_]*\)", .*/\1/p' tests/fuzz/targets.cpp)
targets=("${@:-${all[@]}}")
ninja -C "$build" fuzz_test "${targets[@]/#/fuzz_}"

# What a target begins with. Public samples are copied into the build folder only, large ones their beginning.
declare -A samples=(
  [topology]="reference/hardware/topologies"
  [import_topology]="reference/hardware/samples"
  [published]="published"
  [calibrate_import]="reference/hardware/reference"
  [trace]="reference/hardware/traces"
)
seed() {
  local target=$1 corpus=$build/corpus/$1 folder=$shared/${samples[$1]:-none} file name
  mkdir -p "$corpus"
  CPFIT_FUZZ_SEEDS=$corpus "$build/tests/fuzz/fuzz_test" --gtest_filter="*/$target" --gtest_brief=1 >/dev/null
  [[ -d $folder ]] || return 0
  while IFS= read -r -d '' file; do
    name=${file//\//_}
    case $file in
      *.gz)
        { gzip -dcq "$file" || true; } | head -c $most_bytes >"$corpus/$name"
        [[ $(stat -c %s "$file") -gt $most_bytes ]] || cp "$file" "$corpus/$name.gz"
        ;;
      *.csv) head -n 40 "$file" | head -c $most_bytes >"$corpus/$name" ;;
      *.md) ;;
      *) head -c $most_bytes "$file" >"$corpus/$name" ;;
    esac
  done < <(find "$folder" -type f -print0)
}

mkdir -p "$build/findings" "$build/logs"
found=0
for target in "${targets[@]}"; do
  seed "$target"
  words=()
  [[ ! -e tests/fuzz/dictionaries/$target.dict ]] || words=(-dict="tests/fuzz/dictionaries/$target.dict")
  log=$build/logs/$target.log
  printf '%-18s ' "$target"
  if nice -n 10 "$build/tests/fuzz/fuzz_$target" "$build/corpus/$target" "${words[@]}" -max_total_time="$seconds" \
    -max_len=$most_bytes -rss_limit_mb=2048 -timeout="$patience" -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
    >"$log" 2>&1; then
    echo "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions, nothing found"
  else
    found=1
    echo "FINDING: $(grep -m 1 -E 'ERROR|SUMMARY|runtime error|does not hold' "$log" || tail -n 1 "$log") (see $log)"
  fi
done
exit $found
