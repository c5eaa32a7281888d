"""What is done about a translation that is not good enough."""

import pytest

from dragoman_server.engine.core import Answer, Finish, Hypothesis, Options, Sampling, Ticket
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.mending import (
    Mender,
    Retry,
    TranslatedPart,
    Way,
    options_for,
)
from dragoman_server.text.faults import examiner_for
from dragoman_server.text.masks import MaskSet
from dragoman_server.text.plan import Part, Planner, PlanOptions
from dragoman_server.text.vocabulary import Vocabulary
from dragoman_training.data.tokenizer import TokenizerSettings, train_tokenizer

SENTENCES = [
    "The house cost 350 dollars and 1,250.50 euros in 2024.",
    "A casa custou 350 dólares e 1.250,50 euros em 2024.",
    "Write to me at once, or call Monday: abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "Escreva para mim já, ou ligue na segunda-feira: çãõéêíóúâôà",
] * 20


@pytest.fixture(scope="module")
def pieces() -> Vocabulary:
    settings = TokenizerSettings(kind="bpe", vocabulary=380, placeholders=9, split_digits=True)
    return Vocabulary(train_tokenizer(SENTENCES, settings, seed=1).model)


def planner(pieces: Vocabulary, placeholders: int = 9) -> Planner:
    return Planner(pieces, "en", 200, masks=MaskSet.placeholders(placeholders))


class Judge:
    """One text of one part, and translations of it that a model might give."""

    def __init__(
        self, pieces: Vocabulary, text: str, *, placeholders: int = 9, **rest: bool
    ) -> None:
        self.pieces = pieces
        self.planner = planner(pieces, placeholders)
        (self.part,) = self.planner.plan(text, PlanOptions())
        detokenizer = Detokenizer(pieces, pieces)
        self.mender = Mender(text, self.planner, examiner_for("en", "pt"), detokenizer, **rest)

    def __call__(
        self,
        *translations: str,
        way: Way = Way.FIRST,
        finish: Finish = Finish.END,
        part: Part | None = None,
        instead: TranslatedPart | None = None,
    ) -> TranslatedPart | Retry:
        hypotheses = []
        for text in translations:
            ids = self.pieces.encode(text)
            log_probs = (-0.1,) * (len(ids) + 1)
            hypotheses.append(Hypothesis(ids, sum(log_probs), -0.1, finish, log_probs))
        answer = Answer(Ticket(0, 0), tuple(hypotheses))
        return self.mender.judge(part or self.part, answer, way, instead)


def text_of(judged: TranslatedPart | Retry) -> str:
    assert isinstance(judged, TranslatedPart)
    return judged.text


def retry_of(judged: TranslatedPart | Retry) -> Retry:
    assert isinstance(judged, Retry)
    return judged


def test_a_good_translation_is_taken(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house cost 350 dollars.")
    assert text_of(judge("A casa custou 350 dólares.")) == "A casa custou 350 dólares."


@pytest.mark.parametrize(("bad", "reason"), [("", "empty"), ("casa casa casa casa", "loop")])
def test_what_is_empty_or_loops_is_searched_for_again(
    pieces: Vocabulary, bad: str, reason: str
) -> None:
    judge = Judge(pieces, "The house.")
    retry = retry_of(judge(bad))
    assert (list(retry.parts), retry.way, retry.reason) == ([judge.part], Way.CAREFUL, reason)
    assert text_of(judge(bad, "A casa.", way=Way.CAREFUL)) == "A casa."


def test_what_stays_empty_is_the_source(pieces: Vocabulary) -> None:
    assert text_of(Judge(pieces, "Monday")("", ".", way=Way.CAREFUL)) == "Monday"


def test_what_still_loops_is_cut(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house.")
    assert text_of(judge("A casa casa casa casa", way=Way.CAREFUL)) == "A casa"


def test_the_hypothesis_without_a_fault_is_the_first_of_the_answer(pieces: Vocabulary) -> None:
    done = Judge(pieces, "The house.")("", "A casa.", "casa", way=Way.CAREFUL)
    assert isinstance(done, TranslatedPart)
    shown = [pieces.decode(hypothesis.ids) for hypothesis in done.answer.hypotheses]
    assert shown == ["A casa.", "", "casa"]


def test_other_numbers_are_masked_and_written_the_target_s_way(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house cost 1,250.50 euros in 2024.")
    retry = retry_of(judge("A casa custou 125 euros em 2024."))
    (part,) = retry.parts
    assert (retry.way, retry.reason) == (Way.NUMBERS, "numbers")
    assert part.masked.source == "The house cost ⟨1⟩ euros in ⟨2⟩."
    assert pieces.decode(part.ids) == part.masked.source
    again = judge("Em ⟨2⟩ a casa custou ⟨1⟩ euros.", way=Way.NUMBERS, part=part)
    assert text_of(again) == "Em 2024 a casa custou 1.250,50 euros."


@pytest.mark.parametrize("lost", ["A casa custou dólares.", "A casa ⟨1⟩ custou ⟨1⟩ dólares."])
def test_one_wrong_number_is_replaced_where_masking_it_does_not_help(
    pieces: Vocabulary, lost: str
) -> None:
    judge = Judge(pieces, "The house cost 1,350.50 dollars.")
    retry = retry_of(judge("A casa custou 1.35 dólares."))
    again = judge(lost, way=Way.NUMBERS, part=retry.parts[0], instead=retry.instead)
    assert text_of(again) == "A casa custou 1.350,50 dólares."


def test_several_numbers_that_are_lost_are_kept_in_pieces(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house cost 350 dollars in 2024.")
    retry = retry_of(judge("A casa custou 35 dólares em 204."))
    assert retry.instead is None
    retry = retry_of(judge("A casa custou dólares.", way=Way.NUMBERS, part=retry.parts[0]))
    assert retry.way is Way.AROUND
    assert [p.masked.source for p in retry.parts] == ["The house cost", "dollars in"]


def test_a_model_without_placeholders_looks_for_the_numbers_in_a_wider_search(
    pieces: Vocabulary,
) -> None:
    judge = Judge(pieces, "The house cost 350 dollars.", placeholders=0)
    retry = retry_of(judge("A casa custou 35 dólares."))
    assert retry.way is Way.CAREFUL
    found = judge("Custou 35 dólares.", "Custou 350 dólares.", way=Way.CAREFUL)
    assert text_of(found) == "Custou 350 dólares."
    assert text_of(judge("Custou 35 dólares.", way=Way.CAREFUL)) == "Custou 35 dólares."


def test_an_address_is_behind_a_placeholder_too(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "Write to a@b.example or call.")
    assert judge.part.masked.source == "Write to ⟨1⟩ or call."
    assert text_of(judge("Escreva para ⟨1⟩ ou ligue.")) == "Escreva para a@b.example ou ligue."
    retry = retry_of(judge("Escreva ou ligue."))
    assert (retry.way, retry.reason) == (Way.CAREFUL, "masks")
    assert retry_of(judge("Escreva.", way=Way.CAREFUL)).way is Way.AROUND


def test_a_sign_that_the_vocabulary_can_not_spell_is_behind_a_placeholder(
    pieces: Vocabulary,
) -> None:
    judge = Judge(pieces, "The house cost ₿20 and I ❤ it.")
    assert judge.part.masked.source == "The house cost ⟨1⟩20 and I ⟨2⟩ it."
    assert text_of(judge("A casa custou ⟨1⟩20 e eu ⟨2⟩ isso.")) == "A casa custou ₿20 e eu ❤ isso."


def test_a_placeholder_in_the_text_itself_comes_back(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "Write to ⟨1⟩ or call a@b.example at once.")
    assert judge.part.masked.source == "Write to ⟨2⟩ or call ⟨3⟩ at once."
    assert text_of(judge("Ligue ⟨3⟩ ou escreva para ⟨2⟩ já.")) == (
        "Ligue a@b.example ou escreva para ⟨1⟩ já."
    )


def test_numbers_and_addresses_are_masked_together(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "Call 350 or write to a@b.example.")
    (part,) = retry_of(judge("Ligue 35 ou escreva para ⟨1⟩.")).parts
    assert part.masked.source == "Call ⟨1⟩ or write to ⟨2⟩."


def test_more_numbers_than_placeholders_stay_as_the_model_wrote_them(pieces: Vocabulary) -> None:
    text = "a 10 12 13 14 15 20 21 23 24 25 b"
    bad = "a 1 b"
    assert text_of(Judge(pieces, text)(bad)) == bad


def test_what_was_to_be_short_is_short(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house.", limited=True)
    assert text_of(judge("", finish=Finish.LENGTH)) == ""
    assert retry_of(judge("")).way is Way.CAREFUL


def test_who_wants_what_the_model_wrote_gets_it(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house cost 350 dollars.", mends=False)
    for text in ("", "casa casa casa", "35"):
        assert text_of(judge(text)) == text


def test_numbers_are_not_kept_where_nothing_is(pieces: Vocabulary) -> None:
    judge = Judge(pieces, "The house cost 350 dollars.", keeps_numbers=False)
    assert text_of(judge("Custou 35 dólares.")) == "Custou 35 dólares."


def test_another_try_has_a_wider_search() -> None:
    asked = Options(sampling=Sampling(seed=1), max_tokens=1)
    for way in (Way.FIRST, Way.AROUND):
        assert options_for(way, asked, 8) is asked
    careful = options_for(Way.CAREFUL, asked, 8)
    assert (careful.beam, careful.n_best, careful.sampling) == (4, 4, None)
    assert (careful.no_repeat_ngram, careful.min_tokens) == (3, 0)
    numbers = options_for(Way.NUMBERS, Options(beam=6, n_best=2), 8)
    assert (numbers.beam, numbers.n_best, numbers.no_repeat_ngram) == (6, 6, 0)
    assert options_for(Way.CAREFUL, Options(), 2).beam == 2
    assert options_for(Way.CAREFUL, Options(no_repeat_ngram=2), 8).no_repeat_ngram == 2
