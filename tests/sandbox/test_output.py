"""Head, marker, tail: exact for every size."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.output import Transcript


@given(
    chunks=st.lists(st.binary(max_size=30), max_size=20),
    head=st.integers(0, 40),
    tail=st.integers(1, 40),
    before=st.binary(max_size=10),
)
def test_a_log_is_the_output_or_its_two_ends(chunks, head, tail, before) -> None:
    """However the output is cut into pieces, the same bytes stay, behind what was there before."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log")
        path.write_bytes(before)
        transcript = Transcript(path, head, tail)
        for chunk in chunks:
            transcript.write(chunk)
        transcript.close()
        whole = b"".join(chunks)
        if len(whole) > head + tail:
            marker = f"\n[... {len(whole) - head - tail} bytes left out ...]\n".encode()
            whole = whole[:head] + marker + whole[-tail:]
        assert path.read_bytes() == before + whole
        assert transcript.truncated == (b"bytes left out" in whole)
