# Writes the Dockerfiles of base images, and the root folders that they contain.

# The image for builds. It contains mount points for the toolchain of this machine.
build_root() {
    mkdir -p build/root/{usr,etc,tmp,proc,dev,sys,toolchain,vendor,cargo/bin,var/lib/apt/lists}
    cd build/root
    local name
    for name in bin lib lib64 sbin; do
        ln -s usr/$name $name
    done
    # `cc` is a link to this folder on Debian.
    [[ ! -d /etc/alternatives ]] || cp -a /etc/alternatives etc
    cp "$SETTINGS" cargo/config.toml
    cp "$CHEF" cargo/bin/cargo-chef
    printf 'FROM scratch\nCOPY root /\nENV %s\n' "$ENVIRONMENT" > ../Dockerfile
}

# Replaces Cargo, rustup and apt-get with scripts. All calls are recorded in what would be the binary
# of the manager.
stand_ins() {
    mkdir build/root/stand-ins
    cd build/root/stand-ins
    tee cargo cargo-chef rustup apt-get > /dev/null << 'END'
#!/bin/sh
echo "${0##*/} $*" >> /calls
END
    cat >> cargo << 'END'
mkdir -p "target/$7/release"
cp /calls "target/$7/release/manager"
END
    chmod +x ./*
    printf 'FROM scratch\nCOPY root /\nENV PATH=/stand-ins:/usr/bin:/bin\n' > ../../Dockerfile
}

# The libraries which are also in distroless/cc. Note that there is no shell.
run_root() {
    mkdir -p run/root/{lib,lib64,etc,tmp,proc,dev,sys}
    cd run/root
    local loader=lib64/ld-linux-x86-64.so.2 name
    [[ $(uname -m) == x86_64 ]] || loader=lib/ld-linux-aarch64.so.1
    cp "/$loader" "$loader"
    for name in libc.so.6 libm.so.6 libgcc_s.so.1; do
        cp "$(cc -print-file-name=$name)" lib
    done
    echo nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin > etc/passwd
    printf 'FROM scratch\nCOPY root /\n' > ../Dockerfile
}
