"""The description of the ABI says what the library itself says."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tenfold.base.errors import FormatError
from tenfold.capi.describe import HEADER, read_enums, read_header
from tests.capi.bridge import library

ENUMS = {each.name: each for each in read_enums(HEADER.read_text(encoding="utf-8"))}


def test_every_constant_of_the_header_is_described() -> None:
    assert sorted(ENUMS) == [
        *("tn_device", "tn_dtype", "tn_layout", "tn_memory_format", "tn_scalar", "tn_status", "tn_tag")
    ]
    described = read_header(HEADER.read_text(encoding="utf-8")).as_json()["enums"]
    assert described == [asdict(each) for each in ENUMS.values()]
    assert {"name": "TN_ERROR_INDEX", "value": 2, "doc": "an index or a dimension is out of range"} in [
        each for enum in described for each in enum["constants"]
    ]


def test_errors_and_element_types_have_the_names_that_the_library_gives_them() -> None:
    for constant in ENUMS["tn_status"].constants:
        assert library().tn_error_name(constant.value).decode() == constant.name
    for word, number in ENUMS["tn_dtype"].words.items():
        assert library().tn_dtype_name(number).decode().lower() == word


def test_an_enum_without_its_type_is_refused() -> None:
    with pytest.raises(FormatError, match="does not follow the type"):
        read_enums("typedef int32_t tn_kind;\nenum { TN_A = 0 };\n\nenum { TN_B = 1 };\n")
