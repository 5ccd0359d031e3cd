"""`groupkeeper completion SHELL`: the shell gets its candidates from `groupkeeper __complete` (`complete`)."""

from __future__ import annotations

from argparse import Namespace

from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.output import say

# Candidates come one a line, with a tab before their meaning; ":files" makes the shell complete file names.

_BASH = r"""# bash completion of groupkeeper: source <(groupkeeper completion bash)
_groupkeeper() {
    local words=() cur line quoted
    # The words as they were typed, without what COMP_WORDBREAKS makes of : and = in them.
    local before="${COMP_LINE:0:COMP_POINT}"
    eval "words=($(_groupkeeper_closed "$before"))" 2>/dev/null || return
    [[ $before == *[[:space:]] && $before != *\\[[:space:]] ]] && words+=("")
    cur="${words[-1]}"
    local asked=("${words[0]}" __complete)
    [[ ${words[0]##*/} == kafka-* ]] && asked=(groupkeeper __complete_tool "${words[0]##*/}")
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
        else
            printf -v quoted %q "${line%%$'\t'*}"
            COMPREPLY+=("$quoted")
        fi
    done < <("${asked[@]}" "${words[@]:1}" 2>/dev/null)
    # Readline replaces only what stands behind the last word break.
    if [[ $cur == *[:=]* && $COMP_WORDBREAKS == *[:=]* ]]; then
        local front="${cur%"${cur##*[:=]}"}" index
        for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]="${COMPREPLY[index]#"$front"}"; done
    fi
}
# The line with a quote closed that is still open.
_groupkeeper_closed() {
    local text="$1" quote
    for quote in '' "'" '"'; do
        if (eval "set -- ${text//[\$\`();<>|&]/_}$quote") 2>/dev/null; then
            printf '%s' "${text//[\$\`();<>|&]/_}$quote"
            return
        fi
    done
}
_groupkeeper_commands=(groupkeeper TOOLS)
complete -o nosort -F _groupkeeper "${_groupkeeper_commands[@]}" 2>/dev/null ||
    complete -F _groupkeeper "${_groupkeeper_commands[@]}"
"""

_ZSH = r"""#compdef groupkeeper TOOLS
# zsh completion of groupkeeper: a file _groupkeeper in $fpath, or source <(groupkeeper completion zsh)
_groupkeeper() {
    local line value
    local -a typed values shown asked
    asked=("${words[1]}" __complete)
    [[ ${words[1]:t} == kafka-* ]] && asked=(groupkeeper __complete_tool "${words[1]:t}")
    # "${(@Q)…}" takes off the quotes of the words; the last one ends where the cursor is.
    typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            _files
            continue
        fi
        value="${line%%$'\t'*}"
        values+=("$value")
        if [[ $line == *$'\t'* ]]; then shown+=("$value  -- ${line#*$'\t'}"); else shown+=("$value"); fi
    done < <("${asked[@]}" "${typed[@]}" 2>/dev/null)
    (( $#values )) && compadd -l -d shown -a values
}
if [[ ${funcstack[1]} == _groupkeeper ]]; then
    _groupkeeper "$@"
elif (( $+functions[compdef] )); then
    compdef _groupkeeper groupkeeper TOOLS
fi
"""

_FISH = r"""# fish completion of groupkeeper: groupkeeper completion fish | source
function __groupkeeper_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l quoted (string unescape -- $current)
    test -n "$quoted"; and set current $quoted
    set -l asked $words[1] __complete
    set -l name (string split / -- $words[1])[-1]
    string match -q 'kafka-*' -- $name; and set asked groupkeeper __complete_tool $name
    for line in ($asked $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end
for name in groupkeeper TOOLS
    complete -c $name -f -a '(__groupkeeper_complete)'
end
"""

DROP_INS = {
    "kafka-consumer-group-reset": "kafka_consumer_group_reset",
    "kafka-consumer-groups": "consumer_groups_options",
    "kafka-get-offsets": "kafka_get_offsets",
    "kafka-groups": "kafka_groups",
    "kafka-share-groups": "share_groups_options",
    "kafka-streams-groups": "streams_groups_options",
}
"""The commands with the names of official tools, which are completed, too: the module with the options of each."""

_TEXTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
SCRIPTS = {shell: text.replace("TOOLS", " ".join(DROP_INS)) for shell, text in _TEXTS.items()}


def _add_arguments(command: ArgumentParser) -> None:
    command.add_argument("shell", choices=list(SCRIPTS), metavar="bash|zsh|fish", help="the shell to generate for")


def _run(options: Namespace) -> int:
    say(SCRIPTS[options.shell])
    return 0


COMMAND = Command(
    _add_arguments,
    _run,
    "Print the completion script of a shell. It completes commands, options and their values, contexts, and the "
    "names of groups and topics of the cluster; for the drop-ins (kafka-consumer-groups …), names are completed once "
    "a --bootstrap-server is typed.",
    """\
  source <(groupkeeper completion bash)         # in ~/.bashrc
  source <(groupkeeper completion zsh)          # in ~/.zshrc, after compinit
  groupkeeper completion fish | source          # in ~/.config/fish/config.fish""",
)
