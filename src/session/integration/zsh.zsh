# The .zshenv of a zsh that tells its terminal where prompts, commands and their ends are.
# It hands the user's own directory back at once: the other files are found, and dumps written, where they belong.
# The functions come before the user's files, so no alias is expanded into them. All of them is one block without
# standard error, which hides traces; emulate keeps the user's options out.

@ZDOTDIR@

# The end of a command. It goes to the terminal itself: standard output may be a file by now.
__kpty_end() {
  {
    \builtin printf '\e]7;file://@SECRET@%s\e\\\e]133;D;%s;k=@SECRET@\e\\' "${${PWD-}//[[:cntrl:]]/?}" "$?" >|/dev/tty ||
      [[ -n 1 ]]
  } >/dev/null 2>&1
}

# The start of a command, after everything else that is told of it. Hooks somebody has dropped come back.
__kpty_begin() {
  {
    # Somebody may have set all options back; what `emulate -L` sets goes with its function.
    \builtin setopt no_prompt_sp no_prompt_cr
    () {
      \builtin emulate -L zsh
      \builtin printf '\e]133;C;k=@SECRET@\e\\' >|/dev/tty || [[ -n 1 ]]
      __kpty_hook
    }
  } >/dev/null 2>&1
}

# First the end, so that nothing is printed before it; last the prompts. A function named precmd would run before any
# hook: it becomes the second.
__kpty_hook() {
  if (( $+functions[precmd] )) && \builtin functions -c precmd __kpty_precmd; then \builtin unfunction precmd; fi
  preexec_functions=(${preexec_functions:#__kpty_begin} __kpty_begin)
  precmd_functions=(__kpty_end ${(k)functions[(I)__kpty_precmd]} ${precmd_functions:#__kpty_*} __kpty_wrap)
}

# The marks of the prompts, put back wherever something else has been set since.
__kpty_wrap() {
  {
    () {
      \builtin emulate -L zsh
      \builtin local __kpty_map
      if [[ ${(t)PS1} != *readonly* ]]; then
        PS1=${${PS1//$3}//$4}
        if [[ $2 == on ]]; then PS1=$3$PS1$4; fi
      fi
      if [[ $2 == on && ${(t)PS2} != *readonly* ]]; then PS2=$5${PS2//$5}; fi
      # A prompt that cannot be marked is announced instead.
      if [[ $PS1 != "$3"*"$4" ]]; then
        \builtin printf '\e]133;A;%s;k=@SECRET@\e\\\e]133;B;k=@SECRET@\e\\' "$1" >|/dev/tty || [[ -n 1 ]]
      fi
      # An exported prompt would hand the secret to every child and let a nested zsh speak for this one.
      if [[ ${(t)PS1}${(t)PS2} == *export* ]]; then \builtin typeset -g +x PS1 PS2; fi
      # Takes an unfinished command back. A key, because a Ctrl-C is a signal: one that finds zsh in somebody's function,
      # like those that begin a line, is a failure there, and with `set -e` the end of the shell.
      \builtin bindkey '\e[990~' send-break
      # Text from a program comes as a paste, and whatever stood on the line before it goes.
      for __kpty_map in emacs viins vicmd; do
        \builtin bindkey -M $__kpty_map '\e[991~' kill-buffer
        \builtin bindkey -M $__kpty_map '\e[200~' bracketed-paste
      done
      # Some sets of options bring the mark of an unfinished line back.
      PROMPT_EOL_MARK=
      __kpty_hook
    } "$?" "${options[promptpercent]}" \
      $'%{\e]133;A;%?;k=@SECRET@\e\\%}' $'%{\e]133;B;k=@SECRET@\e\\%}' $'%{\e]133;P;k=@SECRET@\e\\%}'
  } >/dev/null 2>&1
}

# Before the first prompt, after all of the user's files. Typed text comes from a program: an exclamation mark means
# itself, a comment is one, and an unfinished line of output is left as it is.
__kpty_start() {
  # The line editor runs what is due, too: for a question of a start-up file, which is no prompt.
  if \builtin zle; then
    precmd_functions=(__kpty_start ${precmd_functions:#__kpty_start})
    \builtin return 0
  fi
  {
    \builtin setopt no_bang_hist interactive_comments no_prompt_sp no_prompt_cr
    __kpty_end
    __kpty_wrap
    \builtin unfunction __kpty_start
  } >/dev/null 2>&1
}

# An event that is due rather than a hook: files that assign the list of hooks do not drop it.
{ \builtin zmodload zsh/sched && \builtin sched +0 __kpty_start || precmd_functions+=(__kpty_start) } 2>/dev/null

if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then \builtin source ${ZDOTDIR:-$HOME}/.zshenv; fi
