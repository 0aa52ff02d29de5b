"""A program as an agent that tells what it cost, as agents with a model do."""

from __future__ import annotations

from dataclasses import replace

from harness.agents.command import CommandAgent
from harness.ports import Execute, Job, Outcome, Tools


class CountingAgent(CommandAgent):
    """Every attempt costs ten cents, by one model, in a session of its own."""

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:
        outcome = await super().perform(job, tools, execute)
        told = {"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.1, "model": "m-1"}
        return replace(outcome, usage={**told, "session_id": f"s{job.attempt}"})
