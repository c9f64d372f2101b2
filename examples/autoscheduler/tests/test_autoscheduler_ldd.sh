#!/bin/sh
# The binary needs at run time what the library needs, and nothing else. Usage: test_autoscheduler_ldd.sh BINARY
allowed='linux-vdso|ld-linux|libc\.so|libm\.so|libpthread|libdl|libcjson|libutf8proc|libz\.so'
needed=$(ldd "$1") || exit 77
case $needed in *libasan* | *libubsan* | *libtsan*) exit 77 ;; esac
if printf '%s\n' "$needed" | grep -vE "$allowed"; then
    echo "these are none of: $allowed"
    exit 1
fi
