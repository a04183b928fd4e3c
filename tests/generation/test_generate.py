"""Generation: PyTorch's greedy tokens on the same weights, prompts of different lengths, drawn tokens."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import tenfold as tn
from tenfold.generation import Sampling, generate, sample
from tenfold.runtime.executables import counting_compiles
from tests.examples.test_models import random_state, source

MODELS = {
    "gpt2": lambda names: names.gpt2(vocabulary=40, context=64, width=24, layers=1, heads=3, dropout=0.0),
    "llama": lambda names: names.Llama(40, 64, width=24, hidden=40, layers=1, heads=6, shared_heads=2),
}
PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8, 30, 31]]


@pytest.fixture(scope="module")
def gpt2():
    tn.manual_seed(0)
    return MODELS["gpt2"](source("gpt2", "tenfold")).eval()


def greedy_in_pytorch(model, prompt, count):
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(model(torch.tensor([tokens]))[0, -1].argmax().item())
    return tokens[len(prompt) :]


def rows(stream):
    return np.stack([each.numpy() for each in stream], 1).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_greedy_tokens_are_those_of_pytorch_on_weights_from_safetensors(name, tmp_path):
    golden = MODELS[name](source(name, "torch")).eval()
    scale = lambda key: 0.1 if key.endswith("bias") else 2.0  # so that what was said last decides
    state = {key: torch.tensor(each) * scale(key) for key, each in random_state(golden).items()}
    if name == "gpt2":
        state["lm_head.weight"] = state["transformer.wte.weight"].clone()
    golden.load_state_dict(state)
    save_file(state, tmp_path / "model.safetensors")
    model = MODELS[name](source(name, "tenfold")).eval()
    model.load_state_dict(tn.load(str(tmp_path / "model.safetensors")))
    expected = [greedy_in_pytorch(golden, each, 20) for each in PROMPTS]
    assert len({*expected[0], *expected[1]}) > 4  # not one token over and over
    assert generate(model, PROMPTS, 20).tolist() == expected


@pytest.mark.slow
def test_a_model_without_a_cache_is_called_on_the_whole_text(gpt2):
    class Plain(tn.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = gpt2

        def forward(self, tokens):
            return self.inner(tokens)

    plain = Plain().eval()
    assert generate(plain, PROMPTS, 8).tolist() == generate(gpt2, PROMPTS, 8).tolist()


def test_other_prompts_seeds_and_temperatures_need_no_other_program(gpt2):
    generate(gpt2, PROMPTS, 6, temperature=0.8, top_k=9, top_p=0.9, seed=1)
    with counting_compiles() as compiles:
        generate(gpt2, [[9] * 5, [3]], 7, temperature=1.3, top_k=9, top_p=0.5, seed=2, stop_token=3)
    assert compiles == 0


def test_the_same_seed_draws_the_same_tokens_in_a_loop_and_in_a_stream(gpt2):
    drawn = [
        generate(gpt2, PROMPTS, 8, temperature=1.0, top_k=9, top_p=0.9, seed=seed).tolist()
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert (
        rows(generate(gpt2, PROMPTS, 8, temperature=1.0, top_k=9, top_p=0.9, seed=1, stream=True)) == drawn[0]
    )


def test_a_row_ends_with_the_stop_token_and_generation_with_the_last_row(gpt2):
    free = generate(gpt2, PROMPTS, 8).tolist()
    stop = free[0][2]
    found = generate(gpt2, PROMPTS, 8, stop_token=stop).tolist()
    cut = [row[: row.index(stop) + 1] if stop in row else row for row in free]
    longest = max(map(len, cut))
    assert found == [row + [stop] * (longest - len(row)) for row in cut]
    assert rows(generate(gpt2, PROMPTS, 8, stop_token=stop, stream=True)) == found


def test_a_prompt_may_be_a_tensor_of_one_row_or_of_many(gpt2):
    expected = generate(gpt2, [PROMPTS[0]], 8).tolist()
    assert generate(gpt2, tn.tensor(PROMPTS[0]), 8).tolist() == expected
    assert generate(gpt2, tn.tensor([PROMPTS[0], PROMPTS[0]]), 8).tolist() == expected * 2
    assert generate(gpt2, PROMPTS[0], 8).tolist() == expected


def test_a_model_that_has_generated_is_copied_without_its_programs(gpt2):
    generate(gpt2, PROMPTS, 8)
    other = copy.deepcopy(gpt2)
    with tn.no_grad():
        other.lm_head.weight.mul_(-1)
    assert generate(other, PROMPTS, 8).tolist() != generate(gpt2, PROMPTS, 8).tolist()


def test_more_tokens_than_the_model_holds_are_refused(gpt2):
    with pytest.raises(tn.ArgumentError, match="max_new_tokens be at most 57"):
        generate(gpt2, PROMPTS, 60)
    assert generate(gpt2, PROMPTS, 57).shape == (2, 57)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"temperature": -1.0}, "temperature"), ({"top_k": 0}, "top_k"), ({"top_p": 1.5}, "top_p")],
)
def test_options_without_a_meaning_are_refused(gpt2, options, message):
    with pytest.raises(tn.ArgumentError, match=message):
        generate(gpt2, PROMPTS, 4, **options)


def test_an_empty_prompt_is_refused(gpt2):
    with pytest.raises(tn.ArgumentError, match="at least one token"):
        generate(gpt2, [[1], []], 4)


def frequencies(scores, sampling, draws=4000):
    generator = tn.Generator().manual_seed(3)
    tokens = sample(tn.tensor(scores).expand(draws, len(scores)), sampling, generator)
    return np.bincount(tokens.numpy(), minlength=len(scores)) / draws


def test_tokens_are_drawn_with_the_probabilities_of_their_scores():
    scores = np.array([0.0, 1.0, 2.0, -1.0], np.float32)
    chances = np.exp(scores / 0.7) / np.exp(scores / 0.7).sum()
    np.testing.assert_allclose(frequencies(scores, Sampling(0.7)), chances, atol=0.03)


def test_top_k_and_top_p_leave_the_others_out():
    scores = np.log(np.array([0.05, 0.5, 0.3, 0.15], np.float32))
    expected = {
        Sampling(1.0, top_k=2): [0, 0.625, 0.375, 0],
        Sampling(1.0, top_p=0.5): [0, 1, 0, 0],
        Sampling(1.0, top_p=0.6): [0, 0.625, 0.375, 0],
        Sampling(1.0, top_p=1.0): [0.05, 0.5, 0.3, 0.15],
        Sampling(1.0, top_k=3, top_p=0.9): [0, 0.526, 0.316, 0.158],
    }
    for sampling, chances in expected.items():
        found = frequencies(scores, sampling)
        np.testing.assert_allclose(found, chances, atol=0.03)
        assert (found > 0).tolist() == [each > 0 for each in chances]
