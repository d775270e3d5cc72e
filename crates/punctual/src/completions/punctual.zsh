#compdef punctual
# Completion of punctual for zsh. punctual itself says what can stand there.
_punctual() {
    local line value help
    local -a values shown open open_shown
    local files='' folders=''
    for line in "${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
        value=${line%%$'\t'*}
        help=${line#*$'\t'}
        case $value in
        '') ;;
        :files) files=1 ;;
        :folders) folders=1 ;;
        *=) open+=("$value") open_shown+=("$value  $help") ;;
        *) values+=("$value") shown+=("$value  $help") ;;
        esac
    done
    (( $#values )) && compadd -l -d shown -a values
    # More can follow a parameter's name.
    (( $#open )) && compadd -S '' -l -d open_shown -a open
    [[ -n $files ]] && _files
    [[ -n $folders ]] && _files -/
    return 0
}
if [ "$funcstack[1]" = _punctual ]; then
    _punctual "$@"
else
    compdef _punctual punctual
fi
