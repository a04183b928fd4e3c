"""Adaptive softmax over many classes: rare classes lie in clusters, which are computed less often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenfold.base.errors import ArgumentError, ShapeError
from tenfold.nn import functional as F
from tenfold.nn.containers import ModuleList, Sequential
from tenfold.nn.linear import Linear
from tenfold.nn.module import Module, in_layer
from tenfold.tensor import Tensor
from tenfold.tensor.dispatch import aten


class ASMoutput(NamedTuple):
    """The log-probability of each target, and the loss: the negative mean of these."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over a head of frequent classes, and clusters of rare ones with narrower layers

    Classes are numbered by decreasing frequency; `cutoffs` are the classes where clusters begin.
    Cluster i projects inputs to in_features / div_value^(i+1) features. Input (N, in_features), target (N).

        layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
        layer.log_prob(tn.ones(3, 8)).shape  # [3, 20]
    """

    @in_layer
    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        bounds = list(cutoffs)
        fine = bounds and all(isinstance(bound, int) for bound in bounds)
        if not fine or bounds != sorted(set(bounds)) or bounds[0] <= 0 or bounds[-1] > n_classes - 1:
            raise ArgumentError(
                f"cutoffs are increasing ints from 1 to n_classes - 1 = {n_classes - 1}, not {bounds}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, head_bias, **place)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(Linear(in_features, width, False, **place), Linear(width, classes, False, **place))
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    @in_layer
    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        if target_.ndim > 1 or input_.ndim != target_.ndim + 1:
            raise ShapeError(
                f"takes an input (N, in_features) and a target (N), not of {input_.ndim} and {target_.ndim} "
                "dimensions"
            )
        batched = target_.ndim == 1
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if input.shape[0] != target.shape[0]:
            raise ShapeError(f"{input.shape[0]} inputs have {target.shape[0]} targets")
        # A target that is no class is left as it is, for `gather` to refuse: below 0 in the head, and past
        # the last in the last cluster.
        where = target
        output: Any = 0
        for i, layers in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            inside = target >= low if i + 1 == self.n_clusters else (target >= low) & (target < high)
            places = aten("where")(inside, target - low, 0).unsqueeze(1)
            found = F.log_softmax(layers(input), dim=1).gather(1, places).squeeze(1)
            output = output + aten("where")(inside, found, 0.0)
            where = aten("where")(inside, self.shortlist_size + i, where)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, where.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, layers in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(layers(input), dim=1) + cluster)
        return aten("cat")(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each input."""
        return self.log_prob(input).argmax(1)
