# Functions for the scripts of journeys.
set -Eeuo pipefail
trap 'echo "failed in line $LINENO: $BASH_COMMAND" >&2' ERR

fail() {
    echo "error: $*" >&2
    exit 1
}

# Shows and runs a command.
run() {
    echo "\$ $*"
    "$@"
}

# Runs a command that must print exactly a text.
prints() {
    local expected=$1 seen
    shift
    echo "\$ $*"
    seen=$("$@")
    [[ $seen == "$expected" ]] || fail "\`$*\` prints \`$seen\`, not \`$expected\`"
}

# Runs a command. There must be a text in its output.
mentions() {
    local part=$1 seen
    shift
    echo "\$ $*"
    seen=$("$@" 2>&1) || fail "\`$*\` failed: $seen"
    [[ $seen == *"$part"* ]] || fail "\`$*\` does not print \`$part\`: $seen"
}

# Runs a command. There must not be a text in its output.
omits() {
    local part=$1 seen
    shift
    echo "\$ $*"
    seen=$("$@" 2>&1) || fail "\`$*\` failed: $seen"
    [[ $seen != *"$part"* ]] || fail "\`$*\` prints \`$part\`: $seen"
}

# Runs a command that must fail with a text in its output.
refuses() {
    local part=$1 seen
    shift
    echo "\$ $*"
    ! seen=$("$@" 2>&1) || fail "\`$*\` did not fail: $seen"
    [[ $seen == *"$part"* ]] || fail "\`$*\` does not fail with \`$part\`: $seen"
}

# Runs a command. Warnings are treated as errors.
unwarned() {
    local seen
    echo "\$ $*"
    seen=$("$@" 2>&1 > /dev/null) || fail "\`$*\` failed: $seen"
    [[ ${seen,,} != *warning* ]] || fail "\`$*\` was warned: $seen"
}

# Replaces a text in a file, where it must be.
edit() {
    local text
    text=$(< "$1")
    [[ $text == *"$2"* ]] || fail "$1 has no \`$2\`"
    printf '%s\n' "${text//"$2"/"$3"}" > "$1"
}
