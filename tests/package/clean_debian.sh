#!/usr/bin/env bash
# Do the packages install and run on a system that has nothing of ours? As root, with debootstrap and a mirror:
#   tests/package/clean_debian.sh BUILD_DIR [FOLDER]
# Makes the packages, a minimal Debian 12 in FOLDER (default: a temporary one), installs them there with apt and nothing else,
# then plans, measures and draws.
set -euo pipefail
build=$(realpath "$1")
root=${2:-$(mktemp -d)}
mirror=$(awk '/^URIs:/ {print $2; exit} /^deb http/ {print $2; exit}' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null)

(cd "$build" && cpack -G DEB -B "$build/debian" >/dev/null)
if [ ! -d "$root/etc" ]; then
  debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >/dev/null
fi
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
for file in /etc/apt/apt.conf.d/*; do cp -n "$file" "$root/etc/apt/apt.conf.d/"; done
mkdir -p "$root/packages"
cp "$build"/debian/*.deb "$root/packages/"

chroot "$root" /bin/bash -euo pipefail -s <<'INSIDE'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
apt-get update -q >/dev/null
apt-get install -y -q --no-install-recommends /packages/cpfit_*.deb >/dev/null
example=/usr/share/cpfit/examples/llama3-8b-128k-1node.toml
cd /tmp
cpfit --version
cpfit plan $example --db run.sqlite >plan.txt && sed -n 2,3p plan.txt
cpfit runs list --db run.sqlite
apt-get install -y -q --no-install-recommends /packages/cpfit-gui_*.deb /packages/cpfit-bench_*.deb >/dev/null
cpfit-gui --screenshots pictures $example | wc -l
cpfit-bench --backend host --smoke --out smoke.json >/dev/null 2>&1
cpfit calibrate import smoke.json >import.txt && sed -n 1,2p import.txt
apt-get install -y -q --no-install-recommends /packages/libcpfit-dev_*.deb g++ cmake make >/dev/null
INSIDE
cp -r "$(dirname "$0")/consumer" "$root/tmp/"
chroot "$root" /bin/bash -euo pipefail -s <<'INSIDE'
cd /tmp/consumer && cmake -B build >/dev/null && cmake --build build >/dev/null
build/consumer /usr/share/cpfit/examples/llama3-8b-128k-1node.toml
apt-get remove -y -q cpfit cpfit-gui cpfit-bench libcpfit-dev >/dev/null
! command -v cpfit
INSIDE
echo "the packages install, run and go again on a clean Debian 12 ($root)"
