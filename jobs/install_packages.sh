#!/usr/bin/env bash
# Installs what Rondo is built from, on Debian and Ubuntu, and the packages that are named as arguments. Where everything is
# there it does nothing and asks no network.
set -euo pipefail

packages=(
  cmake ninja-build g++ mold ccache pkg-config
  libopenmpi-dev openmpi-bin petsc-dev coinor-libclp-dev coinor-libcbc-dev libcadical-dev libhdf5-openmpi-dev hdf5-tools
  libboost-program-options-dev libgtest-dev libbenchmark-dev liblemon-dev libmetis-dev libnauty2-dev nlohmann-json3-dev
  libfmt-dev libxxhash-dev libpugixml-dev libsqlite3-dev
  "$@"
)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This is not Debian or Ubuntu. Rondo needs what these packages of Debian 12 hold; install them your way:" >&2
  echo "  ${packages[*]}" >&2
  command -v cmake >/dev/null || exit 69
  exit 0  # cmake names what is missing
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "Packages are missing and sudo would ask for a password. Run this once, then try again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
    exit 77
  fi
  as_root=(sudo -n)
fi
echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
