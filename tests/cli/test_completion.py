"""Shell completion: the scripts exist, and what they call answers."""

from __future__ import annotations

import pytest
from support.workbench import Workbench


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(bench: Workbench, shell: str) -> None:
    """It names the command and the variable that asks for completions."""
    script = bench.call("completion", shell).out
    assert "orchestrix" in script
    assert "_ORCHESTRIX_COMPLETE" in script


def test_an_unknown_shell_is_a_usage_error(bench: Workbench) -> None:
    """Exit 2, and the shells that there are."""
    answer = bench.call("completion", "tcsh")
    assert (answer.code, "bash, zsh, fish" in answer.err) == (2, True)


def test_the_shell_gets_commands_and_options(bench: Workbench) -> None:
    """What bash asks for `orchestrix st<TAB>` and `orchestrix run --s<TAB>`."""
    for words, found in (("orchestrix st", "status"), ("orchestrix run --st", "--strict-parent")):
        env = {"_ORCHESTRIX_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        process = bench.process(env=env)
        out, err = process.communicate()
        assert found in out.split(), (out, err)
