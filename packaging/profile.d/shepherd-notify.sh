# Shows Shepherd's warnings in a text login. A graphical login has notifications instead. Login shells read this file.
if [ -t 1 ] && [ -z "${TMUX:-}${STY:-}" ] && command -v shepherd-notify >/dev/null 2>&1; then
    if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || [ -n "${SSH_TTY:-}" ]; then
        # In a shell of its own, so that it is no job of this one.
        (shepherd-notify --terminal </dev/null >/dev/null 2>&1 &)
    fi
fi
