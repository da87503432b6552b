#!/usr/bin/env bash
# Runs every test and benchmark of this bundle, the bank, and the digits, on a machine without Rust, and prints a table.
#
#   run.sh [--only TEXT] [--tests] [--benches] [--timeout SECONDS] [--logs FOLDER] [--install-vulkan-loader]
#
# --only TEXT              programs whose name contains TEXT
# --tests, --benches       that part alone
# --timeout SECONDS        for one program (default 300)
# --logs FOLDER            where each program's output goes (default: logs beside this script)
# --install-vulkan-loader  as root, unpack the carried Debian packages if the machine has no Vulkan loader
#
# Ends with 1 if anything failed. A line of a test's output that begins with "summary:" is shown below its row.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
only="" parts="tests benches" limit=300 logs="$here/logs" install_loader=no
while [ $# -gt 0 ]; do
    case "$1" in
        --only) only=$2; shift ;;
        --tests) parts=tests ;;
        --benches) parts=benches ;;
        --timeout) limit=$2; shift ;;
        --logs) logs=$2; shift ;;
        --install-vulkan-loader) install_loader=yes ;;
        *) echo "run.sh: unknown argument $1" >&2; exit 2 ;;
    esac
    shift
done
mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 2

programs=$here
if [ -f "$here/programs.tar.xz" ]; then
    programs=$(mktemp -d)
    trap 'rm -rf "$programs"' EXIT
    if command -v xz >/dev/null; then
        tar -xJf "$here/programs.tar.xz" -C "$programs" || exit 2
    else
        python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
            "$here/programs.tar.xz" "$programs" || exit 2
    fi
fi

if [ "$install_loader" = yes ] && ! ldconfig -p | grep -q libvulkan; then
    for package in "$here"/deb/*.deb; do
        [ -f "$package" ] || { echo "run.sh: this bundle carries no Vulkan loader" >&2; exit 2; }
        dpkg -x "$package" / || exit 2
    done
    ldconfig
    echo "Vulkan loader unpacked: $(ldconfig -p | grep -c libvulkan) entries"
fi

# The sum of the numbers before a word in the closing lines of a test program.
count() { grep -oE "^test result: .*" "$1" | grep -oE "[0-9]+ $2" | awk '{ sum += $1 } END { print sum + 0 }'; }

chmod +x "$programs"/*/* 2>/dev/null
export CRITERION_HOME="$logs/criterion"
# Tests of actors that run on any engine take the one whose GPU is here, and no test goes on without it.
if [ -e /dev/nvidiactl ]; then
    export PERPETUA_ACTORS_ON=${PERPETUA_ACTORS_ON:-cuda} PERPETUA_MUST_OPEN=${PERPETUA_MUST_OPEN:-cuda}
fi
failures=0
row='%-44s %-7s %7s %7s %8s %8s\n'
printf "$row" name result passed failed skipped seconds
for part in $parts; do
    found=("$programs/$part"/*)
    [ "$part" = tests ] && found+=("$programs/programs/bank" "$programs/programs/digits")
    for program in "${found[@]}"; do
        name=$(basename "$program")
        [ -f "$program" ] && [[ "$name" == *"$only"* ]] || continue
        log="$logs/$part.$name.log"
        arguments=()
        [ "$part" = benches ] && arguments=(--bench)
        [ "$name" = bank ] && arguments=(--backend "${PERPETUA_ACTORS_ON:-cpu}" --kills 20)
        [ "$name" = digits ] && arguments=("${PERPETUA_MUST_OPEN:-cpu}")
        started=$(date +%s.%N)
        (cd "$logs" && timeout --kill-after=10 "$limit" "$program" "${arguments[@]}") >"$log" 2>&1
        status=$?
        seconds=$(awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
        case $status in
            0) result=ok ;;
            124 | 137) result=TIMEOUT ;;
            *) result=FAILED ;;
        esac
        [ $status -eq 0 ] || failures=$((failures + 1))
        printf "$row" "$name" "$result" "$(count "$log" passed)" "$(count "$log" failed)" "$(count "$log" ignored)" "$seconds"
        grep -E '^summary:' "$log" | sed 's/^/    /'
        [ "$part" = benches ] && [ $status -eq 0 ] && sed 's/^/    /' "$log"
        [ $status -eq 0 ] || { echo "--- the end of $log"; tail -n 40 "$log"; echo "---"; }
    done
done
[ "$failures" -eq 0 ] && echo "nothing failed" || echo "$failures programs failed"
[ "$failures" -eq 0 ]
