/** What shells need to complete our commands. The scripts know nothing: they ask the program for what could come next. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The script for one shell. Candidates come one to a line, a tab before what they mean. */
export const script = (shell: Shell, program: string): string => scripts[shell](program)

const scripts: Record<Shell, (program: string) => string> = {
  // To bash, = ends a word: of --flag=value it wants the value alone.
  bash: (program) => `# completion of ${program} for bash
_${program}_complete() {
  local line word current="\${COMP_WORDS[COMP_CWORD]}" after=""
  [[ "$current" == "=" ]] && current="" after="="
  [[ "$COMP_CWORD" -gt 1 && "\${COMP_WORDS[COMP_CWORD-1]}" == "=" ]] && after="="
  COMPREPLY=()
  while IFS= read -r line; do
    word="\${line%%$'\\t'*}"
    [[ -n "$after" ]] && word="\${word#*=}"
    [[ "$word" == "$current"* ]] && COMPREPLY+=("$word")
  done < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _${program}_complete ${program}
`,
  zsh: (program) => `#compdef ${program}
# completion of ${program} for zsh
_${program}() {
  local -a candidates
  local line
  while IFS= read -r line; do
    candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe '${program}' candidates
}
compdef _${program} ${program}
`,
  fish: (program) => `# completion of ${program} for fish
function __${program}_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c ${program} -f -a '(__${program}_complete)'
`,
}
