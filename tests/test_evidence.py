"""Kinds of evidence: which is weakest."""

from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.evidence import STRENGTH, weakest

ORDER = ["assumed", "datasheet", "fitted", "measured"]


def test_the_order_runs_from_assumed_to_measured():
    """The four kinds stand in the order that the documentation gives."""
    assert sorted(STRENGTH, key=STRENGTH.__getitem__) == ORDER


@given(st.lists(st.sampled_from(ORDER), min_size=1))
def test_the_weakest_is_the_first_in_the_order(kinds):
    """A chain of numbers is as good as its worst link."""
    assert weakest(kinds) == min(kinds, key=ORDER.index)


def test_no_evidence_needed_is_measured():
    """A result that uses no cited number is not weakened by one."""
    assert weakest([]) == "measured"
