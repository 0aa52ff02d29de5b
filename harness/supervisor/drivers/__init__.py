"""The runtimes that walk a registry by the kernel's rules: a native loop, and LangGraph."""
