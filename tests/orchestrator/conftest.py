from __future__ import annotations

from engine.conftest import bench

__all__ = ["bench"]
