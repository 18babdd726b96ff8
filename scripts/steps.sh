# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Named steps with their times, for scripts/check, scripts/test and scripts/demo.
# To be sourced; everything is said on stderr.

step_names=()
step_times=()
step_results=()

# Where rustup puts cargo; a shell that is older than its installation has no such PATH.
export PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin

say() { printf '%s\n' "$*" >&2; }

# 75 -> 1:15
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# step NAME COMMAND...: run it, say so before and after, keep its time.
# Returns what the command returned. Within a function that is run so, errexit is off.
step() {
    local name=$1 start=$SECONDS status=0
    shift
    say "==> $name"
    "$@" || status=$?
    step_done "$name" $((SECONDS - start)) "$status"
    return "$status"
}

step_done() {
    local result=ok
    if (($3)); then result="FAILED ($3)"; fi
    step_names+=("$1")
    step_times+=("$2")
    step_results+=("$result")
    say "    $1: $result, $(clock "$2")"
}

# Where the time went.
step_table() {
    local i total=0
    say ""
    for i in "${!step_names[@]}"; do
        say "$(printf '%-52s %6s  %s' "${step_names[i]}" "$(clock "${step_times[i]}")" "${step_results[i]}")"
        total=$((total + step_times[i]))
    done
    say "$(printf '%-52s %6s' "all" "$(clock "$total")")"
}
