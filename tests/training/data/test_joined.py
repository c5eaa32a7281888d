"""Joined pairs: several sentence pairs as one longer example."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_training.data.batching import epoch_batches
from dragoman_training.data.joined import JoinedPairs
from dragoman_training.data.token_store import TokenStore
from dragoman_training.data.tokenizer import TokenizerSettings, train_tokenizer
from support.command import dragoman, start
from support.corpora import quiet, recipe_for, store_of
from support.tokenizers import SENTENCES, TRAINED
from support.training_runs import losses, train, wait_until, weights

MAX_TOKENS = 40
MOST = 5
FIRST = 999

Sides = tuple[tuple[int, ...], tuple[int, ...]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    """The source of pair n is ``FIRST`` and then n, as often as it is long; most are short."""
    rng = random.Random(0)

    def length(longest: int) -> int:
        return rng.randint(1, rng.randint(1, longest))

    pairs = [
        ([FIRST] + [n] * length(MAX_TOKENS - 2), [n] * length(MAX_TOKENS - 1)) for n in range(400)
    ]
    return store_of(tmp_path_factory.mktemp("joined") / "store", pairs)


def joined(store: TokenStore, **changes: Any) -> JoinedPairs:
    options: dict[str, Any] = {"share": 1.5, "most": MOST, "max_tokens": MAX_TOKENS, "seed": 4}
    return JoinedPairs(store, **{**options, **changes})


def sides(examples: JoinedPairs | TokenStore, index: int) -> Sides:
    pair = examples[index]
    return tuple(pair.source.tolist()), tuple(pair.target.tolist())


def members_of(pair: Sides) -> list[int]:
    """The numbers of the pairs that a joined one was made of."""
    source = pair[0]
    return [source[place + 1] for place, token in enumerate(source) if token == FIRST]


def test_the_pairs_of_the_store_come_first_and_unchanged(store: TokenStore) -> None:
    examples = joined(store)
    assert len(examples) == 400 + 600
    for index in range(400):
        assert sides(examples, index) == sides(store, index)


def test_lengths_are_those_of_the_examples(store: TokenStore) -> None:
    examples = joined(store)
    indices = np.random.default_rng(1).permutation(len(examples))
    expected = [tuple(map(len, sides(examples, int(index)))) for index in indices]
    assert [tuple(row) for row in examples.lengths(indices).tolist()] == expected
    assert examples.lengths(indices[:0]).shape == (0, 2)
    only_plain = np.arange(7)
    assert np.array_equal(examples.lengths(only_plain), store.lengths(only_plain))


@pytest.mark.parametrize("most", [2, MOST])
def test_a_joined_pair_is_whole_pairs_of_the_store_within_the_limit(
    store: TokenStore, most: int
) -> None:
    examples = joined(store, most=most)
    counts: Counter[int] = Counter()
    for index in range(400, len(examples)):
        pair = sides(examples, index)
        members = members_of(pair)
        source, target = (sum((sides(store, m)[side] for m in members), ()) for side in (0, 1))
        assert pair == (source, target)
        assert max(map(len, pair)) + 1 <= MAX_TOKENS
        counts[len(members)] += 1
    assert set(counts) <= set(range(1, most + 1))
    assert {1, 2, most} <= set(counts)


def test_with_room_there_are_at_least_two_members_and_each_number_as_often(
    store: TokenStore,
) -> None:
    examples = joined(store, share=5, max_tokens=10_000)
    counts = Counter(len(members_of(sides(examples, i))) for i in range(400, len(examples)))
    assert sorted(counts) == list(range(2, MOST + 1))
    for number in counts:
        assert counts[number] == pytest.approx(500, rel=0.15)


def test_members_are_drawn_from_the_whole_store(store: TokenStore) -> None:
    examples = joined(store, share=10, max_tokens=10_000)
    drawn = [members_of(sides(examples, i)) for i in range(400, len(examples))]
    times = Counter(member for members in drawn for member in members)
    assert len(times) == 400
    assert max(times.values()) < 6 * min(times.values())
    neighbours = sum(abs(a - b) <= 1 for m in drawn for a, b in pairwise(m))
    assert neighbours < 0.03 * len(drawn)


def test_the_seed_decides(store: TokenStore) -> None:
    def whole(**changes: Any) -> list[Sides]:
        examples = joined(store, **changes)
        return [sides(examples, index) for index in range(400, len(examples))]

    assert whole() == whole()
    other = whole(seed=5)
    assert sum(a == b for a, b in zip(whole(), other, strict=True)) < 30


def test_pairs_without_tokens_are_members_like_others(tmp_path: Path) -> None:
    """Text of nothing but invisible characters has none, on both sides."""
    examples = joined(store_of(tmp_path / "store", [([], [])] * 3 + [([4], [5, 6])]), share=20)
    for index in range(len(examples)):
        pair = sides(examples, index)
        assert examples.lengths(np.array([index])).tolist() == [[len(pair[0]), len(pair[1])]]
        assert 2 * len(pair[0]) == len(pair[1])


def test_an_epoch_has_every_example_once_within_the_budget(store: TokenStore) -> None:
    examples = joined(store)
    for epoch in (0, 2):
        batches = list(epoch_batches(examples, epoch, tokens=300, seed=2, window=128))
        # Joined examples are numbered on from epoch to epoch: each is made only once.
        joined_from = 400 + 600 * epoch
        expected = [*range(400), *range(joined_from, joined_from + 600)]
        assert sorted(np.concatenate(batches).tolist()) == expected
        for batch in batches:
            longest = max(max(map(len, sides(examples, int(i)))) for i in batch) + 1
            assert len(batch) * longest <= 300


WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()} | {"ßé", "→", "ho"})
TOKENIZERS = {
    **TRAINED,
    **{
        f"{kind} {normalization}": train_tokenizer(
            SENTENCES,
            TokenizerSettings(kind=kind, vocabulary=320, normalization=normalization),
            seed=1,
        )
        for kind in ("unigram", "bpe")
        for normalization in ("nmt_nfkc", "nfkc_cf")
    },
}


@pytest.mark.parametrize("name", TOKENIZERS)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
        | st.text(alphabet="the osu7é", min_size=1, max_size=12),
        min_size=2,
        max_size=4,
    )
)
@settings(max_examples=200)
def test_tokens_of_joined_texts_are_the_joined_tokens(name: str, texts: list[str]) -> None:
    """What lets joined pairs be made of stored tokens, with the text no longer at hand."""
    tokenizer = TOKENIZERS[name]
    apart = [token for text in texts for token in tokenizer.encode(text)]
    assert apart == tokenizer.encode(" ".join(texts))


RECIPE = """
seed = 3

[toy]
train = 300
valid = 20
test = 10

[tokenizer]
vocabulary = 300

[model]
preset = "tiny"
width = 32
encoder_layers = 1
decoder_layers = 1
max_length = 48

[data]
max_tokens = 40
joined = 0.5
joined_pairs = 3

[training]
max_steps = 40
batch_tokens = 256
warmup_steps = 10
log_every = 1

[validation]
every = 20
sentences = 5

[checkpoints]
every = 3
keep = 3
average = 3
"""


@pytest.mark.slow
def test_a_run_with_joined_pairs_goes_on_exactly(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    code, _, stderr = train(recipe, whole)
    assert code == 0, stderr
    assert "300 sentence pairs" in stderr
    assert "150 longer examples of several pairs joined" in stderr
    process = start("train", recipe, "--output", killed)
    assert wait_until(lambda: len(losses(killed)) >= 10, process)
    process.kill()
    process.communicate()
    assert len(losses(killed)) < 40
    assert train(recipe, killed)[0] == 0
    assert weights(killed) == weights(whole)
    assert losses(killed) == losses(whole)
    plain = tmp_path / "plain"
    code, _, stderr = train(recipe, plain, "data.joined=0", "training.max_steps=1")
    assert code == 0
    assert "longer examples" not in stderr
    assert losses(plain) != losses(whole)[:1]
    # The prepared data is the same, but a run goes on only with the examples it began with.
    code, _, stderr = train(recipe, killed, "data.joined=0.25")
    assert code == 2
    assert "holds a run with data.joined = 0.5, not 0.25" in stderr


def test_a_run_of_a_version_without_the_setting_goes_on(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("joined = 0.5\njoined_pairs = 3\n", ""))
    run = tmp_path / "run"
    assert train(recipe, run, "training.max_steps=3")[0] == 0
    stored = json.loads((run / "recipe.json").read_text())
    prepared = json.loads((run / "data" / "prepared.json").read_text())
    for key in ("joined", "joined_pairs", "directory"):
        del stored["data"][key], prepared["settings"]["data"][key]
    (run / "recipe.json").write_text(json.dumps(stored))
    (run / "data" / "prepared.json").write_text(json.dumps(prepared))
    code, _, stderr = train(recipe, run, "training.max_steps=5")
    assert code == 0, stderr
    assert "going on from step 3" in stderr
    stored["data"]["jioned"] = 1
    (run / "recipe.json").write_text(json.dumps(stored))
    code, _, stderr = dragoman("train", recipe, "--output", run)
    assert code == 2
    assert stderr == (
        f"dragoman: {run / 'recipe.json'}: data.jioned: unknown key; did you mean joined?\n"
    )


def test_prepared_data_does_not_depend_on_what_is_joined(
    tmp_path: Path, parallel_text: tuple[Path, Path]
) -> None:
    from dragoman_training.data.prepare import prepare

    prepare(recipe_for(*parallel_text), tmp_path / "data", quiet)
    before = (tmp_path / "data" / "prepared.json").stat().st_mtime_ns
    prepare(recipe_for(*parallel_text, data={"joined": 0.5}), tmp_path / "data", quiet)
    assert (tmp_path / "data" / "prepared.json").stat().st_mtime_ns == before
