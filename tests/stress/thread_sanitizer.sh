#!/usr/bin/env bash
# Every test of a part that uses threads, under the thread sanitizer:
#   tests/stress/thread_sanitizer.sh [TEST...]
# Builds oneTBB and Qt's core for it first (tsan_libraries.sh): with the packaged ones each hand-over would be reported. Ends with
# 1 when a test fails or the sanitizer has something to say. An hour on 2 cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${CPFIT_TSAN_DIR:-build-tsan}
libraries=${CPFIT_TSAN_LIBRARIES:-$build/libraries}
[[ -e $libraries/lib/libtbb.so.12 && -e $libraries/lib/libQt6Core.so.6 ]] || tests/stress/tsan_libraries.sh "$libraries"
[[ -e $build/build.ninja ]] || cmake --preset tsan -B "$build" -Wno-dev
mapfile -t tests < <(ninja -C "$build" -t targets all |
  sed -n -E 's/^((sim|gui|engine|db|fit|ring_step|kernels_transport|kernels_strategy|kernels_verify)(_[a-z_]*)?_test): phony$/\1/p' | sort)
[[ $# == 0 ]] || tests=("$@")
ninja -C "$build" "${tests[@]}"

LD_LIBRARY_PATH=$(cd "$libraries/lib" && pwd)
QT_PLUGIN_PATH=$(qtpaths6 --query QT_INSTALL_PLUGINS 2>/dev/null || echo "/usr/lib/$(gcc -dumpmachine)/qt6/plugins")
export LD_LIBRARY_PATH QT_PLUGIN_PATH QT_QPA_PLATFORM=offscreen TSAN_OPTIONS="history_size=4 exitcode=66 die_after_fork=0 suppressions=$PWD/tests/stress/tsan.supp"
mkdir -p "$build/logs"
found=0
for test in "${tests[@]}"; do
  log=$build/logs/$test.log
  program=$(find "$build/tests" -type f -name "$test" -perm -u+x)
  code=0
  setarch -R "$program" >"$log" 2>&1 || code=$?  # -R: the sanitizer wants its usual layout of memory
  reports=$(grep -c 'WARNING: ThreadSanitizer' "$log" || true)
  printf '%-28s %s, %s reports\n' "$test" "$(grep -E '\[  (PASSED|FAILED)  \]' "$log" | head -n 1)" "$reports"
  [[ $code == 0 && $reports == 0 ]] || { found=1; echo "  ended with $code: $log"; }
done
exit $found
