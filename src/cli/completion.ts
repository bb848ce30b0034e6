/** What shells need to complete our commands. The scripts know nothing: they ask the program for what could come next. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The script for one shell. Candidates come one to a line, a tab before what they mean. */
export const script = (shell: Shell, program: string): string => scripts[shell](program)

const scripts: Record<Shell, (program: string) => string> = {
  // To bash, words also end at the signs of COMP_WORDBREAKS, and it replaces what is behind the last of them (and an @
  // itself). Contexts are full of these: arn:aws:eks:…, kubernetes-admin@kubernetes.
  bash: (program) => `# completion of ${program} for bash
_${program}_complete() {
  local rest="\${COMP_LINE:0:COMP_POINT}" at line word sign settled kept="" words=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    line="\${rest#"\${rest%%[![:space:]]*}"}" word="\${COMP_WORDS[at]}"
    ((at == COMP_CWORD)) && word="$line"
    if [[ "$line" == "$rest" && "$at" -gt 0 ]]; then words[\${#words[@]}-1]+="$word"; else words+=("$word"); fi
    rest="\${line#"$word"}"
  done
  word="\${words[\${#words[@]}-1]}"
  for sign in = : @; do
    [[ "$COMP_WORDBREAKS" == *"$sign"* && "$word" == *"$sign"* ]] || continue
    settled="\${word%"$sign"*}\${sign#@}"
    ((\${#settled} > \${#kept})) && kept="$settled"
  done
  COMPREPLY=()
  while IFS= read -r line; do
    word="\${line%%$'\\t'*}"
    COMPREPLY+=("\${word#"$kept"}")
  done < <("\${words[0]}" __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _${program}_complete ${program}
`,
  // The last lines are for both ways in: sourced, and as a file of fpath, which zsh runs as the function itself.
  zsh: (program) => `#compdef ${program}
# completion of ${program} for zsh
_${program}() {
  local -a candidates
  local line word about
  while IFS= read -r line; do
    word="\${line%%$'\\t'*}" about="\${line#*$'\\t'}"
    candidates+=("\${word//:/\\\\:}\${about:+:$about}")
  done < <("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe '${program}' candidates
}
if [[ "\${funcstack[1]}" == _${program} ]]; then _${program} "$@"; else compdef _${program} ${program}; fi
`,
  fish: (program) => `# completion of ${program} for fish
function __${program}_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c ${program} -f -a '(__${program}_complete)'
`,
}
