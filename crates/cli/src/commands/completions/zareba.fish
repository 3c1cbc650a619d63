# Completion of `zareba` in fish. The program itself says what fits.
function __zareba_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l prefix (string match --regex -- '^--[^=]*=' $word)
    set -l value (string replace --regex -- '^--[^=]*=' '' $word)
    for line in ($words[1] complete -- $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $value
            case :directories
                __fish_complete_directories $value
            case '*'
                printf '%s%s\n' "$prefix" $line
        end
    end
end
complete --command zareba --no-files --arguments '(__zareba_complete)'
