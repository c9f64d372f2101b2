#!/bin/sh
# Checks that everything that libforeloop exports, from the shared library and from the archive, starts with foreloop_,
# and that the core needs no library beyond its few. Usage: symbols.sh SHARED-LIBRARY ARCHIVE
set -u
. "$(dirname "$0")/check.sh"
check "the shared library exports foreloop_* only" \
    "$(nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^foreloop_' | grep -v -e '^_init$' -e '^_fini$')"
check "the archive exports foreloop_* only" \
    "$(nm -g --defined-only "$2" 2>/dev/null | awk 'NF == 3 {print $3}' | grep -v '^foreloop_' | grep -v -e '^_*\(asan\|odr_asan\)')"
check "the shared library exports no internal function but those for libforeloop_cuda" \
    "$(nm -D --defined-only "$1" | awk '{print $3}' | grep '^foreloop_' | while read -r symbol; do
        grep -q "\b$symbol(" "$(dirname "$0")/../include/foreloop/foreloop.h" ||
            grep -rq "^FORELOOP_INTERNAL_API.*\b$symbol(" "$(dirname "$0")/../src" --include='*.h' || echo "$symbol"
    done)"
check "every function of the header is exported" \
    "$(grep -o '^FORELOOP_API.*' "$(dirname "$0")/../include/foreloop/foreloop.h" | grep -o 'foreloop_[a-z0-9_]*(' |
        tr -d '(' | while read -r symbol; do nm -D --defined-only "$1" | grep -q " $symbol\$" || echo "$symbol"; done)"
check "only libc, libm, cJSON, utf8proc and zlib are needed" \
    "$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -v -e '^libc\.so' -e '^libm\.so' -e '^libcjson' -e '^libutf8proc' -e '^libz\.so' -e '^libpthread' \
            -e '^ld-linux' -e '^lib[a-z]*san\.so' -e '^libgcc_s')"
check "the archive calls nothing that prints, exits or changes the process; only the thread pool starts threads" \
    "$(nm -A -u "$2" 2>/dev/null | grep -v 'thread_pool\.c.* pthread_create' | awk '{print $NF}' | sed 's/@.*//' |
        sort -u |
        grep -x -e 'f*printf' -e 'puts' -e 'putchar' -e 'perror' -e 'abort' -e '_*exit' -e 'signal' -e 'sigaction' \
            -e 'setlocale' -e 'setenv' -e 'putenv' -e 'fesetround' -e 'getenv' -e 'pthread_create' -e '__assert_fail' \
            -e 'strtod' -e 'strtof' -e 'atof')"
echo "1..$count"
