"""A tour of tensors: making, indexing, views, broadcasting, linear algebra, transforms of functions."""

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, jacrev, vmap

torch.set_printoptions(precision=4, sci_mode=False)
print(
    torch.finfo(torch.float32).eps, torch.iinfo(torch.int16).max, torch.get_default_dtype() == torch.float32
)

# Making
x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
assert isinstance(x, torch.Tensor) and isinstance(x, torch.FloatTensor) and x.shape == torch.Size([3, 4])
print(
    x.dtype == torch.float,
    x.device,
    x.layout == torch.strided,
    x.stride(),
    x.is_contiguous(),
    x.element_size(),
)
print(torch.LongTensor([1, 2]).tolist(), torch.zeros_like(x).sum().item(), torch.eye(2).tolist())
bits = torch.tensor([1, 2, 4], dtype=torch.uint8)
print((bits << 1).tolist(), (bits | 1).tolist(), torch.bitwise_xor(bits, bits.flip(0)).tolist())

# Indexing and views
y = x.clone()
y[:, 1] = -1
y[y > 9] = 0
y.t()[0].mul_(10)
print(y.tolist(), y[..., -1].tolist(), y[[0, 2], [1, 3]].tolist(), x[None, 1:, ::2].shape)
view = y.view(2, 6)
view[0, 0] = 99
print(y[0, 0].item(), y.data_ptr() == view.data_ptr(), y.transpose(0, 1).is_contiguous())
print(torch.where(x > 5, x, torch.tensor(-1.0)).tolist(), torch.nonzero(x > 9).tolist())
print(
    torch.cat([x, x[:1]]).shape, torch.stack((x, x), dim=-1).shape, [c.tolist() for c in torch.chunk(x[0], 3)]
)
values, places = torch.sort(torch.tensor([3.0, 1.0, 2.0]), descending=True)
print(
    values.tolist(),
    places.tolist(),
    torch.topk(values, 2).indices.tolist(),
    torch.unique(places % 2).tolist(),
)
print(x.gather(1, torch.tensor([[0], [1], [2]])).squeeze().tolist())
print(torch.zeros(3).scatter_add_(0, torch.tensor([0, 2, 2]), torch.ones(3)).tolist())

# Numbers
print(
    (x / 2).floor().int().tolist()[2],
    (x // 3).sum().item(),
    (torch.tensor([-7]) % 3).item(),
    2 ** torch.arange(4),
)
print(x.mean(dim=0).tolist(), x.std(unbiased=False).item(), x.var(1).tolist(), x.logsumexp(1).tolist())
print(torch.einsum("ij,kj->ik", x, x).tolist(), (x @ x.T).trace().item())
print(torch.ops.aten.add.Tensor(x, x, alpha=2).sum().item(), torch.ops.aten.relu.default(-x).sum().item())
torch.testing.assert_close(torch.add(x, 1), x + 1)
out = torch.empty(3, 4)
torch.mul(x, 2, out=out)
print(out[1].tolist(), torch.allclose(out, x * 2), torch.equal(out, x), torch.isclose(out, x).sum().item())
z = torch.complex(torch.tensor([3.0]), torch.tensor([4.0]))
print(z.abs().item(), z.conj().imag.item(), torch.view_as_real(z).tolist(), torch.is_complex(z))

# Linear algebra, Fourier transforms, special functions
a = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 4)))
spd = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
factor = torch.linalg.cholesky(spd)
print(
    torch.dist(factor @ factor.T, spd).item() < 1e-9, torch.linalg.det(spd).item(), torch.logdet(spd).item()
)
print(torch.linalg.eigvalsh(spd).tolist(), torch.linalg.norm(a).item(), torch.linalg.matrix_rank(a).item())
print(torch.linalg.solve(spd, torch.ones(4, dtype=torch.float64)).tolist(), torch.linalg.svdvals(a).tolist())
spectrum = torch.fft.rfft(torch.sin(torch.arange(8) * torch.pi / 2))
print(spectrum.abs().round().tolist(), torch.fft.irfft(spectrum).shape)
print(
    torch.special.erf(torch.tensor(0.5)).item(),
    torch.lgamma(torch.tensor(4.5)).item(),
    torch.special.i0e(x[0, 1]).item(),
)


# Functions of functions
def energy(v: Tensor) -> Tensor:
    return (v.sin() * v).sum()


v = torch.tensor([0.5, 1.0, -2.0])
print(grad(energy)(v).tolist(), vmap(energy)(torch.stack([v, v * 2])).tolist())
print(jacrev(lambda t: t**2)(v).tolist())
w = v.clone().requires_grad_()
(first,) = torch.autograd.grad(energy(w), w, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), w)
print(second.tolist(), w.grad is None, first.requires_grad, w.is_leaf)

# NumPy beside it
array = x.numpy()
print(
    array.sum(),
    np.asarray(x).shape,
    torch.as_tensor(array)[0, 1].item(),
    torch.tensor(np.float64(2.5)).dtype == torch.float64,
)
print(
    f"{x.sum():.1f}",
    len(x),
    float(x[0, 1]),
    int(x.argmax()),
    bool((x >= 0).all()),
    x.max().item() in x.tolist()[2],
)
try:
    x @ torch.ones(3)
except RuntimeError:
    print("shapes that do not fit are a RuntimeError")
