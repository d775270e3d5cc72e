# Completion of punctual for bash. punctual itself says what can stand there.
_punctual() {
    local IFS=$' \t\n'
    local line=${COMP_LINE:0:COMP_POINT} words word cut='' value path
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[${#words[@]}-1]}
    # If : or = break words, bash replaces only what follows the last of them.
    [[ $COMP_WORDBREAKS == *:* && $word == *:* ]] && cut=${word%"${word##*:}"}
    [[ $COMP_WORDBREAKS == *=* && ${word#"$cut"} == *=* ]] && cut=${word%"${word##*=}"}
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        case $value in
        :files | :folders)
            compopt -o filenames
            local kind=-f
            [[ $value == :folders ]] && kind=-d
            while IFS= read -r path; do
                COMPREPLY+=("$path")
            done < <(compgen "$kind" -- "${word#"$cut"}")
            ;;
        *)
            # More can follow a parameter's name.
            [[ $value == *= ]] && compopt -o nospace
            COMPREPLY+=("${value#"$cut"}")
            ;;
        esac
    done < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _punctual punctual
