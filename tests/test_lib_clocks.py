"""Which clock took a time."""

from lib import step_time
from lib.clocks import MEANING, Clock, one_decode_step


def test_each_clock_has_its_meaning() -> None:
    assert MEANING.keys() == set(Clock)
    assert len(set(MEANING.values())) == len(Clock)
    assert all(MEANING.values())


def test_the_same_decode_step_by_three_clocks_and_the_term_it_is_confused_with() -> None:
    client, engine, fit, fixed = one_decode_step()
    assert [reading.clock for reading in (client, engine, fit, fixed)] == [
        Clock.CLIENT,
        Clock.ENGINE,
        Clock.FIT,
        Clock.FIT,
    ]
    assert [round(reading.seconds * 1e3, 9) for reading in (client, engine, fixed)] == [26.53, 26.26, 26.22]
    assert round(fit.seconds * 1e9) == step_time.FIT(step_time.step_plan((1, 2048)))


def test_no_two_readings_are_told_in_the_same_words() -> None:
    told = [reading.covers for reading in one_decode_step()]
    assert all(told)
    assert len(set(told)) == len(told)


def test_the_client_waits_longer_than_the_engine_works_and_a_step_takes_more_than_its_fixed_part() -> None:
    client, engine, fit, fixed = (reading.seconds for reading in one_decode_step())
    assert client > engine
    assert fit > fixed
