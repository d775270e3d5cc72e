# Completion of punctual for elvish. punctual itself says what can stand there.
use str
set edit:completion:arg-completer[punctual] = {|@words|
    (external $words[0]) __complete (all $words[1..]) 2>/dev/null | from-lines | each {|line|
        if (or (eq $line ':files') (eq $line ':folders')) {
            edit:complete-filename $words[-1]
        } else {
            var value help = (str:split &max=2 "\t" $line)
            var suffix = ' '
            if (str:has-suffix $value '=') {
                set suffix = ''
            }
            edit:complex-candidate $value &display=$value'  '$help &code-suffix=$suffix
        }
    }
}
