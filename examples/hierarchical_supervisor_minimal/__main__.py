"""Run the example: `python -m examples.hierarchical_supervisor_minimal`."""

import asyncio

from examples.hierarchical_supervisor_minimal.main import main

asyncio.run(main())
