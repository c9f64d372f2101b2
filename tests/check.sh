# TAP for scripts: source it, check, and print "1..$count" at the end.
count=0
check() { # check NAME FOUND: passes when FOUND is empty
    count=$((count + 1))
    if [ -z "$2" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        echo "$2" | sed 's/^/# /'
    fi
}
