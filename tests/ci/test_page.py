"""The step summary is a table that stays one."""

from __future__ import annotations

from harness.ci import page
from harness.ci.result import Result
from harness.errors import PlanInvalid
from harness.model import events as ev
from tests.ci.stories import mixed, told
from tests.store import samples
from tests.store.samples import of

_MIXED = """\
## Orchestrix: run r1 failed

1 of 3 steps merged on orchestrix/r1/integration, from aaaaaaaaaaaa to cccccccccccc; exit code 1.

| step | title | outcome | reason | time | commit or kept work |
|---|---|---|---|---|---|
| 0 | a step | merged | merged | 5ms | cccccccccccc |
| 1 | &#124; &#60;img src=x&#62; &#91;l&#93;&#40;u&#41; | **failed** | agent&#95;failed&#58; two lines | 5ms | refs/orchestrix/keep/r1/1/x |
| 2 | a step | skipped | dependency&#95;failed&#58; step 2 needs step 1, which failed | 0ms |  |

"""


def test_the_page_is_a_table_and_data_stays_data():
    """Bars, tags, links and line ends of a title or message make no markup."""
    assert page.render(mixed(title="| <img src=x> [l](u)", message="two\nlines")) == _MIXED


def test_a_run_that_could_not_start_says_why():
    """The error and what to do about it."""
    assert page.render(Result(None, PlanInvalid("p.yaml:3: no `steps`", hint="write steps"))) == (
        "## Orchestrix: the run did not start\n\n"
        "**plan&#95;invalid**: p.yaml&#58;3&#58; no &#96;steps&#96; write steps\n\n"
    )


def test_a_large_run_fits_into_what_github_accepts():
    """A summary beyond one MiB would be refused whole; the rows that are left out are counted."""
    steps = [ev.SubagentCreated(**of(idx), title="<" * 200, step_id=None, contract={}) for idx in range(2000)]
    text = page.render(told([samples.run_created(2000), *steps]))
    assert len(text.encode()) < 1024 * 1024
    assert text.endswith(f"| | and {2000 - text.count('&#60;' * 200)} more | | | | |\n\n")
