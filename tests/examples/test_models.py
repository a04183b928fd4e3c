"""The example models: names and shapes of the usual checkpoints, PyTorch's values on the same weights, and
steps of training. The golden twin of a model is its own source, run with PyTorch in Tenfold's place."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import tenfold as tn

MODELS = Path(__file__).parent.parent.parent / "examples" / "models"


@cache
def source(name: str, package: str) -> SimpleNamespace:
    """The names that a model's file defines when it is run on `package`."""
    path = MODELS / f"{name}.py"
    text = re.sub(r"^(import|from) tenfold\b", rf"\1 {package}", path.read_text(), flags=re.MULTILINE)
    names: dict = {"__name__": f"{package}_{name}"}
    exec(compile(text, str(path), "exec"), names)
    return SimpleNamespace(**names)


# What the original packages (torchvision 0.28, Hugging Face's GPT-2) give for the lines "key shape" of their
# states, in order: how many there are, their SHA-256, and some of them in clear. The names of U-Net and of
# the language model are those of scripts, not of packages: their digests are our own.
CHECKPOINTS = {
    ("resnet", "resnet18"): (
        122,
        "84fb10d9c6905a1cbb020b284537dc97c4f4ec55fb2a780a41152a23a2dd0e9d",
        "conv1.weight (64, 3, 7, 7)",
        "layer2.0.downsample.1.running_var (128,)",
        "fc.bias (1000,)",
    ),
    ("resnet", "resnet34"): (
        218,
        "28f9096d5130749948981c6900083e57b19456b8b835829b8bdfe415bddc3f32",
        "layer3.5.bn2.num_batches_tracked ()",
    ),
    ("resnet", "resnet50"): (
        320,
        "d7e4f8bb0a5363446a59c81c3887ccf66900a11651a0ae2dec96d1bb1eb6ea81",
        "layer1.0.downsample.0.weight (256, 64, 1, 1)",
        "layer4.2.conv3.weight (2048, 512, 1, 1)",
    ),
    ("mobilenet_v3", "mobilenet_v3_large"): (
        312,
        "efe98e40831bae9532d9c518b312080f840b880adfcddaed3dd8b307363875e7",
        "features.4.block.2.fc1.weight (24, 72, 1, 1)",
        "classifier.3.weight (1000, 1280)",
    ),
    ("mobilenet_v3", "mobilenet_v3_small"): (
        244,
        "5f0efaf3ff4ac979485c311e28eca4adf197652c72ce1fc09348dea8557bac96",
        "features.0.0.weight (16, 3, 3, 3)",
        "features.1.block.1.fc2.bias (16,)",
        "features.12.1.running_mean (576,)",
    ),
    ("vit", "vit_b_16"): (
        152,
        "b124b34d9346c58cb7db25e1bfc36a321c153aac78f17bcb61cff204718a9f73",
        "class_token (1, 1, 768)",
        "encoder.pos_embedding (1, 197, 768)",
        "encoder.layers.encoder_layer_11.self_attention.in_proj_weight (2304, 768)",
        "encoder.layers.encoder_layer_0.mlp.3.weight (768, 3072)",
        "heads.head.weight (1000, 768)",
    ),
    ("gpt2", "gpt2"): (
        149,
        "6e8cf3a578f3d6264c4303192ea791c1d9e5a7bafa4fb6f93640fbad2fe4073f",
        "transformer.wte.weight (50257, 768)",
        "transformer.h.0.attn.c_attn.weight (768, 2304)",
        "transformer.h.11.mlp.c_proj.weight (3072, 768)",
        "lm_head.weight (50257, 768)",
    ),
    ("unet", "UNet"): (
        118,
        "e356f8331d783e12610447e28bdb0b454970cd1ae64d67ba85f71073ca08fae4",
        "inc.double_conv.0.weight (64, 3, 3, 3)",
        "down4.maxpool_conv.1.double_conv.3.weight (1024, 1024, 3, 3)",
        "up1.up.weight (1024, 512, 2, 2)",
        "outc.conv.bias (2,)",
    ),
    ("lstm_lm", "word_model"): (
        11,
        "c271d4f282a5d0fc857b89bd0b0a7af0d766c98fbc3f86bb758aca909da29e24",
        "encoder.weight (33278, 200)",
        "rnn.weight_hh_l1 (800, 200)",
        "decoder.bias (33278,)",
    ),
}
# Half a billion bytes are drawn for it.
LARGE = [pytest.param(*each, marks=pytest.mark.slow) if each[0] == "gpt2" else each for each in CHECKPOINTS]


@pytest.mark.parametrize(("file", "name"), LARGE)
def test_keys_shapes_and_order_are_those_of_checkpoints(file, name):
    count, digest, *clear = CHECKPOINTS[file, name]
    model = getattr(source(file, "tenfold"), name)()
    lines = [f"{key} {tuple(value.shape)}" for key, value in model.state_dict().items()]
    assert set(clear) <= set(lines)
    assert len(lines) == count
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == digest


# How a small model is made, by the names of its file, and the shape of its input: images or tokens. None
# drops anything, for it would not be what PyTorch drops. Fewer layers first; all of them where time allows.
SHALLOW = {
    "resnet18": (
        "resnet",
        lambda names: names.ResNet(names.BasicBlock, (1, 1, 1, 1), classes=5, width=4),
        (2, 3, 40, 40),
    ),
    "mobilenet_v3": (
        "mobilenet_v3",
        lambda names: names.MobileNetV3(
            names.SMALL[:1] + names.LARGE[:1] + names.SMALL[4:5],
            hidden=16,
            classes=5,
            width=0.25,
            dropout=0.0,
        ),
        (2, 3, 40, 40),
    ),
    "unet": ("unet", lambda names: names.UNet(classes=3, width=2), (2, 3, 35, 38)),
    "vit": (
        "vit",
        lambda names: names.vit_b_16(size=16, patch=8, layers=1, heads=2, width=16, hidden=32, classes=5),
        (2, 3, 16, 16),
    ),
    "gpt2": (
        "gpt2",
        lambda names: names.gpt2(vocabulary=40, context=16, width=24, layers=1, heads=3, dropout=0.0),
        (2, 11),
    ),
    "llama": (
        "llama",
        lambda names: names.Llama(40, 16, width=24, hidden=40, layers=1, heads=6, shared_heads=2),
        (2, 11),
    ),
    "lstm_lm": (
        "lstm_lm",
        lambda names: names.LSTMLanguageModel(40, width=12, hidden=12, dropout=0.0, tied=True),
        (7, 3),
    ),
}
DEEP = {
    "resnet18": ("resnet", lambda names: names.resnet18(classes=5, width=4), (2, 3, 40, 40)),
    "resnet50": ("resnet", lambda names: names.resnet50(classes=5, width=2), (2, 3, 40, 40)),
    "mobilenet_v3_small": (
        "mobilenet_v3",
        lambda names: names.mobilenet_v3_small(classes=5, width=0.1, hidden=16, dropout=0.0),
        (3, 3, 40, 40),
    ),
    "mobilenet_v3_large": (
        "mobilenet_v3",
        lambda names: names.mobilenet_v3_large(classes=5, width=0.1, hidden=16, dropout=0.0),
        (3, 3, 40, 40),
    ),
    "vit": (
        "vit",
        lambda names: names.vit_b_16(size=32, patch=8, heads=2, width=16, hidden=32, classes=5),
        (2, 3, 32, 32),
    ),
    "gpt2": (
        "gpt2",
        lambda names: names.gpt2(vocabulary=40, context=16, width=24, heads=3, dropout=0.0),
        (2, 11),
    ),
}


def random_state(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """Values for all that a model holds, of a size that neither dies out nor blows up along its layers."""
    random = np.random.default_rng(0)
    state = {}
    for key, value in model.state_dict().items():
        if value.dtype == torch.int64:  # how many batches a normalisation has seen
            state[key] = np.array(3)
        elif value.ndim == 1 and key.endswith(("weight", "running_var")):
            state[key] = random.uniform(0.5, 1.5, value.shape).astype(np.float32)
        else:
            fan = max(1, int(np.prod(value.shape[1:])))
            state[key] = random.normal(0, fan**-0.5, value.shape).astype(np.float32)
    return state


def scores_of(model, x):
    """The scores alone: a recurrent model gives its state as well."""
    found = model(x)
    return found[0] if isinstance(found, tuple) else found


def two_losses(module, model, compiled, inputs: np.ndarray) -> list[float]:
    """Those of two steps of gradient descent towards the first class or token."""
    axis = -1 if inputs.ndim == 2 else 1
    optimizer = module.optim.SGD(model.train().parameters(), lr=0.01, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = -scores_of(model, x).log_softmax(axis).select(axis, 0).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = compiled(step)
    return [run(module.tensor(inputs)).item() for _ in range(2)]


def assert_near(ours: np.ndarray, theirs: np.ndarray, what: str = "") -> None:
    scale = max(1e-3, float(np.abs(theirs).max()))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * scale, err_msg=what)


def compare(folder: Path, file: str, make, shape: tuple[int, ...]) -> None:
    golden, model = make(source(file, "torch")), make(source(file, "tenfold"))
    state = random_state(golden)
    torch.save({key: torch.tensor(value) for key, value in state.items()}, folder / "checkpoint.pth")
    golden.load_state_dict(torch.load(folder / "checkpoint.pth"))
    model.load_state_dict(tn.load(folder / "checkpoint.pth"))
    random = np.random.default_rng(1)
    inputs = random.integers(0, 40, shape) if len(shape) == 2 else random.normal(size=shape).astype("f")

    with torch.no_grad(), tn.no_grad():
        expected = scores_of(golden.eval(), torch.tensor(inputs))
        found = scores_of(model.eval(), tn.tensor(inputs))
    assert_near(found.numpy(), expected.numpy())

    losses = two_losses(torch, golden, lambda step: step, inputs)
    assert losses[1] < losses[0]
    np.testing.assert_allclose(two_losses(tn, model, tn.compile, inputs), losses, rtol=1e-4)
    trained = model.state_dict()
    assert list(trained) == list(state)
    for key, value in golden.state_dict().items():
        assert_near(trained[key].numpy(), value.numpy(), key)


@pytest.mark.parametrize("name", SHALLOW)
def test_values_and_training_equal_pytorch(name, tmp_path):
    compare(tmp_path, *SHALLOW[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", DEEP)
def test_values_and_training_of_all_layers_equal_pytorch(name, tmp_path):
    compare(tmp_path, *DEEP[name])


def test_gpt2_loads_the_files_that_were_first_released(tmp_path):
    """They have no prefix and one name for the embedding, and hold masks of the attention."""
    _, make, (count, length) = SHALLOW["gpt2"]
    golden, names = make(source("gpt2", "torch")).eval(), source("gpt2", "tenfold")
    released = {key.removeprefix("transformer."): value for key, value in golden.state_dict().items()}
    del released["lm_head.weight"]
    released["h.0.attn.bias"] = torch.ones(16, 16).tril().view(1, 1, 16, 16)
    released["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(released, tmp_path / "pytorch_model.bin")

    model = make(names).eval()
    model.load_state_dict(names.from_checkpoint(tn.load(tmp_path / "pytorch_model.bin")))
    tokens = np.random.default_rng(0).integers(0, 40, (count, length))
    with torch.no_grad(), tn.no_grad():
        assert_near(model(tn.tensor(tokens)).numpy(), golden(torch.tensor(tokens)).numpy())


def test_the_language_model_goes_on_from_its_state():
    model = SHALLOW["lstm_lm"][1](source("lstm_lm", "tenfold")).eval()
    tokens = tn.tensor(np.random.default_rng(0).integers(0, 40, (6, 2)))
    with tn.no_grad():
        whole, _ = model(tokens)
        first, state = model(tokens[:3])
        second, _ = model(tokens[3:], state)
        joined = tn.cat([first, second])
    tn.eval(whole, joined)
    assert_near(joined.numpy(), whole.numpy())


def test_tied_weights_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="width and hidden to be equal, not 3 and 4"):
        source("lstm_lm", "tenfold").LSTMLanguageModel(5, width=3, hidden=4, tied=True)
