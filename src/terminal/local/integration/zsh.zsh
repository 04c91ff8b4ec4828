# The .zshenv of a zsh that tells its terminal where prompts, commands and their ends are.
# It hands the user's own directory back at once: the other files are found, and dumps written, where they belong.
# The functions come before the user's files, so no alias is expanded into them. They have options of their own
# (`emulate -c`): no trace of them is shown, without a redirection, which a shell with few descriptors cannot afford.
#
# A mark counts with the secret alone. What zsh itself calls has the evaluation context `shfunc`; anything else, a hook
# or a trap of the user's for example, has more in there, and spoils the key. Where the user has a function `builtin`
# or has disabled what prints, only the prompt tells.

@ZDOTDIR@

# __kpty_end: the end of a command. It is one list, as is what it calls, with the trap for DEBUG after it, so that nothing
# is printed before the mark.
# What tells (TELL) prints to the terminal itself, as standard output may be a file by now. It is part of each function
# that needs it: one of its own may be gone when another calls it.
\builtin emulate zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_debug_before_cmd -c '
__kpty_end() {
  @TELL@ "\e]7;file://%s%s\a\e]133;D;%s;k=%s\a" "@SECRET@${ZSH_EVAL_CONTEXT#shfunc}" "${${PWD-}//[[:cntrl:]]/?}" "$?" "@SECRET@${ZSH_EVAL_CONTEXT#shfunc}"
}
'

# __kpty_begin: the start of a command, after everything else that is told of it, the trap for DEBUG included. Hooks
# somebody has dropped come back.
# __kpty_hook: first the end, so that nothing is printed before it; last the prompts. A function named precmd would run
# before any hook: it becomes the second.
# __kpty_wrap: the marks of the prompts, put back wherever something else has been set since. A prompt that cannot be
# marked is announced instead. An exported prompt would hand the secret to every child and let a nested zsh speak for
# this one. Some sets of options bring the mark of an unfinished line back; those are changed before the next command.
# __kpty_first: all of that for the first time. The line editor runs what is due, too: for a question of a start-up file,
# which is no prompt.
# __kpty_keys: takes an unfinished command back with a key, because a Ctrl-C is a signal: one that finds zsh in a
# function, like those that begin a line, is a failure there, and with `set -e` the end of the shell. Text from a
# program comes as a paste, and whatever stood on the line before it goes.
\builtin emulate zsh -o no_xtrace -o no_err_exit -o no_err_return -c '
__kpty_begin() {
  __kpty_hook
  @TELL@ "\e]133;C;k=%s\a" "@SECRET@${ZSH_EVAL_CONTEXT#shfunc}"
}

__kpty_hook() {
  if [[ ${+functions[precmd]}${+functions[builtin]}${+builtins[builtin]}${+builtins[functions]} == 1011 ]] &&
    \builtin functions -c precmd __kpty_precmd; then
    \builtin unfunction precmd
  fi
  if [[ ${(t)preexec_functions} != *readonly* ]]; then
    preexec_functions=(${preexec_functions:#__kpty_*} __kpty_begin)
    if [[ -o prompt_sp || -o prompt_cr ]]; then preexec_functions=(__kpty_options $preexec_functions); fi
  fi
  if [[ ${(t)precmd_functions} != *readonly* ]]; then
    precmd_functions=(__kpty_end ${(k)functions[(I)__kpty_precmd]} ${precmd_functions:#__kpty_*} __kpty_wrap)
  fi
}

__kpty_wrap() {
  local __kpty_a=$?
  __kpty_hook
  __kpty_prompts "${ZSH_EVAL_CONTEXT#shfunc}" "$__kpty_a"
}

__kpty_prompts() {
  local __kpty_a=$'\''%{\e]133;A;%?;k=@SECRET@\a%}'\'' __kpty_b=$'\''%{\e]133;B;k=@SECRET@\a%}'\'' \
    __kpty_p=$'\''%{\e]133;P;k=@SECRET@\a%}'\''
  if [[ ${(t)PS1} != *readonly* ]]; then
    PS1=${${PS1//$__kpty_a}//$__kpty_b}
    if [[ -o prompt_percent ]]; then PS1=$__kpty_a$PS1$__kpty_b; fi
  fi
  if [[ -o prompt_percent && ${(t)PS2} != *readonly* ]]; then PS2=$__kpty_p${PS2//$__kpty_p}; fi
  if [[ ${(t)PROMPT_EOL_MARK} != *readonly* ]]; then PROMPT_EOL_MARK=; fi
  if [[ ${(t)PS1}${(t)PS2} == *export* ]]; then typeset -g +x PS1 PS2; fi
  if [[ ${+functions[builtin]}${+builtins[builtin]}${+builtins[bindkey]} == 011 ]]; then __kpty_keys; fi
  if [[ $PS1 != "$__kpty_a"*"$__kpty_b" ]]; then
    @TELL@ "\e]133;A;%s;k=%s\a\e]133;B;k=%s\a" "$2" "@SECRET@$1" "@SECRET@$1"
  fi
  if [[ ${preexec_functions[(I)__kpty_begin]}${+functions[__kpty_begin]} != [1-9]*1 ]]; then
    @TELL@ "\e]133;N;k=%s\a" "@SECRET@$1"
  fi
}

__kpty_first() {
  if [[ ${+functions[builtin]}${+builtins[builtin]}${+builtins[zle]} == 011 ]] && \builtin zle; then
    precmd_functions=(__kpty_start ${precmd_functions:#__kpty_start})
  else
    __kpty_hook
    @TELL@ "\e]7;file://@SECRET@%s\a\e]133;F;k=@SECRET@\a\e]133;D;0;k=@SECRET@\a" "${${PWD-}//[[:cntrl:]]/?}"
    __kpty_prompts "" 0
  fi
}

__kpty_keys() {
  local __kpty_map
  \builtin bindkey "\e[990~" send-break
  for __kpty_map in main emacs viins vicmd; do
    \builtin bindkey -M $__kpty_map "\e[991~" kill-buffer
    \builtin bindkey -M $__kpty_map "\e[200~" bracketed-paste
  done
}
'

# Options are set for the user here, and not in a function with options of its own. An array does it: that needs no
# command, which could be somebody's function.
__kpty_options() {
  options[promptsp]=off options[promptcr]=off
}

# Before the first prompt, after all of the user's files. Typed text comes from a program: an exclamation mark means
# itself, a comment is one, and an unfinished line of output is left as it is.
__kpty_start() {
  options[banghist]=off options[interactivecomments]=on options[promptsp]=off options[promptcr]=off
  __kpty_first
}

# An event that is due rather than a hook: files that assign the list of hooks do not drop it.
{ \builtin zmodload zsh/sched && \builtin sched +0 __kpty_start || precmd_functions+=(__kpty_start) } 2>/dev/null

if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then \builtin source ${ZDOTDIR:-$HOME}/.zshenv; fi
