"""The benchmark of the intake, with few posts."""

import pytest

from benchmarks import intake


def test_each_size_of_posts_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(intake, "DEVICES", 2)
    monkeypatch.setattr(intake, "POSTS", 5)
    monkeypatch.setattr(intake, "SIZES", (3,))
    intake.main()
    assert "3 reports each" in capsys.readouterr().out
