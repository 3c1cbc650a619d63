# Completion of `zareba` in bash. The program itself says what fits.
_zareba() {
    local line value words begun
    # The words before the cursor. Bash has cut them at `=` and `:`, and shows such a sign as the
    # current word while `$2`, which is to be completed, is empty.
    words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
    case ${COMP_WORDS[COMP_CWORD]} in
        = | :) words+=("${COMP_WORDS[COMP_CWORD]}") ;;
    esac
    COMPREPLY=()
    # What bash has cut off the word, such as `debian:` of `debian:12`: it stays as it is.
    begun=${COMP_LINE:0:COMP_POINT}
    begun=${begun##*[[:space:]]}
    begun=${begun%"$2"}
    begun=${begun#--*=}
    while IFS= read -r line; do
        case $line in
            :files)
                compopt -o filenames 2>/dev/null
                while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$2")
                ;;
            :directories)
                compopt -o filenames 2>/dev/null
                while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -d -- "$2")
                ;;
            *)
                value=${line%%$'\t'*}
                [[ $value == *[:=] ]] && compopt -o nospace 2>/dev/null
                COMPREPLY+=("${value#"$begun"}")
                ;;
        esac
    done < <("$1" complete -- "${words[@]}" "$2" 2>/dev/null)
}
complete -F _zareba zareba
