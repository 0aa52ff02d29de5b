#!/bin/sh
# Stands in for git: counts its calls in $FAULT_DIR and puts strace before one of them, or records all of them.
printf x >> "$FAULT_DIR/calls"
call=$(wc -c < "$FAULT_DIR/calls")
if [ "$FAULT_CALL" = all ]; then
    exec strace -f -y -qq -s 1 -o "$FAULT_DIR/$call.trace" -e "trace=$FAULT_SYSCALLS" "$REAL_GIT" "$@"
elif [ "$FAULT_CALL" = "$call" ]; then
    exec strace -f -y -qq -s 1 -o "$FAULT_DIR/hit" -e "trace=$FAULT_SYSCALLS" -e "inject=$FAULT_INJECTION" "$REAL_GIT" "$@"
fi
exec "$REAL_GIT" "$@"
