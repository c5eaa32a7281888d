"""No legend of a picture of a load lies over what it explains."""

from dragoman_cli.bench.plot import Tried, figure_of
from dragoman_cli.bench.statistics import Outcome, Statistics
from support.legends import assert_legends_hide_nothing


def test_no_legend_hides_anything() -> None:
    statistics = Statistics()
    for number in range(200):
        moment = number / 20
        took = 0.05 + number % 40 / 100
        first = moment + 0.02 if number % 2 else None
        error = ("UNAVAILABLE", "DRAINING") if number % 17 == 0 else None
        statistics.add(Outcome(moment, moment, moment + took, first, 1, 5, 5, error))
    tried = [Tried(10.0, 0.1, True), Tried(20.0, 0.4, False)]
    figure = figure_of(statistics, "a load", trials=tried, target=0.2)
    assert_legends_hide_nothing(figure, legends=3)
