#!/usr/bin/env bash
# Builds oneTBB and Qt's core library with the thread sanitizer, from the sources of the packages that are installed here:
#   tests/stress/tsan_libraries.sh FOLDER
# They replace the packaged ones by LD_LIBRARY_PATH=FOLDER/lib (same version, same symbols). The packages are not built for the
# sanitizer: it sees no order in what they hand from thread to thread. Needs deb-src lines in apt's sources; half an hour on 2 cores
# (apt-get install libdouble-conversion-dev libpcre2-dev libb2-dev libglib2.0-dev libzstd-dev dpkg-dev).
set -euo pipefail
folder=$(mkdir -p "${1:?"usage: tests/stress/tsan_libraries.sh FOLDER"}" && cd "$1" && pwd)
cd "$folder"
mkdir -p lib
flags="-O1 -g1 -fsanitize=thread -fno-omit-frame-pointer"

fetch() {  # SOURCE PACKAGE: the source of exactly the installed version, unpacked into ./SOURCE
  local version
  version=$(dpkg-query -W -f '${source:Version}' "$2")
  [[ -d $1 ]] && return
  apt-get source --download-only -qq "$1=$version" ||
    { echo "$1 $version cannot be fetched: apt's sources need deb-src lines (Types: deb deb-src)" >&2; exit 2; }
  dpkg-source --no-check -x "$1"_*.dsc "$1.part"
  mv "$1.part" "$1"
}

fetch onetbb libtbb12
cmake -S onetbb -B onetbb-build -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="$flags" -DTBB_TEST=OFF -DTBB_STRICT=OFF \
  -DTBBMALLOC_BUILD=OFF -DTBB_SANITIZE=thread >onetbb.log
ninja -C onetbb-build tbb >>onetbb.log
find onetbb-build -name 'libtbb.so*' -exec cp -P {} lib/ \;

fetch qt6-base libqt6core6
cmake -S qt6-base -B qt6-build -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" \
  -DFEATURE_sanitizer=ON -DFEATURE_sanitize_thread=ON -DQT_BUILD_EXAMPLES=OFF -DQT_BUILD_TESTS=OFF -DQT_FEATURE_gui=OFF \
  -DQT_FEATURE_sql=OFF -DQT_FEATURE_network=OFF -DQT_FEATURE_xml=OFF -DQT_FEATURE_dbus=OFF -DQT_FEATURE_testlib=OFF \
  -DQT_FEATURE_icu=ON -DQT_FEATURE_glib=ON -DQT_FEATURE_system_zlib=ON -DQT_FEATURE_system_pcre2=ON \
  -DQT_FEATURE_system_doubleconversion=ON >qt6.log
ninja -C qt6-build Core >>qt6.log
find qt6-build -name 'libQt6Core.so*' -exec cp -P {} lib/ \;
ls -l lib
