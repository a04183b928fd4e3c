"""Digests inside the files that Tenfold writes for other compilers, so that damage is found before anything
parses them. A digest finds accidents; it does not say who wrote a file."""

from __future__ import annotations

import re

from tenfold.base.errors import FormatError

# MLIR's bytecode and IREE's flatbuffers keep a string as its bytes, so a digest can be filled in afterwards.
_MARK = b"tenfold-sha256:"
BLANK = (_MARK + b"0" * 64).decode()
_DIGEST = re.compile(_MARK + rb"(.{64})", re.DOTALL)


def sha256(data: bytes) -> bytes:
    import hashlib  # with OpenSSL behind it, too much for `import tenfold`

    return hashlib.sha256(data).digest()


def filled_in(data: bytes) -> bytes:
    """The data with its digest wherever it holds BLANK: IREE copies strings."""
    digest = sha256(data).hex().encode()
    return data.replace(BLANK.encode(), _MARK + digest)


def carried(data: bytes) -> set[bytes]:
    """The digests that data carries: one, if Tenfold wrote it, and nobody since."""
    return set(_DIGEST.findall(data))


def require_undamaged(data: bytes) -> None:
    """Refuse data whose digest is not the one that it carries. What carries none passes."""
    digest = carried(data)
    if digest and digest != {sha256(_DIGEST.sub(BLANK.encode(), data)).hex().encode()}:
        raise FormatError(
            "the file is damaged: its digest is not the one that was written into it",
            help="copy it again from where it was made, or export it again",
        )
