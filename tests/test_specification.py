"""Tests name points of the specification that are there, and each point is named by a test."""

from tests.specification import named_in, places_by_point, points, without_tests


def test_ids_lead_to_a_text() -> None:
    texts = points()
    assert {name: places for name, places in places_by_point().items() if name not in texts} == {}


def test_each_point_is_named_by_a_test() -> None:
    """A point that loses its last test is seen here; `without_tests` lists those that have none."""
    assert set(points()) - set(places_by_point()) == set(without_tests())


def test_a_range_names_each_point_in_it() -> None:
    assert list(named_in("# GO-09 … GO-11, K88-X1")) == ["GO-09", "GO-10", "GO-11", "K88-X1"]
