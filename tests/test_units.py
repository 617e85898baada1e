"""Text quantities: every prefix and unit, exact values, refusals, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.strategies  # noqa: F401 - loads the profile of the property tests
from rooflinekit.errors import RooflineError, UnitError
from rooflinekit.units import BINARY_EXPONENT, EXAMPLES, PREFIX_EXPONENT, SMALL_EXPONENT, parse, render

PREFIXED = [unit for unit in EXAMPLES if unit not in ("", "s")]


@pytest.mark.parametrize("unit", PREFIXED)
@pytest.mark.parametrize(
    ("prefix", "factor"),
    [("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)],
)
def test_decimal_prefixes_are_exact(unit, prefix, factor):
    """A prefix is a power of ten, applied without rounding."""
    assert parse(f"3 {prefix}{unit}", unit) == 3 * factor
    assert parse(f"0.7 {prefix}{unit}", unit) == float(f"0.7e{len(str(int(factor))) - 1}")


@pytest.mark.parametrize(
    ("prefix", "literal"), [("", 20.0), ("m", 20e-3), ("u", 20e-6), ("µ", 20e-6), ("n", 20e-9)]
)
def test_times_take_small_prefixes_exactly(prefix, literal):
    """``20 us`` is the float 2e-05 itself, not a product that is off in the last bit."""
    assert parse(f"20 {prefix}s", "s") == literal


@pytest.mark.parametrize(("prefix", "power"), [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)])
@pytest.mark.parametrize("unit", ["B", "B/s"])
def test_binary_prefixes_are_powers_of_two(prefix, power, unit):
    """GiB is 2^30 bytes, GB 1e9: vendors print both."""
    assert parse(f"80 {prefix}{unit}", unit) == 80 * 2**power


def test_every_prefix_of_the_tables_is_tested_here():
    """A new prefix must come with its exact value in this file."""
    assert set(PREFIX_EXPONENT) == {"", "k", "K", "M", "G", "T", "P", "E"}
    assert set(SMALL_EXPONENT) == {"", "m", "u", "\u00b5", "\u03bc", "n"}
    assert set(BINARY_EXPONENT) == {"Ki", "Mi", "Gi", "Ti"}


@pytest.mark.parametrize("unit", EXAMPLES)
def test_the_examples_of_the_messages_can_be_read(unit):
    """An error message never recommends a form that is itself refused."""
    assert parse(EXAMPLES[unit], unit) > 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1979 TOPS", 1979e12),
        ("5 TOP/s", 5e12),
        ("989.4 TFLOPs/s", 989.4e12),
        ("1_000 GFLOP/s", 1e12),
        ("7 OP/s", 7.0),
    ],
)
def test_rates_are_read_as_vendors_print_them(text, value):
    """Integer rates are printed as TOPS and mean operations per second."""
    assert parse(text, "FLOP/s") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("  3.35   TB/s ", 3.35e12), ("3.35TB/s", 3.35e12), ("+3.35e0 TB/s", 3.35e12), (".5 TB/s", 5e11)],
)
def test_spacing_and_sign_do_not_matter(text, value):
    """A quantity is read the same however it is spaced."""
    assert parse(text, "B/s") == value


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", "B"),
        ("fast", "B/s"),
        ("nan GB", "B"),
        ("inf GB/s", "B/s"),
        ("3.35e12", "B/s"),
        ("3.35 TB", "B/s"),
        ("3.35 TB/s", "B"),
        ("3.35 Tb/s", "B/s"),
        ("3.35 tB/s", "B/s"),
        ("3 XB", "B"),
        ("3 GiHz", "Hz"),
        ("3 TiFLOP/s", "FLOP/s"),
        ("20 Ms", "s"),
        ("20 min", "s"),
        ("989 TFLOPS", "FLOP/s"),
        ("989 TFLOP", "FLOP/s"),
        ("989 TTOPS", "FLOP/s"),
        ("1.2.3 GB", "B"),
        ("0x10 GB", "B"),
        ("3 G B", "B"),
        ("1e3.5 B", "B"),
        ("0.9 x", ""),
        ("90 %", ""),
    ],
)
def test_what_is_not_that_quantity_is_refused(text, unit):
    """A wrong unit, prefix or number is one sentence that shows how to write it."""
    with pytest.raises(UnitError) as caught:
        parse(text, unit)
    assert isinstance(caught.value, RooflineError)
    assert EXAMPLES[unit] in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    value=st.floats(1e-9, 1e17).filter(lambda v: v > 0),
    unit=st.sampled_from(sorted(EXAMPLES)),
    digits=st.integers(3, 12),
)
def test_what_is_rendered_can_be_read_back(value, unit, digits):
    """Text made for people keeps the digits it shows (times always show three)."""
    shown = 3 if unit == "s" else digits
    assert parse(render(value, unit, digits), unit) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - shown))


@given(value=st.floats(1.0, 9.9e16), unit=st.sampled_from(PREFIXED))
def test_the_rendered_number_is_between_one_and_a_thousand(value, unit):
    """The prefix is chosen so that nobody counts zeros."""
    number = render(value, unit).split()[0]
    assert 1.0 <= float(number) < 1000.0


@given(value=st.floats(1e-9, 999.0))
def test_rendered_times_are_between_one_and_a_thousand(value):
    """The same for seconds, down to nanoseconds."""
    assert 1.0 <= float(render(value, "s").split()[0]) < 1000.0


@pytest.mark.parametrize("unit", ["B", "s", "FLOP/s", ""])
def test_zero_is_zero(unit):
    """Zero has no prefix."""
    assert render(0.0, unit).split()[0] == "0"


@pytest.mark.parametrize(("value", "unit"), [(999.7e9, "B/s"), (999.9e-6, "s"), (999.6, "B")])
def test_just_below_a_prefix_is_still_at_least_one(value, unit):
    """The last half per mille before a prefix is shown as the rounded one, not as 0.9997."""
    assert 1.0 <= float(render(value, unit).split()[0]) < 1000.0


@pytest.mark.parametrize("text", ["20 \u03bcs", "20 \u00b5s"])
def test_both_characters_for_micro_are_read(text):
    """The micro sign and the Greek letter look the same; keyboards give either."""
    assert parse(text, "s") == 2e-05


@pytest.mark.parametrize("text", ["1e400 GB", "9e308 GB"])
def test_a_number_past_the_floats_is_refused(text):
    """An overflow would become infinity, which no formula survives."""
    with pytest.raises(UnitError):
        parse(text, "B")
