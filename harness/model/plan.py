"""The plan as its author wrote it: strict, frozen, every field named in the published schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, StringConstraints, model_validator

from harness.model import duration, limits

Text = Annotated[str, StringConstraints(max_length=limits.TEXT_CHARS, pattern=r"^[^\x00]*$")]
Title = Annotated[str, StringConstraints(min_length=1, max_length=limits.TITLE_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$")]
Word = Annotated[str, StringConstraints(min_length=1, max_length=limits.TEXT_CHARS, pattern=r"^[^\x00]+$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:*/-]{1,100}$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,200}$")]
# A list of arguments is run as it is; one string is run by `sh -c`, as its author wrote it.
Command = Annotated[list[Word], Field(min_length=1)] | Word
Milliseconds = Annotated[
    int,
    BeforeValidator(duration.parse_ms, json_schema_input_type=str | int | float),
    PlainSerializer(lambda ms: f"{ms}ms", return_type=str, when_used="json"),
]
Need = Annotated[int, Field(ge=0)] | Slug


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class WriteFile(_Part):
    """Create or replace a file."""

    path: Word
    content: Text = ""
    executable: bool = False


class EditFile(_Part):
    """Replace one exact, unique piece of text in a file."""

    path: Word
    old: Word
    new: Text


class DeleteFile(_Part):
    path: Word


class MoveFile(_Part):
    source: Word
    target: Word


class ApplyPatch(_Part):
    """Apply a unified diff."""

    patch: Word


class Action(_Part):
    """One thing that the `actions` agent does: exactly one key."""

    write_file: WriteFile | None = None
    edit_file: EditFile | None = None
    delete_file: DeleteFile | None = None
    move_file: MoveFile | None = None
    apply_patch: ApplyPatch | None = None
    run: Command | None = None

    @model_validator(mode="after")
    def _one_key(self) -> Action:
        if len(self.model_fields_set) != 1 or getattr(self, next(iter(self.model_fields_set))) is None:
            raise ValueError("an action has exactly one key: " + ", ".join(type(self).model_fields))
        return self

    @property
    def tool(self) -> str:
        return next(iter(self.model_fields_set))

    @property
    def arguments(self) -> dict[str, Any]:
        value = getattr(self, self.tool)
        return value.model_dump() if isinstance(value, BaseModel) else {"command": value}


class Check(_Part):
    """A check that may fail if it already fails on the base commit."""

    run: Command
    may_fail_on_base: bool = False


class Criterion(_Part):
    """A success criterion with the command that shows it."""

    text: Title
    check: Command


class _StepSettings(_Part):
    agent: Slug | None = None
    candidates: (
        Annotated[int, Field(ge=1, le=limits.CANDIDATES)]
        | Annotated[list[Slug], Field(min_length=2, max_length=limits.CANDIDATES)]
        | None
    ) = None
    budget: Annotated[float, Field(gt=0, le=limits.BUDGET_USD)] | None = None
    success_criteria: list[Title | Criterion] | None = None
    checks: list[Command | Check] | None = None
    allowed_tools: list[ToolName] | None = None
    timeout: Milliseconds | None = None
    inactivity_timeout: Milliseconds | None = None
    retries: Annotated[int, Field(ge=0, le=limits.RETRY_CEILING)] | None = None
    can_spawn_children: bool | None = None
    max_delegation_depth: Annotated[int, Field(ge=0, le=limits.DELEGATION_LEVELS)] | None = None
    env: dict[EnvName, Text] | None = None
    setup: list[Command] | Word | None = None
    allow_empty: bool | None = None
    decompose: Literal["never", "auto", "always"] | None = None


class Defaults(_StepSettings):
    """Values for steps that do not say otherwise; `env` is merged, everything else is replaced."""


class Step(_StepSettings):
    """One unit of work, done by one sub-agent in one worktree."""

    id: Slug | None = None
    title: Title
    description: Text = ""
    needs: list[Need] = []
    priority: Annotated[int, Field(ge=-limits.PRIORITY, le=limits.PRIORITY)] = 0
    owns: Annotated[list[Word], Field(min_length=1)] | None = None
    command: Annotated[list[Word], Field(min_length=1)] | None = None
    actions: Annotated[list[Action], Field(min_length=1)] | None = None
    steps: Annotated[list[Step], Field(min_length=1, max_length=limits.PLAN_STEPS)] | None = None


class Budget(_Part):
    """What the run may use at most; when one of them ends, the run stops and can be resumed with more."""

    tokens: Annotated[int, Field(ge=1)] | None = None
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    attempts: Annotated[int, Field(ge=1)] | None = None
    wall_time: Milliseconds | None = None
    max_depth: Annotated[int, Field(ge=0)] | None = None
    max_steps: Annotated[int, Field(ge=1)] | None = None
    max_reentry: Annotated[int, Field(ge=1)] | None = None

    def as_dict(self) -> dict[str, int | float]:
        """The budgets that are set, by the names that the log uses."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {_LOGGED.get(name, name): value for name, value in given.items() if value is not None}


_LOGGED = {"wall_time": "wall_ms"}


class Plan(_Part):
    """Ordered steps; their order is the merge order."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, title="Orchestrix plan", populate_by_name=True, defer_build=True
    )

    schema_: str | None = Field(default=None, alias="$schema")
    version: Literal[1] = 1
    goal: Text = ""
    base: Word | None = None
    defaults: Defaults = Defaults.model_construct()  # without a validator of its own, as the budget
    on_failure: Literal["continue", "stop"] = "continue"
    overlap: Literal["serialize", "refuse", "allow"] = "serialize"
    ownership_exceptions: bool = False
    budget: Budget = Budget.model_construct()
    steps: Annotated[list[Step], Field(min_length=1, max_length=limits.PLAN_STEPS)]
