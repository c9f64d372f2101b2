# Completion of the foreloop command for bash.

_foreloop() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local commands="rank encode tokenize predict actions inspect pack bench train-ranker help"
    local options
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$word")
        return
    fi
    case $previous in
    -m | --model | -w | --workload | -r | --records | --hardware | --hf | --tokenizer | --merges | --ranker | --tree-weights | --groups | --seconds | --relevances | --start | -o | --output)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --precision)
        mapfile -t COMPREPLY < <(compgen -W "f32 bf16 int8 int8_row" -- "$word")
        return
        ;;
    --pairs)
        mapfile -t COMPREPLY < <(compgen -W "top mean" -- "$word")
        return
        ;;
    --pair-count | --grades | --rounds | --depth | --bins | --eta | --lambda | --min-child-weight | --subsample | --columns | --seed | --folds)
        return
        ;;
    --top | --workload-index | --base-score | --objective | --num-class | --num-parallel-tree | --tier | --runs | --window | --overlap)
        return
        ;;
    esac
    case $command in
    rank) options="--model --workload --records --top --workload-index --hardware --precision --amx --strict --json" ;;
    encode) options="--model --hf --precision --amx --jsonl --json" ;;
    tokenize) options="--model --tokenizer --merges --no-special --strict --as-file --window --overlap --decode --jsonl --json" ;;
    predict) options="--ranker --base-score --objective --num-class --num-parallel-tree --tree-weights --margin --leaves --contributions --json" ;;
    actions) options="--records --full-trace --json" ;;
    inspect) options="--cpu --json" ;;
    pack) options="--output --json" ;;
    bench) options="--tier --precision --amx --model --tokenizer --runs --json" ;;
    train-ranker) options="--output --groups --seconds --relevances --model --workload --records --hardware --continue --start --objective --pairs --pair-count --grades --rounds --depth --bins --eta --lambda --min-child-weight --subsample --columns --seed --folds --json" ;;
    help)
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
        return
        ;;
    *) return ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$word")
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}

complete -F _foreloop foreloop
