"""Every tool by its name: one literal table. Permissions and their reach are the broker's business."""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import ToolFailed
from harness.model.plan import ApplyPatch, DeleteFile, EditFile, MoveFile, WriteFile
from harness.tools import apply_patch, delegate, files, finish, patch, run, search, shell, synthesize
from harness.tools.tool import Reach, Tool, on_files


async def _run(arguments: run.Run, reach: Reach) -> str:
    return await run.run(arguments, reach.execute)


def _one_path(arguments: WriteFile | EditFile | DeleteFile) -> list[str]:
    return [arguments.path]


def _both_paths(arguments: MoveFile) -> list[str]:
    return [arguments.source, arguments.target]


def _patched_paths(arguments: ApplyPatch) -> list[str]:
    try:
        found = patch.parse(arguments.patch.encode())
    except ToolFailed:  # the tool itself says what is wrong with it
        return []
    return [path for each in found for path in (each.old, each.new) if path is not None]


TOOLS: Mapping[str, Tool] = {
    "read_file": Tool("Read a text file.", files.ReadFile, on_files(files.read_file)),
    "list_dir": Tool("List a directory; `.` is the root.", search.ListDir, on_files(search.list_dir)),
    "glob": Tool("Find files by a pattern such as src/**/*.py.", search.Glob, on_files(search.glob)),
    "grep": Tool("Search files with an extended regular expression.", search.Grep, search.grep),
    "write_file": Tool("Create or replace a file.", WriteFile, on_files(files.write_file), _one_path),
    "edit_file": Tool(
        "Replace one piece of text that stands in a file exactly once.", EditFile, on_files(files.edit_file), _one_path
    ),
    "delete_file": Tool("Delete a file.", DeleteFile, on_files(files.delete_file), _one_path),
    "move_file": Tool("Move a file.", MoveFile, on_files(files.move_file), _both_paths),
    "apply_patch": Tool(
        "Apply a unified diff, all of it or nothing.", ApplyPatch, on_files(apply_patch.apply_patch), _patched_paths
    ),
    "run": Tool("Run a command.", run.Run, _run),
    "shell": Tool("Run a shell command in the worktree.", shell.Shell, shell.shell),
    "git_diff": Tool("Show what has changed so far.", search.GitDiff, search.git_diff),
    "synthesize": Tool(
        "Combine files into one text that answers a question about them.",
        synthesize.Synthesize,
        synthesize.synthesize,
    ),
    "delegate": Tool(
        "Ask that this step be done in smaller steps instead. Ends your work.", delegate.Delegate, delegate.delegate
    ),
    "finish": Tool(
        "End your work with a short account. May be called together with the last edits.", finish.Finish, finish.finish
    ),
}
