"""The R package's layers, losses, optimizers and schedulers beside PyTorch's, from the same weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tests.bindings.r_process import evaluate, library


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    library()


def drawn(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def padded(mask: list[list[int]]) -> torch.Tensor:
    return torch.tensor(mask, dtype=torch.bool)


# A module in R and in PyTorch, and its inputs; whole numbers are positions, which R counts from 1.
LAYERS: list[tuple[str, Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, ...]]]] = [
    ("nn_linear(3, 2)", lambda: nn.Linear(3, 2), lambda: (drawn(4, 3),)),
    ("nn_bilinear(3, 4, 5)", lambda: nn.Bilinear(3, 4, 5), lambda: (drawn(2, 3), drawn(2, 4))),
    (
        "nn_conv2d(3, 4, c(3, 2), stride = 2, padding = c(2, 1), padding_mode = 'reflect')",
        lambda: nn.Conv2d(3, 4, (3, 2), 2, (2, 1), padding_mode="reflect"),
        lambda: (drawn(2, 3, 8, 7),),
    ),
    (
        "nn_conv_transpose2d(3, 4, 3, stride = 2, output_padding = 1, dilation = 2)",
        lambda: nn.ConvTranspose2d(3, 4, 3, 2, output_padding=1, dilation=2),
        lambda: (drawn(2, 3, 4, 4),),
    ),
    ("nn_batch_norm1d(3)", lambda: nn.BatchNorm1d(3), lambda: (drawn(6, 3),)),
    ("nn_batch_norm2d(3)$eval()", lambda: nn.BatchNorm2d(3).eval(), lambda: (drawn(6, 3, 2, 2),)),
    ("nn_group_norm(2, 6)", lambda: nn.GroupNorm(2, 6), lambda: (drawn(2, 6, 5),)),
    ("nn_layer_norm(c(3, 5))", lambda: nn.LayerNorm((3, 5)), lambda: (drawn(2, 3, 5),)),
    ("nn_embedding(7, 3)", lambda: nn.Embedding(7, 3), lambda: (torch.tensor([[0, 6], [2, 2]]),)),
    (
        "nn_embedding_bag(7, 3, mode = 'max')",
        lambda: nn.EmbeddingBag(7, 3, mode="max"),
        lambda: (torch.tensor([0, 6, 2, 2, 1]), torch.tensor([0, 3])),
    ),
    (
        "nn_rnn(3, 4, num_layers = 2, nonlinearity = 'relu')",
        lambda: nn.RNN(3, 4, 2, nonlinearity="relu"),
        lambda: (drawn(5, 2, 3),),
    ),
    (
        "nn_gru(3, 4, num_layers = 2, bidirectional = TRUE)",
        lambda: nn.GRU(3, 4, 2, bidirectional=True),
        lambda: (drawn(5, 2, 3), drawn(4, 2, 4)),
    ),
    (
        "nn_lstm(3, 4, bias = FALSE, batch_first = TRUE)",
        lambda: nn.LSTM(3, 4, bias=False, batch_first=True),
        lambda: (drawn(2, 5, 3),),
    ),
    (
        "nn_multihead_attention(8, 2)",
        lambda: nn.MultiheadAttention(8, 2),
        lambda: (drawn(5, 3, 8), drawn(4, 3, 8), drawn(4, 3, 8)),
    ),
    (
        "nn_multihead_attention(8, 2, kdim = 6, vdim = 4, batch_first = TRUE)",
        lambda: nn.MultiheadAttention(8, 2, kdim=6, vdim=4, batch_first=True),
        lambda: (drawn(2, 5, 8), drawn(2, 3, 6), drawn(2, 3, 4), padded([[0, 0, 1], [0, 0, 0]])),
    ),
    (
        "nn_multihead_attention(8, 2, add_bias_kv = TRUE, add_zero_attn = TRUE)",
        lambda: nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True),
        lambda: (drawn(5, 3, 8), drawn(4, 3, 8), drawn(4, 3, 8)),
    ),
    (
        "nn_transformer_encoder_layer(8, 2, 16, activation = 'gelu', norm_first = TRUE)$eval()",
        lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True).eval(),
        lambda: (drawn(5, 3, 8),),
    ),
    (
        "nn_transformer_encoder(nn_transformer_encoder_layer(8, 2, 16), 2)$eval()",
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False
        ).eval(),
        lambda: (drawn(5, 3, 8),),
    ),
    ("nn_prelu(3)", lambda: nn.PReLU(3), lambda: (drawn(2, 3),)),
    ("nn_glu()", lambda: nn.GLU(), lambda: (drawn(2, 6),)),
    ("nn_threshold(0.1, 20)", lambda: nn.Threshold(0.1, 20), lambda: (drawn(2, 6),)),
    ("nn_softmax2d()", lambda: nn.Softmax2d(), lambda: (drawn(2, 3, 2, 2),)),
    ("nn_tanhshrink()", lambda: nn.Tanhshrink(), lambda: (drawn(6),)),
    ("nn_lp_pool2d(2, 2)", lambda: nn.LPPool2d(2, 2), lambda: (drawn(1, 2, 6, 6).abs(),)),
    ("nn_avg_pool3d(2)", lambda: nn.AvgPool3d(2), lambda: (drawn(1, 1, 4, 4, 4),)),
    ("nn_adaptive_max_pool2d(3)", lambda: nn.AdaptiveMaxPool2d(3), lambda: (drawn(1, 2, 7, 7),)),
    (
        "nn_upsample(scale_factor = 2, mode = 'bilinear')",
        lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
        lambda: (drawn(1, 2, 3, 3),),
    ),
    ("nn_upsample(5, mode = 'linear')", lambda: nn.Upsample(5, mode="linear"), lambda: (drawn(1, 2, 3),)),
    ("nn_unflatten(2, c(2, 3))", lambda: nn.Unflatten(1, (2, 3)), lambda: (drawn(4, 6),)),
    (
        "nn_cross_entropy_loss(reduction = 'sum')",
        lambda: nn.CrossEntropyLoss(reduction="sum"),
        lambda: (drawn(3, 4), torch.tensor([0, 3, 1])),
    ),
    (
        "nn_multi_margin_loss(p = 2)",
        lambda: nn.MultiMarginLoss(2),
        lambda: (drawn(3, 4), torch.tensor([0, 3, 1])),
    ),
    ("nn_poisson_nll_loss()", lambda: nn.PoissonNLLLoss(), lambda: (drawn(3), drawn(3).abs())),
    (
        "nn_multilabel_soft_margin_loss()",
        lambda: nn.MultiLabelSoftMarginLoss(),
        lambda: (drawn(3, 4), (drawn(3, 4) > 0).float()),
    ),
    (
        "nn_triplet_margin_loss(swap = TRUE)",
        lambda: nn.TripletMarginLoss(swap=True),
        lambda: (drawn(3, 4), drawn(3, 4), drawn(3, 4)),
    ),
    (
        "nn_triplet_margin_with_distance_loss(margin = 2)",
        lambda: nn.TripletMarginWithDistanceLoss(margin=2),
        lambda: (drawn(3, 4), drawn(3, 4), drawn(3, 4)),
    ),
]  # fmt: skip


def flattened(result: object) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [each for part in result for each in flattened(part)] if isinstance(result, (tuple, list)) else []


RUN = """
given <- torch_load(commandArgs(TRUE)[1])
results <- list()
flat <- function(x) if (is.list(x)) do.call(c, lapply(x, flat)) else list(x)
run <- function(id, module, inputs, names) {
  state <- lapply(names, function(name) given[[paste0(id, '.', name)]])
  module$load_state_dict(structure(state, names = names))
  found <- flat(do.call(module, inputs))
  for (i in seq_along(found)) results[[paste0(id, '.', i)]] <<- torch_contiguous(torch_detach(found[[i]]))
}
"""


def test_layers_and_losses_give_what_pytorchs_give(tmp_path: Path) -> None:
    torch.manual_seed(0)
    given: dict[str, torch.Tensor] = {}
    expected: list[list[torch.Tensor]] = []
    lines = [RUN]
    for id, (code, make, inputs) in enumerate(LAYERS):
        module, arguments = make(), inputs()
        state = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
        given |= {f"{id}.{name}": tensor.clone() for name, tensor in state.items()}
        for place, tensor in enumerate(arguments):
            given[f"{id}.in.{place}"] = tensor + 1 if tensor.dtype == torch.int64 else tensor
        told = ", ".join(f"given[['{id}.in.{place}']]" for place in range(len(arguments)))
        names = ", ".join(f"'{name}'" for name in state)
        lines.append(f"run({id}, {code}, list({told}), c({names}))")
        with torch.no_grad():
            expected.append(flattened(module(*arguments)))
    lines.append("torch_save(results, commandArgs(TRUE)[2])")
    paths = [tmp_path / "given.safetensors", tmp_path / "found.safetensors"]
    save_file(given, str(paths[0]))
    evaluate(tmp_path, "\n".join(lines), *paths)
    found = load_file(str(paths[1]))
    for id, (code, _, _) in enumerate(LAYERS):
        for place, theirs in enumerate(expected[id]):
            torch.testing.assert_close(
                found[f"{id}.{place + 1}"], theirs, msg=lambda told, c=code: f"{c}: {told}"
            )


OPTIMIZERS = {
    "optim_adadelta(list(w), lr = 2, weight_decay = 0.1)": lambda w: torch.optim.Adadelta(
        [w], lr=2, weight_decay=0.1
    ),
    "optim_asgd(list(w), lr = 0.1, t0 = 3)": lambda w: torch.optim.ASGD([w], lr=0.1, t0=3),
    "optim_rprop(list(w), lr = 0.1)": lambda w: torch.optim.Rprop([w], lr=0.1),
    "optim_lbfgs(list(w), lr = 0.5, max_iter = 2)": lambda w: torch.optim.LBFGS([w], lr=0.5, max_iter=2),
    "optim_lbfgs(list(w), lr = 0.1)": lambda w: torch.optim.LBFGS([w], lr=0.1),
    "optim_sgd(list(w), lr = 0.1, momentum = 0.9, nesterov = TRUE)": lambda w: torch.optim.SGD(
        [w], lr=0.1, momentum=0.9, nesterov=True
    ),
}


@pytest.mark.parametrize("code", OPTIMIZERS)
def test_optimizers_have_pytorchs_losses(code: str, tmp_path: Path) -> None:
    w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    optimizer = OPTIMIZERS[code](w)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = ((w - torch.tensor([0.3, 0.2, -1.0])) ** 2 * torch.tensor([1.0, 4.0, 0.5])).sum()
        loss.backward()
        return loss

    theirs = [optimizer.step(closure).item() for _ in range(15)]
    printed = evaluate(
        tmp_path,
        f"""
        w <- torch_tensor(c(1, -2, 0.5), requires_grad = TRUE)
        optimizer <- {code}
        closure <- function() {{
          optimizer$zero_grad()
          loss <- ((w - torch_tensor(c(0.3, 0.2, -1)))^2 * torch_tensor(c(1, 4, 0.5)))$sum()
          loss$backward()
          loss
        }}
        for (i in 1:15) cat(format(optimizer$step(closure)$item(), digits = 15), "")
        """,
    )
    np.testing.assert_allclose([float(each) for each in printed.split()], theirs, atol=1e-5)


@pytest.mark.parametrize("search", ["NULL", "'strong_wolfe'"])
def test_lbfgs_walks_as_pytorchs_over_a_curved_valley(search: str, tmp_path: Path) -> None:
    w = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    line_search = None if search == "NULL" else "strong_wolfe"
    optimizer = torch.optim.LBFGS([w], lr=0.02 if line_search is None else 1, line_search_fn=line_search)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    theirs = [optimizer.step(closure).item() for _ in range(4)] + w.tolist()
    printed = evaluate(
        tmp_path,
        f"""
        w <- torch_tensor(c(-1.5, 2), dtype = "float64", requires_grad = TRUE)
        optimizer <- optim_lbfgs(list(w), lr = {optimizer.param_groups[0]["lr"]}, line_search_fn = {search})
        closure <- function() {{
          optimizer$zero_grad()
          loss <- (1 - w[1])^2 + 100 * (w[2] - w[1]^2)^2
          loss$backward()
          loss
        }}
        for (i in 1:4) cat(format(optimizer$step(closure)$item(), digits = 17), "")
        cat(format(as.numeric(w), digits = 17))
        """,
    )
    np.testing.assert_allclose([float(each) for each in printed.split()], theirs, rtol=1e-6, atol=1e-9)


SCHEDULERS = {
    "lr_step(o, 2, gamma = 0.5)": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "lr_lambda(o, function(step) 1 / (step + 1))": lambda o: torch.optim.lr_scheduler.LambdaLR(
        o, lambda step: 1 / (step + 1)
    ),
    "lr_multiplicative(o, function(step) 0.9)": lambda o: torch.optim.lr_scheduler.MultiplicativeLR(
        o, lambda step: 0.9
    ),
    "lr_cosine_annealing(o, 6, eta_min = 0.1)": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(
        o, 6, 0.1
    ),
    "lr_one_cycle(o, max_lr = 2, total_steps = 10)": lambda o: torch.optim.lr_scheduler.OneCycleLR(
        o, 2, total_steps=10
    ),
}


def test_schedulers_set_pytorchs_learning_rates(tmp_path: Path) -> None:
    theirs = []
    for make in SCHEDULERS.values():
        optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1.0)
        scheduler = make(optimizer)
        for _ in range(8):
            optimizer.step()
            scheduler.step()
            theirs.append(optimizer.param_groups[0]["lr"])
    loops = [
        f"o <- optim_adam(list(torch_zeros(1, requires_grad = TRUE)), lr = 1); s <- {code}\n"
        "for (i in 1:8) { s$step(); cat(format(o$param_groups[[1]]$lr, digits = 15), '') }"
        for code in SCHEDULERS
    ]
    printed = evaluate(tmp_path, "\n".join(loops))
    np.testing.assert_allclose([float(each) for each in printed.split()], theirs, rtol=1e-6)
