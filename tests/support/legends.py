"""Where the legends of a picture are, once it is drawn."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def assert_legends_hide_nothing(figure: Figure, legends: int) -> None:
    """There are so many legends, and none lies over axes, a title or another legend."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    found = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None]
    assert len(found) == legends
    boxes = [legend.get_window_extent() for legend in found]
    titles = [
        title.get_window_extent()
        for axes in figure.axes
        for title in (axes.title, axes._left_title, axes.xaxis.label)  # type: ignore[attr-defined]
        if title.get_text()
    ]
    for box in boxes:
        for other in (*(axes.get_window_extent() for axes in figure.axes), *titles):
            # Lines that touch are rounded to pixels.
            assert not box.padded(-1).overlaps(other)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
