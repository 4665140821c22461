import crc32c as package
import pytest

from interlog.base import crc32c


def test_it_is_the_packages_own() -> None:
    assert crc32c.crc32c(b"123456789") == 0xE3069283
    assert crc32c.crc32c(memoryview(b"6789"), crc32c.crc32c(b"12345")) == 0xE3069283


def test_where_the_compiled_part_is_elsewhere_the_package_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc32c, "find_spec", lambda name: None)
    assert crc32c._load() is package.crc32c
