#!/bin/sh
# Tests of the foreloop command: what it prints, where, and with which exit status. Prints TAP.
#
#     test_cli.sh FORELOOP SOURCE-ROOT

foreloop=$1
root=$2
bundle=$root/tests/golden/bundle
if ! "$foreloop" --version >/dev/null; then
    echo "Bail out! cannot run $foreloop"
    exit 1
fi
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
count=0
failures=0

# check NAME COMMAND...: the command must succeed.
check() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >"$directory/check" 2>&1; then
        echo "ok $count - $name"
    else
        failures=$((failures + 1))
        echo "not ok $count - $name"
        echo "# failed: $*"
        echo "# status ${status-}"
        sed 's/^/# out: /' "$directory/out" | head -20
        sed 's/^/# err: /' "$directory/err" | head -20
    fi
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# run ARGUMENT...: sets $status and leaves out and err in $directory. Standard input is the caller's.
run() {
    "$foreloop" "$@" >"$directory/out" 2>"$directory/err"
    status=$?
}

exits() { test "$status" -eq "$1"; }
out_is() { test "$(cat "$directory/out")" = "$1"; }
out_has() { grep -q -e "$1" "$directory/out"; }
err_has() { grep -q -e "$1" "$directory/err"; }
lines_are() { test "$(wc -l <"$directory/$1")" -eq "$2"; }
empty() { test ! -s "$directory/$1"; }
# A failure: its status, nothing on standard output, one line with this text on standard error.
fails() { exits "$1" && empty out && lines_are err 1 && err_has "$2"; }
# A success that prints this and nothing else.
prints() { exits 0 && empty err && out_is "$1"; }

# ---- The command line ----

run --version
check "the version" prints "foreloop $("$foreloop" --version | cut -d' ' -f2)"
run
check "no command is a usage error" exits 2
check "no command prints nothing on standard output" empty out
run help
check "help lists the commands" out_has '^  predict '
run rnak
check "an unknown command with a hint" fails 2 "did you mean 'rank'"
run help nothing
check "help of an unknown command" fails 2 "unknown command 'nothing'"
run rank --jsn
check "an unknown option with a hint" fails 2 "did you mean '--json'"
run rank -x
check "an unknown letter" fails 2 "unknown option '-x'"
run rank --zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz=1
check "a long unknown option" fails 2 "unknown option"
run rank -w
check "a missing value" fails 2 "needs a value"
run rank -w ""
check "an empty value" fails 2 "is empty"
run rank --json=yes
check "a value for a flag" fails 2 "takes no value"
run rank --top -1
check "a negative count" fails 2 "whole number from 1"
run rank -w a -r b --top 0
check "a count of zero" fails 2 "from 1"
run rank --top 99999999999999999999
check "a count that is too large" fails 2 "up to 9223372036854775807"
run predict --num-class 0
check "a positive count of zero" fails 2 "whole number from 1"
run predict --num-class x
check "a positive count that is none" fails 2 "whole number from 1"
run predict --base-score 1e39
check "a number that is too large" fails 2 "to 3.4028235e38"
run rank a
check "an argument too many" fails 2 "unexpected argument"
run rank -r x
check "rank without a program" fails 2 "-w FILE"
run rank -w x
check "rank without records" fails 2 "-r FILE"
run rank -w - -r -
check "rank with standard input twice" fails 2 "standard input"
run encode -m a --hf b
check "two models" fails 2 "exclude"
run tokenize -m a --tokenizer b
check "two tokenizers" fails 2 "exclude"
run inspect
check "inspect without anything" fails 2 "name a model"
run inspect --cpu x
check "inspect with both" fails 2 "a model and --cpu exclude each other"
run --version extra
check "an argument behind --version" fails 2 "unexpected argument 'extra'"
run predict --ranker x
check "predict without features" fails 2 "name the features"
run pack x
check "pack without an output" fails 2 "-o FILE"
run bench
check "bench without a part" fails 2 "name the part"
run bench score --runs 0
check "bench without a run" fails 2 "from 1"
run bench score --tier sse9
check "a tier that is none" fails 2 "ref, avx2 or avx512"
run predict --base-score nan --ranker x y
check "a number that is not finite" fails 2 "finite"
run tokenize -m "$(printf 'a\nb\033[1m')" /dev/null
check "a message stays one clean line" fails 1 'a?b?\[1m'

# The manual and the completions know every option of the help.
for command in rank encode tokenize predict actions inspect pack bench; do
    run "$command" --help
    check "help of $command" exits 0
    run help "$command"
    check "help $command" out_has "^Usage: foreloop $command "
    for option in $(grep -o '^  [-, a-z]*--[a-z-]*' "$directory/out" | grep -o -e '--[a-z-]*'); do
        escaped=$(echo "$option" | sed 's/-/\\\\-/g')
        check "$command $option is in the manual" grep -q -e "$escaped" "$root/docs/foreloop.1"
        if test "$option" != --help; then
            check "$command $option is in bash's completion" \
                grep -q -e "^ *$command) options=.*$option[ \"]" "$root/tools/completion/foreloop.bash"
        fi
        check "$command $option is in zsh's completion" \
            sh -c "sed -n '/^    $command)/,/;;/p' '$root/tools/completion/_foreloop' | grep -q -e '$option'"
    done
done

# ---- Output errors ----

run --version >/dev/null
if test -w /dev/full; then
    "$foreloop" help >/dev/full 2>"$directory/err"
    status=$?
    : >"$directory/out"
    check "a full device" fails 1 "cannot write to standard output: No space left"
    head -c 100000 /dev/zero | tr '\0' 'a ' | "$foreloop" tokenize -m "$bundle" --json >/dev/full 2>"$directory/err"
    status=$?
    check "a full device in the middle of the output" fails 1 "cannot write to standard output: No space left"
else
    skip "a full device" "no /dev/full here"
fi
mkfifo "$directory/pipe"
: <"$directory/pipe" &
sh -c 'sleep 0.2; exec "$0" help' "$foreloop" >"$directory/pipe" 2>"$directory/err"
status=$?
wait
: >"$directory/out"
check "a closed pipe ends the command by its signal" exits 141
check "and without a message" empty err
(trap '' PIPE; exec "$foreloop" help) >"$directory/pipe" 2>"$directory/err" &
: <"$directory/pipe"
wait
check "also when the parent ignores the signal" empty err

# ---- bench ----

run bench rollout --runs 1 --json
check "bench rollout" exits 0
check "a measurement a line" out_has '^{"bench":"rollout","kinds":32,"actions":20,"distinct":4096,"sequences":"trace",'
run bench rollout -m "$directory/dump.json"
check "bench rollout takes no model" fails 2 "no --model"
run bench gbdt -m "$directory/nothing.json"
check "bench gbdt without its file" fails 1 "nothing.json"
echo '[{"nodeid": 0, "leaf": 1}]' >"$directory/leaf.json"
run bench gbdt -m "$directory/leaf.json" --runs 1 --json
check "bench gbdt of a file" out_has '^{"bench":"gbdt","trees":1,"depth":0,"features":0,.*"batch":4096,"us_per_row":'
run bench gbdt -m "$directory/leaf.json" --runs 1
check "bench gbdt as a table" out_has '^trees  depth'
echo '[[' >"$directory/leaf.json"
run bench gbdt -m "$directory/leaf.json"
check "bench gbdt of no model" fails 1 "leaf.json"

# ---- predict ----

cat >"$directory/dump.json" <<'END'
[{"nodeid": 0, "split": "f0", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1,
  "children": [{"nodeid": 1, "leaf": -0.25}, {"nodeid": 2, "leaf": 0.75}]}]
END
printf '0.1\n0.9\n""\nnan\ninf\n' >"$directory/f.csv"
run predict --ranker "$directory/dump.json" "$directory/f.csv" --base-score=1
check "rows of CSV" out_is "0.75
1.75
0.75
0.75
1.75"
run predict "$directory/f.csv" --json --base-score -0.5 --ranker="$directory/dump.json" --margin
check "options in any order, JSON" out_is '{"row":0,"prediction":[-0.75]}
{"row":1,"prediction":[0.25]}
{"row":2,"prediction":[-0.75]}
{"row":3,"prediction":[-0.75]}
{"row":4,"prediction":[0.25]}'
run predict --ranker "$directory/dump.json" "$directory/f.csv"
check "the assumed base score is reported" err_has "note:.*base"
check "the assumed base score is one half" out_has '^0.25$'
run predict --ranker "$directory/dump.json" "$directory/f.csv" --leaves --base-score 0
check "leaves" out_is "1
2
1
1
2"
run predict --ranker "$directory/dump.json" "$directory/f.csv" --contributions --base-score 0
check "contributions need statistics" fails 1 "dump.json: the model holds no cover"
run predict --ranker "$directory/dump.json" "$directory/f.csv" --contributions --margin
check "contributions or margins" exits 2
sed 's/"nodeid": 0/&, "cover": 4/; s/"leaf": -/"cover": 3, &/; s/"leaf": 0/"cover": 1, &/' "$directory/dump.json" >"$directory/stats.json"
run predict --ranker "$directory/stats.json" "$directory/f.csv" --contributions --base-score 0 --json
check "contributions in JSON" out_has '^{"row":1,"contributions":\[0.75,0]}$'
printf '0,1,2,3,4\n' >"$directory/row.csv"
for format in json ubj; do
    run predict --ranker "$bundle/../gbdt/dart_forest.$format" "$directory/row.csv" --json
    check "a model in $format" exits 0
    cp "$directory/out" "$directory/$format.out"
done
check "JSON and UBJSON predict the same" cmp -s "$directory/json.out" "$directory/ubj.out"
run inspect "$bundle/../gbdt/dart_forest.ubj"
check "inspect knows UBJSON" out_has 'multi:softprob'
printf '\357\273\277"a,b", c\r\n\r\n0.9, 7\r\n , 1e3\r\n' >"$directory/f.csv"
run predict --ranker "$directory/dump.json" --base-score 0 - <"$directory/f.csv"
check "a header, quotes, blanks, CRLF, a byte order mark, standard input" out_is "0.75
-0.25"
for case in '0.1,x:column 2' '1,2\n3:line 2 has 1 column,' '"1:quotes do not match' '"1"2:quotes do not match' \
    ':no rows' 'a,b\n:no rows'; do
    printf "${case%%:*}" >"$directory/bad.csv"
    test "$case" != '0.1,x:column 2' || printf '0.1,1\n0.1,x' >"$directory/bad.csv"
    run predict --ranker "$directory/dump.json" --base-score 0 "$directory/bad.csv"
    check "bad CSV: ${case#*:}" fails 1 "${case#*:}"
done
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"
    printf '\000\000\200\076\146\146\146\077'
} >"$directory/f.npy"
run predict --ranker "$directory/dump.json" --base-score 0 "$directory/f.npy"
check "rows of .npy" out_is "-0.25
0.75"
head -c 132 "$directory/f.npy" >"$directory/cut.npy"
run predict --ranker "$directory/dump.json" --base-score 0 "$directory/cut.npy"
check "a .npy that is cut off" fails 1 "cut.npy"
run predict --ranker "$directory/dump.json" "$directory"
check "a directory instead of features" exits 1
seq -s, 80 >"$directory/f.csv"
run predict --ranker "$bundle/ranker.json" "$directory/f.csv"
check "a model that names its features takes columns without names" exits 0
check "a saved model leaves nothing to note" empty err
{ seq -s, 80 | sed 's/[0-9]*/x&/g'; cat "$directory/f.csv"; } >"$directory/named.csv"
run predict --ranker "$bundle/ranker.json" "$directory/named.csv"
check "but not columns with other names" fails 1 "no column is named '"
printf '1,2\n' >"$directory/f.csv"
run predict --ranker "$bundle/ranker.json" "$directory/f.csv"
check "a wrong number of columns" fails 1 "has 2 columns, the ranker reads 80"

# A row with a bad field is not a header.
bad_row() { # CONTENT MESSAGE
    printf -- "$1" >"$directory/bad.csv"
    run predict --ranker "$directory/dump.json" --base-score 0 "$directory/bad.csv"
    check "a bad row: $2" fails 1 "$2"
}
for value in NA null None 0x10 -0x1 x; do
    bad_row "1,2,$value\n4,5,6\n" "line 1, column 3: '$value' is not a number; leave it empty or write NaN for a missing"
    bad_row "1,2,$value" "line 1, column 3: '$value' is not a number"
done
for value in NA N/A null 0x10 '1;2' '-1 5'; do
    bad_row "$value\n0.5\n" "line 1, column 1: '$value' is not a number"
done
bad_row 'nan,,x\n' "column 3: 'x' is not a number"
bad_row '0,5;1,5\n' "column 2: '5;1' is not a number; separate columns by commas"
bad_row '"1,5",2\n' "column 1: '1,5' is not a number"
bad_row '1\t2\n' "'1?2' is not a number; separate columns by commas"
bad_row 'a;b\n1;2\n' "line 2, column 1: '1;2' is not a number; separate"
bad_row '1\0,2\n3,4\n' "line 1, column 1: '1?' is not a number"
bad_row 'a,b\n' "no rows of features in it, only a header, or a row that went wrong: line 1, column 1: 'a'"
printf '0,1\n1,0\n' >"$directory/f.csv"
run predict --ranker "$directory/dump.json" --base-score 0 "$directory/f.csv"
check "a first row that counts is a row" out_is "-0.25
0.75"
check "and is noted" err_has "note: .*first row counts 0, 1, 2"

# Columns by the header's names.
sed 's/"f0"/"height"/' "$directory/dump.json" >"$directory/named.json"
printf 'id,height,x\n0.9,0.1,3\n0.1,0.9,3\n' >"$directory/f.csv"
run predict --ranker "$directory/named.json" --base-score 0 "$directory/f.csv"
check "a named column in another place" out_is "-0.25
0.75"
check "the other columns are noted" err_has "note: .*2 columns are ignored, .*'id'"
check "the order of columns is not in doubt" sh -c "! grep 'first occur' '$directory/err'"
sed 's/height/f0/' "$directory/f.csv" >"$directory/f2.csv"
run predict --ranker "$directory/dump.json" --base-score 0 "$directory/f2.csv"
check "a numbered column in another place" out_is "-0.25
0.75"
sed 's/height/f3/' "$directory/f.csv" >"$directory/f2.csv"
run predict --ranker "$directory/dump.json" --base-score 0 "$directory/f2.csv"
check "a numbered column that is missing" fails 1 "no column is named 'f0'"
sed 's/x/height/' "$directory/f.csv" >"$directory/f2.csv"
run predict --ranker "$directory/named.json" --base-score 0 "$directory/f2.csv"
check "a column that is there twice" fails 1 "several columns are named 'height'"
sed 's/height/a/' "$directory/f.csv" >"$directory/f2.csv"
run predict --ranker "$directory/dump.json" --base-score 0 "$directory/f2.csv"
check "names that mean nothing to the trees are noted" err_has "note: .*taken in order"

# What a dump does not hold.
sed 's/^\[\(.*\)/[\1/; s/\]}\]$/]},/' "$directory/dump.json" >"$directory/two.json"
sed 's/^\[//' "$directory/dump.json" >>"$directory/two.json"
printf '0.9\n' >"$directory/f.csv"
two() { run predict --ranker "$directory/two.json" --base-score 0 "$directory/f.csv" "$@"; }
two
check "two trees are summed" out_is 1.5
two --num-class 2
check "or are two outputs" out_is "0.75 0.75"
two --num-class 2 --objective multi:softprob
check "with an objective" out_is "0.5 0.5"
check "which is not assumed" sh -c "! grep objective '$directory/err'"
two --num-parallel-tree 2 --num-class 1
check "or one iteration of two" out_is 1.5
two --num-class 2 --num-parallel-tree 2
check "trees that are no whole iterations" fails 1 "not whole iterations"
printf '2\n-1\n' >"$directory/weights.csv"
two --tree-weights "$directory/weights.csv"
check "weighted trees" out_is 0.75
check "and their weights are not assumed" sh -c "! grep DART '$directory/err'"
two --objective no:such
check "an objective that does not exist" fails 1 "no:such"
seq -s, 80 >"$directory/f.csv"
for option in '--num-class 2' '--num-parallel-tree 1' '--objective reg:logistic' "--tree-weights $directory/weights.csv"; do
    run predict --ranker "$bundle/ranker.json" $option "$directory/f.csv"
    check "a saved model with ${option%% *}" fails 1 "${option%% *} is for dumps"
done
printf '1,2\n' >"$directory/f.csv"
run predict --ranker "$directory/f.csv" "$directory/f.csv"
check "a ranker that is none" fails 1 "cannot open the ranker"

# ---- tokenize ----

printf 'ab' >"$directory/text"
run tokenize -m "$bundle" "$directory/text" --json
check "tokens in JSON" out_has '^{"ids":\[[0-9,]*\],"tokens":\["<s>".*"</s>"\]}$'
cp "$directory/out" "$directory/expected"
run tokenize --tokenizer "$bundle/tokenizer.json" --json <"$directory/text"
check "a tokenizer of its own, standard input" cmp "$directory/out" "$directory/expected"
run tokenize -m "$bundle" --no-special --json "$directory/text"
check "without special tokens" out_has '^{"ids":\[[0-9,]*\],"tokens":\["[ab]*".*\]}$'
check "none at all" sh -c "! grep -q '<s>' '$directory/out'"
printf 'for i in T.grid(7):' >"$directory/program"
"$foreloop" tokenize -m "$bundle" --no-special --json "$directory/program" | sed 's/{"ids":\[\([0-9,]*\)\].*/\1/; s/,/ /g' >"$directory/ids"
run tokenize -m "$bundle" --decode "$directory/ids"
check "ids back to text" cmp "$directory/out" "$directory/program"
printf '0 99999999' >"$directory/ids"
run tokenize -m "$bundle" --decode "$directory/ids"
check "an id without a token" fails 1 "no token has the id 99999999"
printf '0 x' >"$directory/ids"
run tokenize -m "$bundle" --decode "$directory/ids"
check "ids that are none" fails 1 "byte 2: expected a token's id"
run tokenize -m "$bundle" --window 4 --overlap 1 --json "$directory/program"
check "windows" sh -c "test \"\$(wc -l <'$directory/out')\" -gt 3 && ! grep -v '^{\"ids\":\[0,' '$directory/out'"
run tokenize -m "$bundle" --window 2 "$directory/program"
check "windows without room" fails 1 "have no room"
run tokenize -m "$bundle" --overlap 2 "$directory/program"
check "an overlap without windows" fails 2 "goes with --window"
printf 'ab\303' >"$directory/broken"
run tokenize -m "$bundle" --strict "$directory/broken"
check "strict about UTF-8" fails 1 "byte 2 begins no character"
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##c\n' >"$directory/vocab.txt"
printf 'ABC' >"$directory/capitals"
run tokenize --tokenizer "$directory/vocab.txt" --json "$directory/capitals"
check "a vocab.txt" out_is '{"ids":[2,5,6,3],"tokens":["[CLS]","ab","##c","[SEP]"]}'
printf '{"a":0,"b":1,"ab":2,"<s>":3,"</s>":4}' >"$directory/vocab.json"
printf '#version: 0.2\na b\n' >"$directory/merges.txt"
run tokenize --tokenizer "$directory/vocab.json" --merges "$directory/merges.txt" --json "$directory/text"
check "a vocab.json with its merges.txt" out_is '{"ids":[3,2,4],"tokens":["<s>","ab","</s>"]}'
run bench tokenizer --runs 1 --tokenizer "$bundle/tokenizer.json" --json
check "bench tokenizer" lines_are out 12
run tokenize -m "$bundle" "$directory/text"
check "tokens in a table" out_has '^ *[0-9]*  *0  *[12]  a'
printf '"ab"\n\n"x\\u0000y"\n"\\u00e9"' >"$directory/lines"
run tokenize -m "$bundle" --jsonl "$directory/lines"
check "one line for each JSON string" lines_are out 3
run tokenize -m "$bundle" --jsonl --json "$directory/lines"
check "JSON for JSON lines" sh -c "head -1 '$directory/out' | cmp - '$directory/expected'"
printf '"ab"\n7\n' >"$directory/lines"
run tokenize -m "$bundle" --jsonl "$directory/lines"
check "a line that is not a string" err_has 'line 2.*expected a string'
check "a line that is not a string is bad input" exits 1
: >"$directory/empty"
run tokenize -m "$bundle" --json "$directory/empty"
check "an empty text" out_is '{"ids":[0,2],"tokens":["<s>","</s>"]}'
head -c 200000 /dev/urandom >"$directory/random"
run tokenize -m "$bundle" "$directory/random"
check "bytes that are no text" exits 0
# Measured in virtual memory, of which sanitizers need more.
limited() {
    (ulimit -v 100000 && exec "$foreloop" "$@") >"$directory/out" 2>"$directory/err"
    status=$?
}
limited --version
if exits 0; then
    head -c 500000 /dev/zero | tr '\0' '#' >"$directory/long"
    limited tokenize -m "$bundle" "$directory/long"
    check "many tokens in little memory" exits 0
    check "all of them" lines_are out 500003
    limited tokenize --json -m "$bundle" "$directory/long"
    check "many tokens in JSON in little memory" exits 0
else
    skip "many tokens in little memory" "this build needs much memory"
fi
run tokenize -m "$bundle" /dev/zero
check "a text without an end" fails 1 "/dev/zero is too large: more than 64 MiB"
printf '\357\273\277"ab"\n' >"$directory/lines"
run tokenize -m "$bundle" --jsonl --json "$directory/lines"
check "a byte order mark before JSON lines" cmp "$directory/out" "$directory/expected"
run tokenize -m "$bundle" "$directory/absent"
check "a file that does not exist" fails 1 "absent: No such file"
run tokenize -m "$directory/absent" "$directory/text"
check "a model that does not exist" fails 1 "^foreloop: cannot open the model: no such file or directory: [^:]*absent$"
run tokenize --tokenizer "$directory/random" "$directory/text"
check "a tokenizer that is none" fails 1 "cannot open the tokenizer: [^:]*random: byte"

# Long paths keep the cause, whoever words the message.
long=$directory/$(printf '%0300d' 0 | sed 's|.\{60\}|&/|g')$(printf '%0250d' 0)
mkdir -p "${long%/*}"
cp "$directory/random" "$long"
for arguments in "tokenize -m" "tokenize --tokenizer" "inspect" "predict $directory/f.csv --ranker"; do
    run $arguments "$long"
    check "$arguments of a long path says why" fails 1 'JSON\|expected\|byte\|header\|too large'
    run $arguments "$long.absent"
    check "$arguments of a long path that is absent says why" fails 1 '[Nn]o such file\|too long'
done
run rank -m "$bundle" -w "$long.absent" -r x
check "rank of a long path says why" fails 1 '[Nn]o such file\|too long'
run tokenize -m "$(printf '%0100000d' 0)"
check "a path of 100 kB says why" fails 1 'too long'
run "--$(printf '%0100000d' 0)"
check "an unknown command of 100 kB" fails 2 "try 'foreloop help'"

# ---- encode ----

printf 'for i in range(3):\n    pass\n' >"$directory/text"
run encode -m "$bundle" "$directory/text"
check "a vector" test "$(wc -w <"$directory/out")" -eq 20
vector=$(tr ' ' ',' <"$directory/out")
run encode -m "$bundle" --json - <"$directory/text"
check "the same vector in JSON" out_is "{\"embedding\":[$vector]}"
printf '"for i in range(3):\\n    pass\\n"\n' | "$foreloop" encode -m "$bundle" --jsonl --json >"$directory/out2"
check "the same vector from a JSON line" cmp "$directory/out" "$directory/out2"
checkpoint=$root/tests/golden/transformer/roberta
if test -f "$checkpoint/model.safetensors"; then
    run encode --hf "$checkpoint" "$directory/text" --json
    check "a checkpoint" out_has '^{"embedding":\['
    run inspect "$checkpoint"
    check "inspect of a checkpoint" out_has '^type  *checkpoint$'
else
    skip "a checkpoint" "tests/golden/transformer is not there"
fi
{ printf '\357\273\277'; cat "$directory/text"; } >"$directory/marked"
run encode -m "$bundle" --json "$directory/text"
cp "$directory/out" "$directory/expected"
run encode -m "$bundle" --json "$directory/marked"
check "a byte order mark before a program" cmp "$directory/out" "$directory/expected"
printf '# a comment\n\n   \n# another\n' >"$directory/comments"
run encode -m "$bundle" "$directory/comments"
check "a program of comments" fails 1 "comments holds no program text"
run encode -m "$bundle" /dev/null
check "encode of nothing" fails 1 "is empty: it holds no program text"
printf '"# only"\n' >"$directory/lines"
run encode -m "$bundle" --jsonl "$directory/lines"
check "a line of comments" fails 1 "line 1 holds no program text"
run encode --hf "$directory" "$directory/text"
check "a checkpoint that is none" fails 1 "cannot open the checkpoint"

# ---- actions ----

trace='[[["EnterPostproc",[],[],[]]],[]]'
{
    echo "[0,[$trace,[0.25,0.75],null,[]]]"
    echo 'not json'
    echo ""
    echo "[0,[$trace,[1e10],null,[]]]"
    echo "[0,[$trace,null,null,[]]]"
} >"$directory/records"
run actions -r "$directory/records" --json
check "actions of the good lines" exits 0
check "actions in JSON" out_is '{"index":0,"workload":0,"actions":[{"kind":"postprocess","args":{},"instruction":1}],"seconds":[0.25,0.75],"failed":false,"unknown_instructions":0}
{"index":3,"workload":0,"actions":[{"kind":"postprocess","args":{},"instruction":1}],"seconds":[],"failed":true,"unknown_instructions":0}
{"index":4,"workload":0,"actions":[{"kind":"postprocess","args":{},"instruction":1}],"seconds":[],"failed":false,"unknown_instructions":0}'
check "the malformed line is named" err_has "skipped: line 2"
check "nothing else is said" lines_are err 1
gzip -c "$directory/records" >"$directory/records.gz"
cp "$directory/out" "$directory/expected"
run actions --json -r "$directory/records.gz"
check "the same from gzip" cmp "$directory/out" "$directory/expected"
run actions --json -r - <"$directory/records"
check "the same from standard input" cmp "$directory/out" "$directory/expected"
cat "$directory/records" >"$directory/pipe" &
run actions --json -r "$directory/pipe"
kill $! 2>/dev/null
check "the same from a named pipe" cmp "$directory/out" "$directory/expected"
run actions -r "$directory/records"
check "actions in text" out_has '^line 1: workload 0, 1 action, measured 250.000 ms, 750.000 ms$'
cat >"$directory/ansor" <<'END'
# an Ansor log
{"i": [["[\"f\", 8]", "llvm -keys=cpu"], [[], [["AN", 1, 0, 3]]]], "r": [[0.5], 0, 1.5, 1600000000], "v": "v0.5"}
{"i": [["[\"f\", 8]", "cuda -keys=gpu"], [[], [["SP", 1, 0, 8, [4], 1], ["AN", 1, 1, 2]]]], "r": [[0.25], 0, 1.5, 1600000000], "v": "v0.5"}
{"i": [["[\"f\", 8]", "llvm -keys=cpu"], [[], [["CI", 0]]]], "r": [[1e10], 2, 1.5, 1600000000], "v": "v0.5"}
{"i": [["[\"f\", 8]", "llvm -keys=cpu"], [[], [["AN", 1, 0, 1]]]], "r": [[0.125], 0, 1.5, 1600000000], "v": "v0.5"}
END
run actions -r "$directory/ansor" --json
check "actions of an Ansor log" lines_are out 4
check "a step as an action" out_has '^{"index":2,"workload":0,.*"kind":"vectorize","args":{"extent":4},"instruction":2}'
run actions -r "$directory/random"
check "records that are none" exits 1
run actions -r "$directory/empty"
check "no records" fails 1 "no record"
run actions -r "$directory"
check "a directory instead of records" fails 1 "directory"

# ---- rank ----

run rank -m "$bundle" -w "$directory/text" -r "$directory/records" --json
check "rank of the usable lines" exits 0
check "rank prints two candidates" lines_are out 2
check "a measured candidate" out_has '^{"index":0,"score":[-0-9.e]*,"actions":1,"seconds":0.5,"rank":[12]}$'
check "a candidate that is not measured" out_has '^{"index":4,"score":[-0-9.e]*,"actions":1,"seconds":null,"rank":[12]}$'
check "the malformed line is named" err_has "skipped: line 2"
check "the failed measurement is named" err_has "skipped: line 4: its measurement failed"
check "a text that is no program is ranked with a note" err_has "does not look like a program"
run rank -m "$bundle" -w "$directory/text" -r "$directory/records" --strict
check "strict exits with 1" exits 1
check "strict prints the ranking all the same" out_has '^skipped lines  *1 malformed, 1 with a failed measurement'
run rank -m "$bundle" -w "$directory/text" -r "$directory/records" --top 1 --json
check "the best candidate only" lines_are out 1
sed 1q "$directory/records" >"$directory/good"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --strict
check "strict with nothing amiss" exits 0
check "one measured candidate is the best one" out_has '^top choice  *100.0 %'
sed 's/^\[0,/[7,/' "$directory/good" | cat "$directory/good" - >"$directory/two"
run rank -m "$bundle" -w "$directory/text" -r "$directory/two"
check "several workloads" fails 1 "several workloads (0, 7): choose one with --workload-index"
run rank -m "$bundle" -w "$directory/text" -r "$directory/two" --workload-index 7 --json
check "one of several workloads" out_has '^{"index":1,'
check "and no other" lines_are out 1
run rank -m "$bundle" -w "$directory/text" -r "$directory/two" --workload-index 3
check "a workload that is not there" fails 1 "no record of workload 3, only of 0, 7"
run rank -m "$bundle" -w "$directory/empty" -r "$directory/good"
check "an empty program" fails 1 "is empty"
run rank -m "$bundle" -w "$directory/comments" -r "$directory/good"
check "a program of comments is none" fails 1 "holds no program text"
run rank -m "$bundle" -w "$directory/marked" -r "$directory/good" --json
cp "$directory/out" "$directory/expected"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --json
check "a byte order mark before a ranked program" cmp "$directory/out" "$directory/expected"
run rank -m "$bundle" -w "$directory/f.npy" -r "$directory/good"
check "a program that is no text" fails 1 "is not text"
run rank -m "$bundle" -w "$directory/text" -r "$directory/empty"
check "no candidates" fails 1 "no record that can be ranked"
sed '4!d' "$directory/records" >"$directory/failed"
run rank -m "$bundle" -w "$directory/text" -r "$directory/failed"
check "failed measurements only" exits 1

run rank -m "$bundle" -w "$directory/text" -r "$directory/ansor" --json
check "rank of an Ansor log" lines_are out 3
check "each target is ranked on its own" out_has '^{"index":2,.*"seconds":0.25,"rank":1,"target":"cuda -keys=gpu"}$'
check "and the other one too" out_has '"rank":2,"target":"llvm -keys=cpu"}$'
check "the failed measurement of an Ansor log" err_has "skipped: line 4: its measurement failed"
run rank -m "$bundle" -w "$directory/text" -r "$directory/ansor" --json --top 1
check "the best of each target" lines_are out 2
run rank -m "$bundle" -w "$directory/text" -r "$directory/ansor"
check "targets in text" out_has '^target llvm -keys=cpu$'
check "the number of targets" out_has '^targets  *2$'
check "true ranks are within a target" out_has '250.000 ms  *1$'

"$foreloop" inspect --cpu --json >"$directory/machine.json"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --json
cp "$directory/out" "$directory/expected"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --json --hardware "$directory/machine.json"
check "this machine from a file" cmp "$directory/out" "$directory/expected"
{ printf '\357\273\277'; cat "$directory/machine.json"; } >"$directory/marked.json"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --json --hardware "$directory/marked.json"
check "a byte order mark before a machine" cmp "$directory/out" "$directory/expected"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --json --hardware /dev/zero
check "a machine without an end" fails 1 "/dev/zero is too large: more than 1 MiB"
echo '{"coers": 2}' >"$directory/machine.json"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --hardware "$directory/machine.json"
check "an unknown field of a machine" fails 1 'did you mean "cores"'
echo '{"cores": -2}' >"$directory/machine.json"
run rank -m "$bundle" -w "$directory/text" -r "$directory/good" --hardware "$directory/machine.json"
check "a machine with less than no cores" fails 1 "not negative"

# ---- inspect and pack ----

run inspect --cpu
check "this machine" out_has '^cores  *[1-9]'
run inspect "$bundle"
check "a bundle" out_has '^fingerprint  *[0-9a-f]\{16\}$'
check "a bundle's kinds" out_has '^  kind_1  slot_0 (linear)'
fingerprint=$(sed -n 's/^fingerprint  *//p' "$directory/out")
run inspect --json "$bundle"
check "a bundle in JSON" out_has "^{\"model\":.*\"fingerprint\":\"$fingerprint\".*}$"
run inspect "$bundle/tokenizer.json"
check "a tokenizer" out_has '^type  *tokenizer$'
run inspect "$bundle/ranker.json"
check "a ranker" out_has '^trees  *10$'
run inspect "$bundle/model.json"
check "a manifest" fails 1 "name the bundle's directory"
run inspect "$directory/random"
check "a file that is none of these" fails 1 "not a bundle, checkpoint, tokenizer or ranker: .*random"
run inspect "$directory/dump.json"
check "a dump" out_has '^type  *ranker$'
mkdir "$directory/incomplete"
cp "$bundle/config.json" "$bundle/transition.safetensors" "$directory/incomplete"
run inspect "$directory/incomplete"
check "a bundle without its manifest is no checkpoint" fails 1 "cannot open the model: .*model.json$"
mkdir "$directory/nothing"
run inspect "$directory/nothing"
check "a directory of nothing" fails 1 "neither a bundle .* nor a checkpoint"
run inspect "$directory/absent"
check "inspect of nothing" fails 1 "no such file"
run pack "$bundle" -o "$directory/packed"
check "pack" prints "$directory/packed: packed, fingerprint $fingerprint"
run inspect "$directory/packed"
check "a packed bundle has the same fingerprint" out_has "^fingerprint  *$fingerprint\$"
run inspect "${bundle}_network"
check "a bundle with a score network" out_has '^score network parameters  *1145$'
network_fingerprint=$(sed -n 's/^fingerprint  *//p' "$directory/out")
run pack "${bundle}_network" -o "$directory/packed_network"
check "pack with a score network" prints "$directory/packed_network: packed, fingerprint $network_fingerprint"
run inspect --json "$directory/packed_network"
check "and it is in the packed file" out_has '"score_network_parameters":1145'
run pack "$directory" -o "$directory/packed2"
check "pack of something else" fails 1 "cannot pack .*: there is no model.json in it, name a bundle directory"
run pack "$directory/packed" -o "$directory/packed2"
check "pack of a file" fails 1 "name a bundle directory"
cp -r "$bundle" "$directory/own"
mkdir "$directory/own/below"
ln -s own/below "$directory/link"
for output in own/ranker.json own/new own/below/new link/new; do
    run pack "$directory/own" -o "$directory/$output"
    check "pack into its own directory: $output" fails 1 "in the bundle's own directory"
done
check "and the bundle is as it was" cmp "$bundle/ranker.json" "$directory/own/ranker.json"
run pack "$directory/own" -o "$directory/nothing"
check "pack onto a directory" fails 1 "it is a directory, name a file"
echo old >"$directory/packed3"
run pack "$directory/own" -o "$directory/packed3" --json
check "pack in JSON" prints "{\"path\":\"$directory/packed3\",\"bytes\":$(wc -c <"$directory/packed"),\"fingerprint\":\"$fingerprint\"}"
check "in the place of another file" cmp "$directory/packed" "$directory/packed3"
check "and no file is left" test ! -e "$directory/packed2"
run pack "$bundle" -o "$directory/absent/packed"
check "pack into nowhere" fails 1 "cannot pack"

# ---- The default bundle ----

mkdir -p "$directory/host/bin" "$directory/host/share/foreloop" "$directory/work/weights"
cp "$foreloop" "$directory/host/bin/"
cp "$directory/packed" "$directory/host/share/foreloop/default.foreloop"
in_work() { (cd "$directory/work" && "$directory/host/bin/foreloop" tokenize --json ../text) >"$directory/out" 2>"$directory/err"; }
in_work
status=$?
check "the default bundle is found beside the command" exits 0
rm "$directory/host/share/foreloop/default.foreloop"
in_work
status=$?
if exits 0; then
    skip "no default bundle" "one is installed where this build installs"
else
    check "no default bundle" fails 1 "no default model bundle"
    ln -s "$bundle" "$directory/work/weights/default"
    in_work
    status=$?
    check "the default bundle is found in ./weights" exits 0
fi

# ---- train-ranker ----

{
    echo 'speed,size,noise'
    i=0
    while [ $i -lt 40 ]; do
        echo "$((i * 7 % 40)),$((i % 4)),$((i * 13 % 11))"
        i=$((i + 1))
    done
} >"$directory/rows.csv"
sed 1d "$directory/rows.csv" | awk -F, '{print 1 / (1 + $1)}' >"$directory/seconds.csv"
sed 1d "$directory/rows.csv" | awk -F, '{print int($1 / 2)}' >"$directory/relevances.csv"
awk 'BEGIN {for (i = 0; i < 40; i++) print i % 2}' >"$directory/groups.csv"
train_tables() { run train-ranker "$directory/rows.csv" --groups "$directory/groups.csv" "$@"; }
train_tables --seconds "$directory/seconds.csv" -o "$directory/trained.json" --rounds 20
check "train-ranker on tables" exits 0
check "train-ranker tells what it did" out_has "40 candidates in 2 groups, 3 features: 20 trees"
run predict --ranker "$directory/trained.json" "$directory/rows.csv"
check "its trees are read by name" exits 0
check "and predict each row" lines_are out 40
train_tables --seconds "$directory/seconds.csv" -o "$directory/again.json" --rounds 12
train_tables --seconds "$directory/seconds.csv" -o "$directory/again.json" --rounds 8 --start "$directory/again.json" --json
check "train-ranker goes on" out_has '"trees":20,.*"before":{"ndcg":.*"after":{"ndcg":'
check "12 trees and 8 more are 20 trees" cmp "$directory/trained.json" "$directory/again.json"
train_tables --relevances "$directory/relevances.csv" -o "$directory/again.json" --rounds 5 --folds 2 --json
check "train-ranker on relevances, with folds" out_has '"before":null,"after":{.*"unseen":{"ndcg":[0-9.]*,"pairwise":[0-9.]*}}'
train_tables --seconds "$directory/groups.csv" -o "$directory/none.json"
check "times of 0" fails 1 "row 0: its time must be above 0"
check "and no file is made" test ! -e "$directory/none.json"
train_tables --seconds "$directory/rows.csv" -o "$directory/none.json"
check "too many times" fails 1 "give one for each row"
awk 'BEGIN {for (i = 0; i < 40; i++) print i < 39 ? 1 : 16777217}' >"$directory/large.csv"
run train-ranker "$directory/rows.csv" --groups "$directory/large.csv" --seconds "$directory/seconds.csv" -o "$directory/none.json"
check "a group's number that float32 cannot tell apart" fails 1 "row 40: its group must be"
train_tables --seconds "$directory/seconds.csv" -o "$directory/none.json" --folds 3
check "more folds than groups" fails 1 "more than the 2 groups"
train_tables --seconds "$directory/seconds.csv" -o "$directory/none.json" --eta 2
check "an option out of range" fails 1 "eta must be"
train_tables --seconds "$directory/seconds.csv" -o "$directory/none.json" --objective map
check "an unknown objective" fails 2 "ndcg, pairwise or squared-error"
train_tables --seconds "$directory/seconds.csv"
check "train-ranker without an output" fails 2 "-o FILE"
train_tables -o "$directory/none.json"
check "train-ranker without times" fails 2 "one of --seconds and --relevances"
run train-ranker -o "$directory/none.json"
check "train-ranker without data" fails 2 "give FEATURES"
run train-ranker -w a -w b -r c -o "$directory/none.json"
check "a program without records" fails 2 "2 times -w and 1 times -r"
train_tables --seconds "$directory/seconds.csv" -o "$directory/absent/none.json" --rounds 2
check "train-ranker into nowhere" fails 1 "cannot write the trees"

# ---- The trained bundle on a measured database ----

trained=$root/weights/default
test -e "$trained" || trained=$root/weights/default.foreloop
found=
for database in "$root"/examples/data/*/; do
    test -e "$trained" && test -f "$database/database_tuning_record.json" || continue
    found=yes
    name=$(basename "$database")
    run rank -m "$trained" -w "$database/workload.txt" -r "$database/database_tuning_record.json"
    check "$name is ranked" exits 0
    check "$name: no kind is unknown" sh -c "! grep -q '^unknown kinds' '$directory/out'"
    accuracy=$(sed -n 's/^pairs in the right order  *\([0-9]*\).*/\1/p' "$directory/out")
    check "$name: $accuracy % of the pairs are in the right order, more than by chance" test "${accuracy:-0}" -gt 50
    run rank -m "$trained" -w "$database/workload.txt" -r "$database/database_tuning_record.json" --json
    set -- -m "$trained" -w "$database/workload.txt" -r "$database/database_tuning_record.json" --rounds 10 --json
    run train-ranker "$@" --continue -o "$directory/adapted.json"
    check "$name: trees are added to the model's" out_has '"before":{"ndcg":.*"after":{"ndcg":'
    run train-ranker "$@" "$@" -o "$directory/adapted.json"
    check "$name: several programs" out_has '"groups":2,'
    run rank -m "$trained" -w "$database/workload.txt" -r "$database/database_tuning_record.json" --json
    check "$name: scores fall" sh -c "sed 's/.*\"score\":\([^,]*\),.*/\1/' '$directory/out' | sort -rg -c"
done
test -n "$found" || skip "the trained bundle on a measured database" "weights/default or examples/data is not there"

echo "1..$count"
test "$failures" -eq 0
