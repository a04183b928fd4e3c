"""A loaded module of TorchScript is a module as any other, beside what PyTorch makes of the same file."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

import tenfold as tn
from tenfold import jit, nn

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normal = torch.nn.BatchNorm1d(3)
        self.act = torch.nn.ReLU()
        self.first = torch.nn.Linear(3, 3)
        self.last = self.first

    def forward(
        self, x: torch.Tensor, by: int = 2, more: float = -1.5, pair: tuple[int, int] = (1, 2)
    ) -> torch.Tensor:
        return self.last(self.act(self.normal(x))) * by + more + pair[0]

    @torch.jit.export
    def scaled(self, x: torch.Tensor, text: str = "a) -", by: int = 3) -> torch.Tensor:
        return x * by


@pytest.fixture
def both() -> tuple[jit.ScriptModule, torch.jit.ScriptModule]:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Net()), file)
    return jit.load(io.BytesIO(file.getvalue())), torch.jit.load(io.BytesIO(file.getvalue()))


def same(ours, theirs) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


def run_alike(ours, theirs) -> None:
    same(ours(tn.tensor(X)), theirs(torch.tensor(X)))


class Parent(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.linear = inner, nn.Linear(3, 1)

    def forward(self, x):
        return self.linear(self.inner(x))


def test_its_tensors_are_found_by_name_within_other_modules(both):
    ours, theirs = both
    parent = Parent(ours)
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [name for name, _ in ours.named_children()] == [name for name, _ in theirs.named_children()]
    assert [name for name, _ in ours.first.named_parameters(prefix="a", recurse=True)] == [
        "a.weight", "a.bias",
    ]  # fmt: skip
    own = [f"inner.{name}" for name in theirs.state_dict()]
    assert list(parent.state_dict()) == [*own, "linear.weight", "linear.bias"]
    assert len(list(parent.parameters())) == len(list(theirs.parameters())) + 2
    assert ours.first.weight is ours.last.weight and ours.first.weight.requires_grad
    parent(tn.tensor(X)).sum().backward()
    assert parent.linear.weight.grad is not None


def test_a_call_in_training_writes_to_the_buffers(both):
    ours, theirs = both
    mean = ours.normal.running_mean
    run_alike(ours, theirs)
    same(mean, theirs.normal.running_mean)
    assert ours.normal.running_mean is mean and ours.normal.num_batches_tracked.item() == 1
    Parent(ours).eval(), theirs.eval()
    assert ours.training is ours.normal.training is False
    run_alike(ours, theirs)
    assert ours.normal.num_batches_tracked.item() == 1


def test_what_is_written_to_its_tensors_is_what_it_computes_with(both):
    ours, theirs = both
    with tn.no_grad(), torch.no_grad():
        ours.last.weight.mul_(2), theirs.last.weight.mul_(2)
        ours.normal.running_mean.add_(1), theirs.normal.running_mean.add_(1)
    ours.eval(), theirs.eval()
    run_alike(ours, theirs)
    state = {name: torch.rand(each.shape).to(each.dtype) for name, each in theirs.state_dict().items()}
    theirs.load_state_dict(state)
    Parent(ours).load_state_dict(
        {f"inner.{name}": tn.tensor(each.numpy()) for name, each in state.items()}, strict=False
    )
    run_alike(ours, theirs)
    file = io.BytesIO()
    with tn.no_grad():
        ours.first.bias.zero_()
    ours.save(file)
    assert torch.jit.load(io.BytesIO(file.getvalue())).first.bias.tolist() == [0, 0, 0]


def test_its_hooks_are_called_and_arguments_have_names(both):
    ours, theirs = both
    ours.eval(), theirs.eval()
    x, theirs_x = tn.tensor(X), torch.tensor(X)
    same(ours(x=x, more=3.0), theirs(x=theirs_x, more=3.0))
    same(ours(x, 5, pair=(4, 4)), theirs(theirs_x, 5, pair=(4, 4)))
    same(ours.scaled(x, by=4), theirs.scaled(theirs_x, by=4))
    same(ours.first(x), theirs.first(theirs_x))
    with pytest.raises(tn.ArgumentError, match="takes no 'y'"):
        ours(x, y=3)
    with pytest.raises(tn.ArgumentError, match="'x' is given twice"):
        ours(x, x=x)
    with pytest.raises(tn.ArgumentError, match="needs 'x'"):
        ours(by=3)
    ours.register_forward_hook(lambda module, args, output: output * 100)
    same(ours(x), theirs(theirs_x) * 100)


def test_it_stays_where_libtorch_has_it_and_as_it_is(both):
    ours, _ = both
    assert ours.to("cpu") is ours and ours.float() is ours
    for change in (ours.double, lambda: ours.to(tn.float64), ours.first.half):
        with pytest.raises(tn.UnsupportedError, match="libtorch holds the tensors"):
            change()
    ours(tn.tensor(X))
    Parent(ours).double()
    with pytest.raises(tn.UnsupportedError, match="libtorch holds the tensors"):
        ours(tn.tensor(X))


def test_what_libtorch_would_not_do_is_refused_when_it_is_called(both):
    ours, _ = both
    ours.act = nn.Sigmoid()
    with pytest.raises(tn.UnsupportedError, match="no Sigmoid at 'act'"):
        ours(tn.tensor(X))


def test_it_is_trained_as_pytorch_trains_it(both):
    ours, theirs = both
    losses = []
    for lib, module in ((tn, ours), (torch, theirs)):
        optimizer = lib.optim.SGD(module.parameters(), lr=0.1)
        losses.append([])
        for _ in range(3):
            x = lib.tensor(X, requires_grad=True)
            loss = (module(x, by=3) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1] += [loss.item(), x.grad.abs().sum().item()]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    same(ours.last.weight, theirs.last.weight)
    same(ours.normal.running_mean, theirs.normal.running_mean)


def test_gradients_flow_to_what_requires_them(both):
    ours, theirs = both
    for lib, module in ((tn, ours), (torch, theirs)):
        module.first.weight.requires_grad_(False)
        module(lib.tensor(X)).sum().backward()
    assert ours.first.weight.grad is None and ours.first.bias.grad.tolist() == theirs.first.bias.grad.tolist()
    same(ours.normal.weight.grad, theirs.normal.weight.grad)
    with tn.no_grad():
        assert not ours(tn.tensor(X)).requires_grad
    ours.requires_grad_(False)
    assert not ours(tn.tensor(X)).requires_grad and ours(tn.tensor(X, requires_grad=True)).requires_grad
