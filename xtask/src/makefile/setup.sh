# Functions that change a scaffold or the programs on its PATH. They run in the project's folder.
set -eu

# Writes a program which runs a script.
script() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\n%s\n' "$2" > "$1"
    chmod +x "$1"
}

# Writes a stand-in. It adds the call to the file `calls`, and then runs a script.
stand_in() {
    script "$1" "echo \"\${0##*/} \$*\" >> \"\$CALLS\"
$2"
}

# Writes all programs of the PATH: POSIX programs that may be used in Makefiles, and stand-ins.
programs() {
    for name in awk cat cp grep head make mkdir mv rm sed sh; do
        script "../programs/$name" "exec $(command -v "$name") \"\$@\""
    done
    version=$(sed -n 's/^cliVersion: //p' PROJECT)
    test -n "$version"
    stand_in ../programs/rbuilder "echo 'rbuilder $version'"
    for name in cargo docker podman; do
        stand_in "../programs/$name" ''
    done
    # kubectl can render, but we only record what it would send to a cluster.
    stand_in ../programs/kubectl "case \"\$1\" in
kustomize) exec $(command -v kubectl) \"\$@\" ;;
esac
for file; do :; done
case \"\$file\" in
-) cat >> \"\$CALLS\" ;;
*) cat \"\$file\" >> \"\$CALLS\" ;;
esac"
}

# Replaces all lines of a file that start with a text. There must be one.
edit() {
    awk -v start="$2" -v new="$3" '
        index($0, start) == 1 { $0 = new; is_found = 1 }
        { print }
        END { exit !is_found }
    ' "$1" > edited
    mv edited "$1"
}

another_version() { stand_in ../programs/rbuilder "echo 'rbuilder 0.0.1'"; }

own_rbuilder() { stand_in bin/rbuilder ''; }

# `cargo install` creates the program.
no_rbuilder() {
    rm ../programs/rbuilder
    stand_in ../programs/cargo \
        'case "$1" in install) mkdir -p bin && cp "$0" bin/rbuilder ;; esac'
}

# There are clusters, but they have other names.
no_cluster() {
    stand_in ../programs/kind 'case "$2" in clusters) echo made-operator-test-e2e-2 ;; esac'
    note_test ''
}

with_cluster() {
    stand_in ../programs/kind 'case "$2" in clusters) echo other; echo mine ;; esac'
    note_test ''
}

failing_test() {
    stand_in ../programs/kind ''
    note_test 'exit 1'
}

# Makes cargo record the variables of the end-to-end test. It then runs a script instead of the test.
note_test() {
    stand_in ../programs/cargo "echo \"IMG=\$IMG KUBECONFIG=\$KUBECONFIG\" >> \"\$CALLS\"
$1"
}

library() { edit Cargo.toml 'rbuilder = ' "rbuilder = { package = \"rbuilder-runtime\", $1 }"; }

library_from_git() { library 'git = "https://example.com/rbuilder.git", rev = "0123abc"'; }

library_from_registry() {
    library 'version = "4.5"'
    edit PROJECT 'cliVersion: ' 'cliVersion: 4.5.6'
}

edited_image() {
    edit config/manager/manager.yaml '        image: ' '        image: ghcr.io/example/operator:v9'
}

# This is sufficient, because the Makefile only checks whether there is a chart.
with_chart() {
    stand_in ../programs/helm ''
    mkdir -p charts/made-operator
    echo 'name: made-operator' > charts/made-operator/Chart.yaml
}

no_label() {
    edit config/manager/manager.yaml '    control-plane: ' '    control-plane: another'
}

broken_config() { edit config/default/kustomization.yaml '- ../manager' '- ../missing'; }
