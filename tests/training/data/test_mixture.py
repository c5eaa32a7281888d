"""Mixtures: how often each pair is drawn, over places and epochs, and what is left on disk."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.data.groups import GroupKey, GroupWriter, load_groups
from dragoman_training.data.joined import JoinedPairs
from dragoman_training.data.mixture import Group, Mixture
from dragoman_training.data.token_store import TokenStore
from support.corpora import store_of

WEIGHTS = st.floats(0.01, 5, allow_nan=False)


def group_of(count: int, weight: float, *, first: int = 0, joinable: bool = True) -> Group:
    return Group(np.arange(first, first + count), weight, joinable)


def epoch_of(mixture: Mixture, epoch: int) -> list[int]:
    """The pairs of a whole epoch, by place."""
    places = np.arange(len(mixture))
    return mixture.pairs(np.full(len(mixture), epoch), places).tolist()


def times_drawn(mixture: Mixture, epochs: int) -> Counter[int]:
    return Counter(pair for epoch in range(epochs) for pair in epoch_of(mixture, epoch))


@given(st.integers(20, 200), WEIGHTS, st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_over_epochs_every_pair_has_its_turn_as_often_as_it_weighs(
    count: int, weight: float, epochs: int, seed: int
) -> None:
    drawn = times_drawn(Mixture([group_of(count, weight)], seed), epochs)
    # An epoch has a whole number of examples, so a group may miss its weight by half an example.
    rounding = 0.5 * epochs / count
    for pair in range(count):
        assert abs(drawn[pair] - weight * epochs) < 1 + rounding + 1e-9


@given(st.integers(1, 50), WEIGHTS, st.integers(1, 30))
def test_no_pair_is_drawn_twice_as_often_as_another_but_for_one_time(
    count: int, weight: float, epochs: int
) -> None:
    drawn = times_drawn(Mixture([group_of(count, weight)], 1), epochs)
    times = [drawn[pair] for pair in range(count)]
    assert max(times) - min(times) <= 1


@given(st.lists(st.tuples(st.integers(1, 40), WEIGHTS, st.booleans()), min_size=1, max_size=6))
def test_an_epoch_has_each_group_as_often_as_it_weighs(
    wanted: list[tuple[int, float, bool]],
) -> None:
    groups, first = [], 0
    for count, weight, joinable in wanted:
        groups.append(group_of(count, weight, first=first, joinable=joinable))
        first += count
    mixture = Mixture(groups, 3)
    drawn = epoch_of(mixture, 7)
    assert len(drawn) == len(mixture) == sum(group.size for group in groups)
    joinable_pairs = {pair for group in groups if group.joinable for pair in group.pairs.tolist()}
    for group in groups:
        members = set(group.pairs.tolist())
        assert sum(pair in members for pair in drawn) == group.size
        assert abs(group.size - group.weight * len(members)) <= 0.5 or group.size == 1
    assert all((pair in joinable_pairs) == (n < mixture.joinable) for n, pair in enumerate(drawn))


def test_a_whole_weight_has_every_pair_so_often_in_each_epoch() -> None:
    mixture = Mixture([group_of(30, 3.0)], 1)
    for epoch in range(3):
        assert Counter(epoch_of(mixture, epoch)) == Counter(dict.fromkeys(range(30), 3))


def test_a_fraction_has_other_pairs_in_the_next_epoch_until_all_had_their_turn() -> None:
    mixture = Mixture([group_of(100, 0.25)], 1)
    epochs = [set(epoch_of(mixture, epoch)) for epoch in range(8)]
    assert all(len(epoch) == 25 for epoch in epochs)
    assert set.union(*epochs[:4]) == set(range(100))
    assert epochs[4:] == epochs[:4]
    assert len(epochs[0] & set(range(25))) < 20  # drawn at random, not in the order of the file


@pytest.mark.parametrize("weight", [0.01, 0.3, 0.5])
def test_a_group_too_small_for_its_weight_is_still_drawn(weight: float) -> None:
    """An epoch without examples would never end."""
    mixture = Mixture([group_of(1, weight)], 1)
    assert epoch_of(mixture, 0) == [0]
    few = Mixture([group_of(3, 0.1)], 1)
    assert {pair for epoch in range(3) for pair in epoch_of(few, epoch)} == {0, 1, 2}


def test_weightless_and_empty_groups_are_never_drawn() -> None:
    groups = [
        group_of(5, 0.0),
        group_of(0, 1.0),
        group_of(4, 1.0, first=5),
        group_of(5, 0.0, first=9),
    ]
    mixture = Mixture(groups, 1)
    assert sorted(epoch_of(mixture, 0)) == [5, 6, 7, 8]
    assert len(Mixture([], 1)) == 0


def test_the_seed_decides_and_places_can_be_asked_in_any_order() -> None:
    groups = [group_of(60, 0.4), group_of(60, 1.7, first=60)]
    mixture = Mixture(groups, 5)
    assert epoch_of(mixture, 2) == epoch_of(Mixture(groups, 5), 2)
    assert epoch_of(mixture, 2) != epoch_of(Mixture(groups, 6), 2)
    epochs, places = np.meshgrid(np.arange(4), np.arange(len(mixture)))
    mixed = np.random.default_rng(0).permutation(epochs.size)
    found = mixture.pairs(epochs.reshape(-1)[mixed], places.reshape(-1)[mixed])
    for pair, epoch, place in zip(
        found.tolist(), epochs.reshape(-1)[mixed], places.reshape(-1)[mixed], strict=True
    ):
        assert pair == epoch_of(mixture, int(epoch))[place]


@given(st.lists(st.tuples(st.sampled_from([0.5, 1.0, 2.0]), st.booleans()), max_size=60))
def test_groups_on_disk_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[float, bool]]
) -> None:
    directory = tmp_path_factory.mktemp("groups") / "groups"
    with GroupWriter(directory) as writer:
        for weight, joinable in keys:
            writer.add(GroupKey(weight, joinable))
    if not keys:
        assert json.loads((directory / "groups.json").read_text()) == []
        return
    groups = load_groups(directory)
    assert len(groups) == len(set(keys))
    for group in groups:
        expected = [n for n, key in enumerate(keys) if key == (group.weight, group.joinable)]
        assert group.pairs.tolist() == expected
    assert not (directory / "unsorted").exists()


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return store_of(tmp_path / "store", (([n] * 3, [n] * 2) for n in range(100)))


def test_joined_examples_are_made_of_joinable_pairs_only(store: TokenStore) -> None:
    groups = [group_of(50, 0.5, joinable=False), group_of(50, 0.6, first=50)]
    examples = JoinedPairs(
        store, share=2.0, most=3, max_tokens=40, seed=1, mixture=Mixture(groups, 1)
    )
    assert (len(examples), examples.joined) == (25 + 30 + 60, 60)
    for epoch in range(3):
        numbers = examples.draw(epoch, np.arange(len(examples)))
        plain = Counter(int(n) for n in numbers if n < len(store))
        assert sum(plain[n] for n in range(50)) == 25
        longer = [int(n) for n in numbers if n >= len(store)]
        assert len(longer) == 60
        members = {int(token) for n in longer for token in examples[n].source}
        assert members <= set(range(50, 100))
        # Members of an epoch are drawn among the pairs that this epoch has.
        assert members <= {n for n in plain if n >= 50}


def test_epochs_have_joined_examples_of_their_own(store: TokenStore) -> None:
    mixture = Mixture([group_of(100, 1.0)], 1)
    examples = JoinedPairs(store, share=0.5, most=3, max_tokens=40, seed=1, mixture=mixture)
    places = np.arange(len(examples))
    joined = [{n for n in examples.draw(e, places).tolist() if n >= 100} for e in range(2)]
    assert len(joined[0]) == len(joined[1]) == 50
    assert not joined[0] & joined[1]
