"""From text to batches: filters, stores, order."""

import json
import tempfile
import tracemalloc
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.data.batch import Batch
from dragoman_training.data.batching import Permutation, Position, batches_from, epoch_batches
from dragoman_training.data.prepare import prepare
from dragoman_training.data.prepared import load_prepared
from dragoman_training.data.text.corpus import Pair
from dragoman_training.data.text.filters import DuplicateFinder, FilterReport
from dragoman_training.data.token_store import TokenPair, TokenStore, TokenStoreWriter
from dragoman_training.data.tokenizer import BEGIN, END, PAD
from dragoman_training.errors import CorpusError, RecipeError
from support.corpora import quiet, recipe_for, store_of


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 40, (3000, 2))
    pairs = [([5] * int(s), [6] * int(t)) for s, t in lengths]
    return store_of(tmp_path_factory.mktemp("data") / "store", pairs)


@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 1000))
def test_permutation_has_every_number_once(size: int, seed: int, epoch: int) -> None:
    values = Permutation(size, (seed, epoch))[0:size]
    assert sorted(values.tolist()) == list(range(size))


def test_permutations_are_random_and_differ_by_epoch() -> None:
    first, second = (Permutation(10_000, (1, epoch))[0:10_000] for epoch in (0, 1))
    assert abs(np.corrcoef(first, np.arange(10_000))[0, 1]) < 0.05
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.05


def test_permutation_is_the_same_in_pieces() -> None:
    permutation = Permutation(1000, (3,))
    pieces = [permutation[at : at + 7] for at in range(0, 1000, 7)]
    assert np.array_equal(np.concatenate(pieces), permutation[0:1000])


@pytest.mark.parametrize("window", [100, 1 << 17])
def test_an_epoch_has_every_pair_once_within_the_budget(store: TokenStore, window: int) -> None:
    batches = list(epoch_batches(store, 2, tokens=400, seed=9, window=window))
    seen = np.concatenate(batches)
    assert sorted(seen.tolist()) == list(range(len(store)))
    for batch in batches:
        assert len(batch) * (store.lengths(batch).max() + 1) <= 400


def test_order_is_a_function_of_seed_and_epoch(store: TokenStore) -> None:
    def order(epoch: int, seed: int) -> list[list[int]]:
        return [b.tolist() for b in epoch_batches(store, epoch, tokens=400, seed=seed)]

    assert order(1, 5) == order(1, 5)
    assert order(1, 5) != order(2, 5)
    assert order(1, 5) != order(1, 6)


def test_little_is_padded(store: TokenStore) -> None:
    real = padded = 0
    for batch in epoch_batches(store, 0, tokens=400, seed=1):
        lengths = store.lengths(batch) + 1
        real += int(lengths.sum())
        padded += int(lengths.max(axis=0).sum()) * len(batch)
    assert real / padded > 0.85


def test_batches_go_on_from_any_position(store: TokenStore) -> None:
    def take(position: Position, count: int) -> list[tuple[list[int], Position]]:
        source = batches_from(store, position, tokens=400, seed=3)
        return [(batch.tolist(), after) for batch, after in islice(source, count)]

    whole = take(Position(), 500)
    assert whole[-1][1].epoch >= 2
    for at in (0, 1, 17, 120, 299, 498):
        assert take(whole[at][1], 499 - at) == whole[at + 1 :]


def test_a_batch_has_its_special_tokens_in_place() -> None:
    import torch

    pairs = [TokenPair(np.array([7, 8]), np.array([9])), TokenPair(np.array([7]), np.array([9, 5]))]
    batch = Batch.of(pairs, torch.device("cpu"))
    assert batch.source_BS.tolist() == [[7, 8, END], [7, END, PAD]]
    assert batch.input_BT.tolist() == [[BEGIN, 9, PAD], [BEGIN, 9, 5]]
    assert batch.label_BT.tolist() == [[9, END, PAD], [9, 5, END]]
    assert batch.source_lengths_B.tolist() == [3, 2]
    assert batch.target_lengths_B.tolist() == [2, 3]


@given(st.lists(st.tuples(*[st.lists(st.integers(0, 999), max_size=5)] * 2), max_size=20))
def test_a_store_gives_back_what_it_was_given(pairs: list[tuple[list[int], list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = store_of(Path(directory) / "store", pairs)
        assert len(store) == len(pairs)
        for index, (source, target) in enumerate(pairs):
            assert store[index].source.tolist() == source
            assert store[index].target.tolist() == target
        assert store.tokens == (sum(len(s) for s, _ in pairs), sum(len(t) for _, t in pairs))


def test_large_vocabularies_fit(tmp_path: Path) -> None:
    with TokenStoreWriter(tmp_path / "store", vocabulary=70_000) as writer:
        writer.add([69_999], [65_536])
    assert TokenStore(tmp_path / "store")[0].source.tolist() == [69_999]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcdef"))), st.integers(1, 9))
def test_duplicates_are_those_that_came_before(
    pairs: list[tuple[str, str]], at_a_time: int
) -> None:
    seen: set[tuple[str, str]] = set()
    expected = []
    with tempfile.TemporaryFile() as file:
        finder = DuplicateFinder(file)
        for pair in pairs:
            finder.add(Pair(*pair))
            expected.append(pair in seen)
            seen.add(pair)
        assert finder.find(at_a_time).tolist() == expected


def test_filters_report_what_was_dropped_and_why(
    tmp_path: Path, parallel_text: tuple[Path, Path]
) -> None:
    source, target = parallel_text
    with source.open("a") as left, target.open("a") as right:
        left.write("new one\nnew one\nnew one\n\n  \nsol\n" + "sol " * 90 + "\nsol")
        right.write("um novo\num novo\nnovo\nmar\nmar\n\n" + "mar " * 90 + "\n" + "mar " * 40)
    recipe = recipe_for(source, target, data={"max_tokens": 60, "max_ratio": 8.0})
    prepare(recipe, tmp_path / "data", quiet)
    data = load_prepared(tmp_path / "data")
    report = FilterReport(**data.provenance["report"])
    assert report.read == 308
    assert (report.empty, report.too_long, report.ratio) == (3, 1, 1)
    assert report.duplicate >= 1
    assert report.kept == len(data.train)
    (valid,) = data.valid
    assert len(valid.store) == len(valid.sources) == 308  # nothing of it is filtered
    assert [f["bytes"] for f in data.provenance["files"]][:1] == [source.stat().st_size]


def test_stored_ids_are_those_of_the_text(tmp_path: Path, parallel_text: tuple[Path, Path]) -> None:
    recipe = recipe_for(*parallel_text, data={"remove_duplicates": False})
    prepare(recipe, tmp_path / "data", quiet)
    data = load_prepared(tmp_path / "data")
    lines = parallel_text[1].read_text().splitlines()
    assert [data.tokenizers.target.decode(data.train[i].target) for i in range(300)] == lines


@pytest.mark.parametrize("joint", [True, False])
def test_tokenizers_are_joint_or_one_per_language(
    tmp_path: Path, parallel_text: tuple[Path, Path], joint: bool
) -> None:
    recipe = recipe_for(
        *parallel_text,
        tokenizer={"joint": joint},
        model={"tied_embeddings": "all" if joint else "target"},
    )
    prepare(recipe, tmp_path / "data", quiet)
    tokenizers = load_prepared(tmp_path / "data").tokenizers
    assert tokenizers.joint == joint
    shouted = tokenizers.source.encode("CASA")
    assert (len(shouted) < 4) == joint  # the source side alone has never seen capitals


def test_prepared_data_is_reused_and_guarded(
    tmp_path: Path, parallel_text: tuple[Path, Path]
) -> None:
    recipe = recipe_for(*parallel_text)
    directory = tmp_path / "data"
    prepare(recipe, directory, quiet)
    before = (directory / "prepared.json").stat().st_mtime_ns
    prepare(recipe, directory, quiet)
    assert (directory / "prepared.json").stat().st_mtime_ns == before
    with pytest.raises(RecipeError, match="other settings"):
        prepare(recipe_for(*parallel_text, data={"max_ratio": 2.0}), directory, quiet)
    parallel_text[0].write_text(parallel_text[0].read_text().replace("casa", "asac"))
    with pytest.raises(CorpusError, match="is not the file"):
        prepare(recipe, directory, quiet)
    parallel_text[0].unlink()
    prepare(recipe, directory, quiet)  # a run can go on without its corpus


def test_nothing_left_to_train_on(tmp_path: Path, parallel_text: tuple[Path, Path]) -> None:
    recipe = recipe_for(*parallel_text, data={"max_tokens": 2})
    with pytest.raises(CorpusError, match="no sentence pair is left"):
        prepare(recipe, tmp_path / "out" / "data", quiet)
    assert not (tmp_path / "out").exists()


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(pairs: int) -> int:
        tracemalloc.start()
        store = store_of(tmp_path / str(pairs), (([7] * 20, [8] * 20) for _ in range(pairs)))
        for _ in epoch_batches(store, 0, tokens=4000, seed=1, window=1000):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(40_000) < 1.5 * peak(5_000)


def test_report_is_plain_json(tmp_path: Path, parallel_text: tuple[Path, Path]) -> None:
    prepare(recipe_for(*parallel_text), tmp_path / "data", quiet)
    meta = json.loads((tmp_path / "data" / "prepared.json").read_text())
    assert meta["report"].keys() == asdict(FilterReport()).keys()
