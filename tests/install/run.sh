#!/usr/bin/env bash
# tests/install/run.sh BUILD EXAMPLE: installs BUILD under a temporary prefix, builds the EXAMPLE against it as a user does,
# runs it and has the installed program verify what it wrote.
set -euo pipefail
build=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null
mv "$prefix" "$folder/elsewhere"  # nothing may remember where it was installed
prefix=$folder/elsewhere

fail() { echo "$*"; exit 1; }
# A user has the standard library and nothing that Rondo is built with.
foreign=$(grep -rnE '#include <[^>]*[./]' "$prefix/include" || true)
[ -z "$foreign" ] || fail "installed headers need other packages: $foreign"
! grep -rlF -e "$build" "$prefix/lib"*/cmake || fail "the package names the build tree"

cp -r "$2" "$folder/example"
cd "$folder/example"
cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" > cmake.log || { cat cmake.log; exit 1; }
cmake --build build > build.log || { cat build.log; exit 1; }
build/best_fabric | tee output
grep -qE '^ndv2-2: at least [0-9.]+ us, verified schedule of [0-9.]+ us$' output || fail "ndv2-2 was not solved"
grep -qE '^ring:gpus=16: at least [0-9.]+ us, ruled out$' output || fail "the ring was not ruled out"
"$prefix/bin/rondo" verify best.h5 | tee verdict
grep -q "^valid: allgather of 16 MB on $(sed -n 's/^best: //p' output), 16 GPUs" verdict || fail "the schedule is another one"
