# Read by fish after the user's configuration: tells the terminal where prompts, commands and their ends are.
# Handlers of events leave $status and $pipestatus alone. The marks go to the terminal itself, not to where a block
# around the command may have sent standard output.
#
# What fish itself calls has a stack that begins with the event and the function. Anything else, a prompt or a handler of
# the user's for example, has something between them or before them, and prints nothing.

# In a function, which puts them back when somebody has erased them.
function __kpty_define
    function __kpty_begin --on-event fish_preexec
        builtin set --local __kpty_trace (builtin status stack-trace)
        if builtin string match --quiet '*__kpty_begin*fish_preexec*' -- "$__kpty_trace[-2..]"
            builtin printf '\e]133;C;k=@SECRET@\e\134' >/dev/tty 2>/dev/null
        end
    end

    function __kpty_end --on-event fish_postexec
        builtin set --local __kpty_status $status
        builtin set --local __kpty_trace (builtin status stack-trace)
        if builtin string match --quiet '*__kpty_end*fish_postexec*' -- "$__kpty_trace[-2..]"
            builtin set --local __kpty_pwd $PWD
            # A substitution takes its time, and hardly any name needs it.
            builtin string match --quiet --regex '[[:cntrl:]]' -- $PWD
            and builtin set __kpty_pwd (builtin string replace --regex --all '[[:cntrl:]]' '?' -- $PWD | builtin string collect)
            builtin printf '\e]7;file://@SECRET@%s\e\134\e]133;D;%s;k=@SECRET@\e\134' "$__kpty_pwd" $__kpty_status >/dev/tty 2>/dev/null
        end
    end
end
__kpty_define

# A prompt begins. Only its end is part of the prompt's text, behind the user's function, which thus sees $status and
# $pipestatus; that function is taken over again whenever it has been redefined.
function __kpty_prompt --on-event fish_prompt
    builtin set --local __kpty_status $status
    builtin set --local __kpty_trace (builtin status stack-trace)
    if builtin string match --quiet '*__kpty_prompt*fish_prompt*' -- "$__kpty_trace[-2..]"
        builtin printf '\e]133;A;%s;k=@SECRET@\e\134' $__kpty_status >/dev/tty 2>/dev/null
        builtin functions --query __kpty_begin
        and builtin functions --query __kpty_end
        or __kpty_define
        builtin functions --query __kpty_begin
        or builtin printf '\e]133;N;k=@SECRET@\e\134' >/dev/tty 2>/dev/null
    end
    if not builtin functions fish_prompt | builtin string match --quiet '*__kpty_user_prompt*'
        builtin functions --erase __kpty_user_prompt
        builtin functions --copy fish_prompt __kpty_user_prompt
        function fish_prompt
            __kpty_user_prompt
            builtin printf '\e]133;B;k=@SECRET@\e\134'
        end
    end
end

# fish has no continuation prompt: what it would not run stays in its editor, without a word. Where Enter is still its own,
# say so first. An empty line counts as not valid, with status 1; an older fish does not know the option, with status 2.
# Written into the binding, which must work when somebody erases all functions.
set --local __kpty_enter "
    if not builtin commandline --is-valid; and builtin string length --quiet -- (builtin commandline)
        builtin printf '\\e]133;P;k=@SECRET@\\e\\134' >/dev/tty 2>/dev/null
    end
    builtin commandline --function execute"
# Takes back what it kept. A key of our own, because a Ctrl-C is a signal: it overtakes the keys before it, and fish may
# be deaf to it while it works on them.
function __kpty_clear
    builtin commandline --replace ''
    builtin commandline --function repaint
end
for __kpty_mode in default insert
    builtin bind --mode $__kpty_mode \e\[990~ __kpty_clear
    builtin bind --mode $__kpty_mode \e\[991~ __kpty_clear
    # Text from a program comes as a paste: fish's own key for that counts again.
    builtin bind --user --erase --mode $__kpty_mode \e\[200~ 2>/dev/null
end

builtin commandline --is-valid 2>/dev/null
if builtin test $status -eq 1
    for __kpty_mode in default insert
        builtin bind --user --mode $__kpty_mode \r >/dev/null 2>&1
        or builtin bind --mode $__kpty_mode \r $__kpty_enter
    end
    builtin set --erase __kpty_mode
end

builtin printf '\e]133;F;k=@SECRET@\e\134\e]7;file://@SECRET@%s\e\134\e]133;D;0;k=@SECRET@\e\134' (builtin string replace --regex --all '[[:cntrl:]]' '?' -- $PWD | builtin string collect) >/dev/tty 2>/dev/null
