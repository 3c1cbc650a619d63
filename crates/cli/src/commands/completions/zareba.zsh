#compdef zareba
# Completion of `zareba` in zsh. The program itself says what fits.
_zareba() {
    local line value
    local -a lines described open
    lines=("${(@f)$("${words[1]}" complete -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '--*='
    for line in $lines; do
        value=${line%%$'\t'*}
        case $line in
            :files) _files ;;
            :directories) _files -/ ;;
            *:$'\t'*) open+=("$value") ;;
            *$'\t'*) described+=("${value//:/\\:}:${line#*$'\t'}") ;;
            *) described+=("${value//:/\\:}") ;;
        esac
    done
    (($#described)) && _describe zareba described
    (($#open)) && compadd -S '' -- $open
}
if [[ $funcstack[1] == _zareba ]]; then
    _zareba "$@"
else
    compdef _zareba zareba
fi
