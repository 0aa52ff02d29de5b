"""From a goal to a finished run: pure routing over the log's state, and one node for each thing that can be next."""
