#!/usr/bin/env bash
# The tests of _core on aarch64, cross-compiled and run under qemu. Needs Debian 12 or a relative of it with the packages
# gcc-aarch64-linux-gnu and qemu-user, Python 3.11 with meson, ninja and Cython, and the network; no root, nothing installed.
#
#     tools/aarch64.sh DIR [pytest arguments]     # DIR is made, and used again: arm64 Python, wheels, build
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1" && dir=$(realpath "$1") && shift
root=$dir/root python=root/usr/bin/python3.11

if [ ! -e "$dir/$python" ]; then
  mkdir -p "$root" "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" && : >"$dir/apt/status"
  apt="apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false
    -o APT::Sandbox::User= -o Dir::State=$dir/apt -o Dir::State::status=$dir/apt/status -o Dir::Cache=$dir/apt/cache"
  $apt update
  $apt --download-only --yes install python3.11 libstdc++6
  for package in "$dir"/apt/cache/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
fi
if [ ! -e "$dir/site/numpy" ]; then
  python3.11 -m pip install -q --target "$dir/site" --python-version 3.11 --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    numpy scipy scikit-learn threadpoolctl pytest hypothesis mpmath
fi
cat >"$dir/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
strip = 'aarch64-linux-gnu-strip'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
[ -e "$dir/build" ] || meson setup "$dir/build" --cross-file "$dir/cross.ini" -Dpython.purelibdir=/ -Dpython.platlibdir=/ >/dev/null
DESTDIR=$dir/sparserf meson install -C "$dir/build" --quiet
# A process cannot start another one under qemu-user: of test_levels.py, the one test that does not.
[ $# -gt 0 ] || set -- -q tests/core/test_kernels.py tests/core/test_levels.py::test_fused_levels_give_the_same_bits_on_every_processor
PYTHONPATH=$dir/sparserf:$dir/site OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 \
  qemu-aarch64 -L "$root" "$dir/$python" -P -m pytest -p no:cacheprovider "$@"
