"""Any agent that speaks the Agent Client Protocol over stdio, bound by the contract of its step."""
