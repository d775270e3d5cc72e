# Completion of punctual for fish. punctual itself says what can stand there.
function __punctual_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$word"
            case :folders
                __fish_complete_directories "$word" ''
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c punctual -f -a '(__punctual_complete)'
