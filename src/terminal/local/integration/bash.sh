# Start-up file of a bash that tells its terminal where prompts, commands and their ends are.
# The functions come before the user's files, so no alias is expanded into them; they keep to named builtins and [[ ]],
# so that user functions, IFS, set -efu and noclobber do not reach them.

# Where the shell is, if that is new. It comes after the end mark, because it is seldom new and the end is waited for.
__kpty_move() {
  __kpty_pwd=${PWD-}
  \builtin printf '\e]7;file://@SECRET@%s\e\\' "${__kpty_pwd//[[:cntrl:]]/?}" >&0 || [[ 1 ]]
}

# Something is not as it was: the directory, or what a wrong status or a lost start would come from. Where a function of
# the user's has the place of `builtin`, nothing can be done, and the prompt, which needs no command, has to tell.
__kpty_renew() {
  if [[ ${__kpty_text-} ]]; then
    [[ ${PWD-} == "${__kpty_pwd-}" ]] || __kpty_move
    [[ ${PS0-}${PS1-}${PS1@a}${PS2-}${PROMPT_COMMAND-} == "${__kpty_set-}" ]] || __kpty_wrap "$__kpty_status"
    __kpty_seen=${PWD-}${__kpty_set:-changes}
  fi
}

# The marks of the prompts and the hooks, put (back) in place.
__kpty_wrap() {
  \builtin local __kpty_a='\[\e]133;A;$?;k=@SECRET@\e\\\]' __kpty_b='\[\e]133;B;k=@SECRET@\e\\\]' \
    __kpty_c='\e]133;C;k=@SECRET@\e\\' __kpty_p='\[\e]133;P;k=@SECRET@\e\\\]' \
    __kpty_i __kpty_fixed=1
  # The end mark runs between every command and its answer: few commands, and no function. It goes where the shell
  # reads from, which is the terminal also while standard output is a file. It is made before it is printed: what a
  # function `builtin` of the user's prints instead goes nowhere. The letter v behind the status says `set -v`.
  \builtin local __kpty_tell=$'__kpty_text=\n\\builtin printf -v __kpty_text \'\\e]133;D;%s;k=@SECRET@\\e\\\\\' "$__kpty_status${-//[!v]}"\n[[ ! $__kpty_text ]] || \\builtin printf %s "$__kpty_text" >&0\n'
  # With `set -v` bash shows the text of a hook before it runs it. So that text itself holds a mark, behind what takes
  # the characters before it back: there the output ended.
  \builtin local __kpty_shown=$'{ _=\'\b\b\b\b\b\e[K\e]133;V;k=@SECRET@\e\\\' '
  # A plain assignment to PROMPT_COMMAND replaces the first hook and leaves the last, which then tells the end.
  \builtin local __kpty_late=$'__kpty_was=$?\n[[ ${__kpty_status-} ]] || {\n__kpty_status=$__kpty_was\n'"$__kpty_tell"$'}\n'
  # The paste key comes last: somebody may have bound it to something else.
  \builtin local __kpty_check=$'[[ ${PWD-}${PS0-}${PS1-}${PS1@a}${PS2-}${PROMPT_COMMAND-} == "${__kpty_seen-}" ]] || __kpty_renew\n__kpty_status=\n\\builtin bind \'"\\e[200~": bracketed-paste-begin\'\n'
  # Closed for the time of a hook, the outputs keep its trace (set -x) to themselves; opening /dev/null takes longer.
  # Where the user has no hooks, one does the work of both: the prompt, and with it the answer, comes sooner.
  \builtin local __kpty_first="$__kpty_shown"$'__kpty_status=$?\n'"$__kpty_tell"'} >&- 2>&-' \
    __kpty_last="$__kpty_shown$__kpty_late$__kpty_check"'} >&- 2>&-' \
    __kpty_only="$__kpty_shown"$'__kpty_status=$?\n'"$__kpty_tell$__kpty_check"'} >&- 2>&-'
  \builtin local -a __kpty_hooks
  if [[ ${PS1-} != "$__kpty_a"*"$__kpty_b" ]]; then
    if [[ ${PS1+x} && ${PS1@a} == *r* ]]; then
      # A prompt that cannot be changed is announced instead, each time.
      __kpty_fixed=
      [[ ! $1 ]] || \builtin printf '\e]133;A;%s;k=@SECRET@\e\\\e]133;B;k=@SECRET@\e\\' "$1" >/dev/tty || [[ 1 ]]
    else
      PS1=${PS1-} PS1=${PS1//"$__kpty_a"} PS1=$__kpty_a${PS1//"$__kpty_b"}$__kpty_b
    fi
  fi
  if [[ ${PS2-} != "$__kpty_p"* && ! (${PS2+x} && ${PS2@a} == *r*) ]]; then
    PS2=${PS2-} PS2=$__kpty_p${PS2//"$__kpty_p"}
  fi
  # A string and no command, because it costs no fork, is not traced and fires no DEBUG trap.
  if [[ ${PS0-} != *"$__kpty_c" && ! (${PS0+x} && ${PS0@a} == *r*) ]]; then
    PS0=${PS0-} PS0=${PS0//"$__kpty_c"}$__kpty_c
  fi
  # Somebody made it read-only: then nothing tells where a command starts.
  [[ ${PS0-} == *"$__kpty_c" ]] || \builtin printf '\e]133;N;k=@SECRET@\e\\' >/dev/tty || [[ 1 ]]
  # An exported prompt would hand the secret to every child and let a nested bash speak for this one.
  \builtin export -n PS0 PS1 PS2 || [[ 1 ]]
  # First the end, so that nothing changes its status or prints before it; last the prompts. The line breaks inside
  # the hooks let bash-preexec see that they are no commands of the user.
  for __kpty_i in "${PROMPT_COMMAND[@]}"; do
    __kpty_i=${__kpty_i//"$__kpty_first"/:} __kpty_i=${__kpty_i//"$__kpty_last"/:} __kpty_i=${__kpty_i//"$__kpty_only"/:}
    if [[ $__kpty_i && $__kpty_i != : ]]; then __kpty_hooks+=("$__kpty_i"); fi
  done
  # The empty one, which bash skips, is there to be assigned to.
  if [[ ${#__kpty_hooks[@]} -eq 0 ]]; then __kpty_first= __kpty_last=$__kpty_only; fi
  # An error here would keep the rest of the last hook from being run.
  if [[ ${PROMPT_COMMAND[*]@a} != *r* ]]; then PROMPT_COMMAND=("$__kpty_first" "${__kpty_hooks[@]}" "$__kpty_last"); fi
  __kpty_set=${__kpty_fixed:+${PS0-}${PS1-}${PS1@a}${PS2-}${PROMPT_COMMAND-}}
}

# Typed text comes from a program: an exclamation mark means itself. The secret stays out of exported functions.
# Before 5.1 only the first of several prompt commands runs: such a bash stays as the user made it.
__kpty_start() {
  if [[ BASH_VERSINFO[0] -gt 5 || BASH_VERSINFO[0] -eq 5 && BASH_VERSINFO[1] -ge 1 ]]; then
    \builtin set +H
    # A paste that is shown as a selection is drawn twice before it runs.
    \builtin bind 'set enable-active-region off'
    \builtin export -nf __kpty_move __kpty_renew __kpty_wrap
    # Text from a program comes as a paste, and whatever stood on the line before it goes.
    for __kpty_map in emacs-standard vi-insert vi-command; do
      \builtin bind -m "$__kpty_map" '"\e[200~": bracketed-paste-begin'
      \builtin bind -m "$__kpty_map" '"\e[991~": kill-whole-line'
    done
    \builtin unset __kpty_map
    __kpty_wrap ''
  fi
  \builtin unset -f __kpty_start
}

@USER_FILES@
# All start-up files have been read. Told in two ways, because either name may be a function of the user's by now.
{ \builtin printf '\e]133;F;k=@SECRET@\e\\'; \printf '\e]133;F;k=@SECRET@\e\\'; } 2>/dev/null
\__kpty_start 2>/dev/null
