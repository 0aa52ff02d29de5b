"""The roles in which nodes act; a routing decision names one."""

from __future__ import annotations

from typing import Final

PERFORM_TASK: Final = "AGENT_PERFORM_TASK"
ERROR_FALLBACK: Final = "AGENT_PERFORM_ERROR_FALLBACK"
PARENT: Final = "AGENT_PARENT"
