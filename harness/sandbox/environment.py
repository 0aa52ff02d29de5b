"""What a child may see of the coordinator's environment: an allowlist, so that a new secret is hidden by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TERM",
        "TZ",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "COLUMNS",
        "LINES",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "NIX_SSL_CERT_FILE",
    }
)
_PREFIXES = ("LC_",)
# A leaked GIT_DIR redirects every git call of a child; what a step needs of these the harness sets itself.
_NEVER_PREFIXES = ("GIT_", "ORCHESTRIX_")


def inherited(parent: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """The allowed part of `parent`, and the names that the user passes on purpose (never GIT_* or ORCHESTRIX_*)."""
    wanted = _NAMES | {name for name in passed if not name.startswith(_NEVER_PREFIXES)}
    # Names first: `os.environ` decodes a value each time that it is looked at.
    return {name: parent[name] for name in sorted(parent) if name in wanted or name.startswith(_PREFIXES)}
