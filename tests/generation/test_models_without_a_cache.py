"""Generation with models that have no cache: the whole text at its own length. And generators: one a call."""

import pytest

import tenfold as tn
from tenfold import nn
from tenfold.generation import generate

PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8, 2], [9, 1, 1]]


class Averaging(nn.Module):
    """Its scores depend on all tokens, and its table of positions ends at 20."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(12, 8), nn.Embedding(20, 8)
        self.out = nn.Linear(8, 12)

    def forward(self, tokens):
        y = self.words(tokens) + self.places(tn.arange(tokens.shape[1]))
        return self.out(y + y.mean(1, keepdim=True))


@pytest.fixture(scope="module")
def model():
    tn.manual_seed(3)
    return Averaging()


def plain_loop(model, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(model(tn.tensor([tokens]))[0, -1].argmax().item())
    return tokens[len(prompt) :]


def test_every_text_is_read_at_its_own_length(model):
    expected = [plain_loop(model, each, 14) for each in PROMPTS]
    assert generate(model, PROMPTS, 14).tolist() == expected
    stream = generate(model, PROMPTS, 14, stream=True)
    assert [each.tolist() for each in stream] == [list(each) for each in zip(*expected, strict=True)]


def test_rows_of_any_length_end_with_the_stop_token(model):
    free = generate(model, PROMPTS, 10).tolist()
    stop = free[0][3]
    cut = [row[: row.index(stop) + 1] if stop in row else row for row in free]
    longest = max(map(len, cut))
    found = generate(model, PROMPTS, 10, stop_token=stop).tolist()
    assert found == [row + [stop] * (longest - len(row)) for row in cut]


def test_a_model_that_says_it_is_causal_generates_in_one_loop():
    seen = []

    class Bigrams(nn.Module):
        causal = True

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(12, 12)

        def forward(self, tokens):
            seen.append(tokens.shape[1])
            return self.table(tokens)

    bigrams = Bigrams()
    expected = [plain_loop(bigrams, each, 5) for each in PROMPTS]
    seen.clear()
    assert generate(bigrams, PROMPTS, 5).tolist() == expected
    assert set(seen) == {16}


@pytest.mark.parametrize("causal", [False, True])
def test_a_stream_with_a_seed_is_the_same_whatever_else_generates(causal):
    tn.manual_seed(3)
    model = nn.Embedding(12, 12)
    model.causal = causal
    options = {"temperature": 1.0, "stream": True}
    alone = [each.tolist() for each in generate(model, PROMPTS, 6, seed=5, **options)]
    found = []
    for each in generate(model, PROMPTS, 6, seed=5, **options):
        found.append(each.tolist())
        next(generate(model, PROMPTS, 6, seed=6, **options)).tolist()
    assert found == alone


@pytest.mark.parametrize("causal", [False, True])
def test_tokens_drawn_without_a_seed_follow_the_global_generator(causal):
    model = nn.Embedding(40, 40)
    model.causal = causal
    draw = lambda: generate(model, PROMPTS, 6, temperature=2.0).tolist()
    tn.manual_seed(1)
    first, second = draw(), draw()
    tn.manual_seed(1)
    assert draw() == first != second
