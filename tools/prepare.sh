# Sourced by demo.sh and test.sh: installs what a build needs and this Debian machine lacks, then enters the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# need PACKAGE... : installs the packages that are missing, asking for root by sudo where necessary.
need() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "Installing: ${missing[*]}"
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

need gcc libc6-dev meson ninja-build pkg-config libcjson-dev libutf8proc-dev zlib1g-dev

# configure FOLDER [OPTION...] : a build folder with these options, made once and kept.
configure() {
    local folder=$1
    shift
    [ -f "$folder/build.ninja" ] || meson setup "$folder" "$@" >"$folder.log" 2>&1 || {
        cat "$folder.log"
        return 1
    }
}
