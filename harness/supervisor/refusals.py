"""The one error of this package: a registry or a graph that cannot be what it says."""

from __future__ import annotations

from harness.errors import UsageError


class RegistryInvalid(UsageError, ValueError):
    """Raised while registering or building; also a ValueError, which is what the seed's library raised."""

    code = "registry_invalid"
