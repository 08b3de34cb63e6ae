# Tests `.ci/keep-builds` by building clones of a small package, which share a target folder.

export CARGO_TARGET_DIR=$PWD/target
main='mod greeting;
fn main() {
    println!("{}", greeting::TEXT);
}'

greeting() {
    echo "pub const TEXT: &str = \"$2\";" > "$1/src/greeting.rs"
}

# Writes the files of a clone with this greeting. If there's already one with this name, it is
# replaced.
unpack() {
    rm -rf "$1"
    mkdir -p "$1/src"
    printf '[package]\nname = "sample"\nedition = "2024"\n\n[workspace]\n' > "$1/Cargo.toml"
    echo "$main" > "$1/src/main.rs"
    greeting "$1" "$2"
}

clone() {
    unpack "$1" "$2"
    git init --quiet "$1"
}

modified() {
    date -r "$1" +%s%N
}

# Runs the script, then cargo. Fails unless the package is compiled (or kept), and the program prints
# this greeting.
builds() {
    local expected=$1 clone=$2 text=$3 before after
    # Wait for a moment. If two files are written within a few milliseconds, they might have the same
    # modification time.
    sleep 0.02
    (cd "$clone" && "$KEEP_BUILDS")
    before=$(modified target/debug/sample 2> /dev/null || true)
    (cd "$clone" && cargo build --quiet --offline)
    after=$(modified target/debug/sample)
    prints "$text" target/debug/sample
    case $expected in
        compiled) [[ $before != "$after" ]] || fail "$clone is not compiled" ;;
        kept) [[ $before == "$after" ]] || fail "$clone is compiled again" ;;
    esac
}

new_clone_compiles_only_changes() {
    clone here hello; builds compiled here hello
    clone here hello; builds kept here hello
    # An unrelated file doesn't make a difference, even if its name must be quoted.
    clone here hello; touch "here/a file's \"name\""; builds kept here hello
    clone here goodbye; builds compiled here goodbye
    clone here hello; builds compiled here hello
}

older_clone_is_compiled() {
    clone waiting goodbye
    clone here hello; builds compiled here hello
    rm -r here && mv waiting here
    builds compiled here goodbye
}

changes_are_compiled_after_run_without_build() {
    clone here hello; builds compiled here hello
    clone here goodbye; (cd here && "$KEEP_BUILDS")
    clone here goodbye; builds compiled here goodbye
}

clone_in_other_folder_is_compiled() {
    clone here hello; clone there hello
    builds compiled here hello
    builds compiled there hello
    builds compiled here hello
}

files_without_git_are_compiled() {
    unpack here hello; builds compiled here hello
    unpack here hello; builds compiled here hello
    # A clone doesn't reuse anything compiled from unpacked files, either.
    clone here hello; builds compiled here hello
    clone waiting hello
    unpack here goodbye; builds compiled here goodbye
    rm -r here && mv waiting here
    builds compiled here hello
}

reused_clone_keeps_modification_times() {
    local before
    clone here hello; builds compiled here hello
    greeting here goodbye
    before=$(modified here/src/greeting.rs)
    builds compiled here goodbye
    [[ $(modified here/src/greeting.rs) == "$before" ]] || fail 'the time has changed'
    builds kept here goodbye
    # The modification times are also kept if a clone was built by hand, because cargo compares them
    # with the artifacts.
    clone here goodbye; mkdir here/target
    before=$(modified here/src/greeting.rs)
    builds compiled here goodbye
    [[ $(modified here/src/greeting.rs) == "$before" ]] || fail 'the time has changed'
}
