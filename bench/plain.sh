#!/usr/bin/env bash
# The job of a run with git alone: a worktree for each step, its command, a commit; then merges in order and removal.
# plain.sh REPO FOLDER STEP_COMMAND...
set -euo pipefail
repo=$1 folder=$2
shift 2
cd "$repo"
step=0
for command in "$@"; do
    git worktree add --quiet -b "plain/$step" "$folder/$step" HEAD
    (
        cd "$folder/$step"
        sh -c "$command"
        git add --all
        git commit --quiet --message "Step $step"
    )
    step=$((step + 1))
done
for ((merged = 0; merged < step; merged++)); do
    git merge --quiet --no-ff --message "Merge step $merged" "plain/$merged"
    git worktree remove "$folder/$merged"
    git branch --quiet --delete "plain/$merged"
done
