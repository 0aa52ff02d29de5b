"""Judge: success criteria as commands, and the agent's account against the facts."""
