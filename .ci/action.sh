#!/usr/bin/env bash
# The composite action's one step: installs the package into a private environment and calls `orchestrix ci`.
# Inputs arrive as INPUT_* variables. ORCHESTRIX_BIN names an installed `orchestrix` to use instead.
set -euo pipefail

refuse() { # status, message; the message never holds an input, so there is nothing to encode
  printf '::error title=orchestrix::%s\n' "$2"
  exit "$1"
}

install_package() {
  local python scratch
  python=$(command -v python3) || refuse 3 'python3 is not installed; use actions/setup-python with 3.11 or newer'
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    refuse 3 'Python 3.11 or newer is needed; use actions/setup-python'
  scratch=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/orchestrix-XXXXXXXX")
  "$python" -m venv "$scratch/venv" || refuse 3 'no virtual environment could be made'
  "$scratch/venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check "$1" >&2 ||
    refuse 3 'the package could not be installed'
  ORCHESTRIX_BIN=$scratch/venv/bin/orchestrix
}

arguments=(ci)
add() { if [[ -n $2 ]]; then arguments+=("$1=$2"); fi; }

[[ -n ${INPUT_PLAN:-} ]] || refuse 2 'the input plan is missing'
case ${INPUT_LAND:-false} in
  true) arguments+=(--land) ;;
  false) ;;
  *) refuse 2 'the input land is true or false' ;;
esac
add --base "${INPUT_BASE:-}"
add --into "${INPUT_INTO:-}"
add --jobs "${INPUT_JOBS:-}"
add --sandbox "${INPUT_SANDBOX:-}"
add --artifacts "${INPUT_ARTIFACTS:-${RUNNER_TEMP:-${TMPDIR:-/tmp}}/orchestrix-artifacts}"

if [[ -z ${ORCHESTRIX_BIN:-} ]]; then
  if [[ -z ${INPUT_VERSION:-} ]]; then
    install_package "${GITHUB_ACTION_PATH:?is set by the runner}"
  elif [[ $INPUT_VERSION =~ ^[0-9][0-9A-Za-z.+!]*$ ]]; then
    install_package "orchestrix-harness==$INPUT_VERSION"
  else
    refuse 2 'the input version is a version number'
  fi
fi

cd -- "${INPUT_WORKING_DIRECTORY:-.}" 2>/dev/null || refuse 2 'the input working-directory is not a directory'
exec "$ORCHESTRIX_BIN" "${arguments[@]}" -- "$INPUT_PLAN"
