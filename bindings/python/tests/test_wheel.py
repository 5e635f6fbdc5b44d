"""What a wheel holds: its licences, and a library without symbols."""

import sys
from importlib import metadata

import pytest


@pytest.fixture
def files():
    try:
        return metadata.files("memplan") or []
    except metadata.PackageNotFoundError:
        pytest.skip("memplan is not installed from a wheel")


def test_a_wheel_has_its_licences(files):
    assert {"LICENSE-APACHE", "LICENSE-MIT"} <= {file.name for file in files}


@pytest.mark.skipif(sys.platform != "linux", reason="the sections of ELF are looked for")
def test_the_library_has_no_symbols(files):
    (library,) = [file for file in files if file.name.startswith("_native") and file.suffix == ".so"]
    assert b".symtab\0" not in library.locate().read_bytes()
