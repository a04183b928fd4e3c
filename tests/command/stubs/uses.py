"""Typed uses of the package, which `test_stubs.py` gives to type checkers: a line that ends in `# wrong` has
an error, and no other line has one."""

import numpy as np

import tenfold as tn
import tenfold.nn.functional as F
from tenfold import Tensor, nn, optim

x: Tensor = tn.ones(2, 3)
y: Tensor = tn.zeros((2, 3), dtype=tn.float32)
i: Tensor = tn.tensor([0, 1])

# Making tensors
m1: Tensor = tn.full((2, 2), 1.5)
m2: Tensor = tn.arange(10)
m3: Tensor = tn.arange(0, 10, 2, dtype=tn.int64)
m4: Tensor = tn.linspace(0, 1, 5)
m5: Tensor = tn.eye(3)
m6: Tensor = tn.rand(2, 3, requires_grad=True)
m7: Tensor = tn.randn((2, 3), device="cpu")
m8: Tensor = tn.randint(0, 10, (3,))
m9: Tensor = tn.empty(2, 3, dtype=tn.bfloat16)
m10: Tensor = tn.zeros_like(x)
m11: Tensor = tn.ones_like(x, dtype=tn.int32)
m12: Tensor = tn.from_numpy(np.zeros(3))
m13: Tensor = tn.as_tensor([1, 2])
m14: Tensor = x.new_zeros((2,))
m15: Tensor = tn.full_like(x, 2)
w1: int = tn.ones(2)  # wrong
w2: Tensor = tn.full("2", 1.5)  # wrong
w3: Tensor = tn.zeros(2, 3, dtype="float32")  # wrong
w4: Tensor = tn.arange(10, step_size=2)  # wrong
w5: Tensor = tn.eye("3")  # wrong
w6: Tensor = tn.rand(2, requires_grad="yes")  # wrong
w7: Tensor = tn.randn("2")  # wrong
w8: Tensor = tn.linspace(0, 1)  # wrong
w9: Tensor = tn.zeros_like(3)  # wrong
w10: str = tn.zeros_like(x)  # wrong

# Functions of one tensor
u1: Tensor = tn.relu(x)
u2: Tensor = tn.exp(x)
u3: Tensor = x.tanh()
u4: Tensor = x.sigmoid()
u5: Tensor = tn.sqrt(x)
u6: Tensor = x.abs()
u7: Tensor = x.neg()
u8: Tensor = tn.log1p(x, out=y)
u9: Tensor = x.clamp(0, 1)
u10: Tensor = x.clamp(min=0.5)
u11: Tensor = tn.special.erfc(x)
u12: Tensor = tn.special.i0(x)
u13: Tensor = x.relu_()
u14: Tensor = x.add_(1)
u15: Tensor = x.round(decimals=2)
w11: int = x.relu()  # wrong
w12: float = tn.exp(x)  # wrong
w13: Tensor = tn.relu(3)  # wrong
w14: Tensor = tn.relu()  # wrong
w15: Tensor = x.tanh(1)  # wrong
w16: Tensor = tn.sqrt("4")  # wrong
w17: Tensor = x.clamp("low")  # wrong
w18: Tensor = tn.log1p(x, out=3)  # wrong
w19: Tensor = x.relux()  # wrong
w20: Tensor = tn.special.erfc(x, 2)  # wrong
w21: Tensor = x.round(decimals="two")  # wrong
w22: bool = x.sigmoid()  # wrong

# Operators
o1: Tensor = x + y
o2: Tensor = x + 1
o3: Tensor = 1 + x
o4: Tensor = x * 2.5
o5: Tensor = 2 / x
o6: Tensor = x - y
o7: Tensor = -x
o8: Tensor = x @ y
o9: Tensor = x**2
o10: Tensor = 2**x
o11: Tensor = x == y
o12: Tensor = x < 1
o13: Tensor = ~i
o14: Tensor = i & i
o15: Tensor = x % 2
o16: Tensor = x // 2
o17: Tensor = x[0]
o18: Tensor = x[0, 1:2]
o19: Tensor = x[i]
o20: Tensor = abs(x)
o21: int = len(x)
o22: bool = bool(x.sum() > 0)
o23: float = float(x.sum())
o24: int = int(i.sum())
w23: int = x + y  # wrong
w24: Tensor = x + "1"  # wrong
w25: Tensor = x @ 3.5j @ "a"  # wrong
w26: bool = x == y  # wrong
w27: Tensor = x - [1]  # wrong
w28: float = x**2  # wrong
w29: int = x[0]  # wrong
w30: str = len(x)  # wrong
w31: Tensor = x < "a"  # wrong
w32: Tensor = x * None  # wrong

# Reductions
r1: Tensor = x.sum()
r2: Tensor = x.sum(0)
r3: Tensor = x.sum((0, 1), keepdim=True)
r4: Tensor = tn.mean(x, dim=1)
r5: Tensor = tn.max(x)
r6: Tensor = tn.max(x, y)
r7: Tensor = tn.max(x, 0).values
r8: Tensor = tn.max(x, 0).indices
values, indices = tn.topk(x, 2)
r9: Tensor = values
r10: Tensor = indices
r11: Tensor = x.argmax(dim=1)
r12: Tensor = x.std(dim=0)
r13: Tensor = tn.var(x, dim=1, correction=0)
r14: Tensor = x.logsumexp(1)
r15: Tensor = tn.sort(x, descending=True).values
r16: Tensor = x.cumsum(0)
r17: Tensor = tn.all(x > 0)
r18: bool = tn.allclose(x, y)
r19: bool = tn.equal(x, y)
r20: Tensor = tn.softmax(x, dim=-1)
r21: Tensor = x.softmax(-1, dtype=tn.float64)
w33: int = x.sum()  # wrong
w34: Tensor = x.sum(dims=0)  # wrong
w35: Tensor = tn.max(x, 0)  # wrong
w36: Tensor = tn.max(x, 0).value  # wrong
w37: Tensor = tn.topk(x, 2)  # wrong
w38: Tensor = tn.topk(x)  # wrong
w39: Tensor = tn.softmax(x, dim="last")  # wrong
w40: Tensor = tn.softmax(x)  # wrong
w41: Tensor = x.argmax("0")  # wrong
w42: str = tn.allclose(x, y)  # wrong
w43: Tensor = tn.mean(x, keep=True)  # wrong
w44: Tensor = x.cumsum()  # wrong
w45: Tensor = tn.sort(x, descending="yes").values  # wrong

# Shapes
s1: Tensor = x.view(3, 2)
s2: Tensor = x.view((3, 2))
s3: Tensor = x.reshape(6)
s4: Tensor = x.transpose(0, 1)
s5: Tensor = x.permute(1, 0)
s6: Tensor = x.unsqueeze(0)
s7: Tensor = x.squeeze()
s8: Tensor = x.flatten(0, 1)
s9: Tensor = tn.cat([x, y], dim=1)
s10: Tensor = tn.stack((x, y))
s11: tuple[Tensor, ...] = x.chunk(2)
s12: Tensor = x.expand(4, 2, 3)
s13: Tensor = x.T
s14: Tensor = x.mT
s15: Tensor = tn.where(x > 0, x, y)
s16: Tensor = x.masked_fill(x > 0, 1.0)
s17: Tensor = x.gather(1, i.view(2, 1))
s18: Tensor = x.index_select(0, i)
s19: Tensor = tn.flip(x, [0])
s20: Tensor = x.repeat(2, 2)
s21: Tensor = x.narrow(0, 0, 1)
s22: Tensor = tn.roll(x, 1, 0)
w46: Tensor = x.view("3")  # wrong
w47: Tensor = x.transpose(0)  # wrong
w48: Tensor = x.unsqueeze()  # wrong
w49: Tensor = tn.cat(3)  # wrong
w50: Tensor = tn.stack([1, 2])  # wrong
w51: Tensor = x.chunk(2)  # wrong
w52: int = x.T  # wrong
w53: Tensor = x.gather(1)  # wrong
w54: Tensor = x.masked_fill("mask", 1.0)  # wrong
w55: Tensor = x.index_select(0, [0, 1])  # wrong
w56: Tensor = x.permute("a")  # wrong

# Linear algebra and transforms
l1: Tensor = tn.matmul(x, y.mT)
l2: Tensor = tn.linalg.inv(tn.eye(2))
l3: Tensor = tn.linalg.qr(x).Q
q, r = tn.linalg.qr(x)
l4: Tensor = q @ r
l5: Tensor = tn.linalg.svdvals(x)
l6: Tensor = tn.linalg.solve(tn.eye(2), x)
l7: Tensor = tn.linalg.det(tn.eye(2))
l8: Tensor = tn.linalg.norm(x)
l9: Tensor = tn.einsum("ij,kj->ik", x, y)
l10: Tensor = tn.fft.fft(x)
l11: Tensor = tn.fft.rfft(x, n=4, dim=1)
l12: Tensor = tn.addmm(x, x @ x.mT, y, beta=0.5)
w57: Tensor = tn.linalg.qr(x)  # wrong
w58: Tensor = tn.linalg.qr(x).S  # wrong
w59: Tensor = tn.linalg.inv()  # wrong
w60: Tensor = tn.fft.fft(x, n="4")  # wrong
w61: float = tn.linalg.det(tn.eye(2))  # wrong
w62: Tensor = tn.matmul(x, 3)  # wrong
w63: Tensor = tn.linalg.svdvals("x")  # wrong

# Networks, losses, gradients
f1: Tensor = F.relu(x, inplace=True)
f2: Tensor = F.gelu(x, approximate="tanh")
f3: Tensor = F.linear(x, tn.ones(4, 3), tn.ones(4))
f4: Tensor = F.cross_entropy(x, i)
f5: Tensor = F.mse_loss(x, y, reduction="sum")
f6: Tensor = F.conv2d(tn.ones(1, 1, 5, 5), tn.ones(1, 1, 3, 3), padding=1)
f7: Tensor = F.dropout(x, 0.5)
f8: Tensor = F.layer_norm(x, (3,))
f9: Tensor = F.scaled_dot_product_attention(x, x, x, is_causal=True)
layer = nn.Linear(3, 4)
f10: Tensor = layer.weight
optimizer = optim.SGD(layer.parameters(), lr=0.1)
f11: bool = x.requires_grad
x.sum().backward()
w64: int = F.relu(x)  # wrong
w65: Tensor = F.gelu(x, approximate=3)  # wrong
w66: Tensor = F.linear(x)  # wrong
w67: Tensor = F.mse_loss(x, 3)  # wrong
w68: str = x.requires_grad  # wrong
w69: int = x.sum().backward()  # wrong
w70: Tensor = F.silux(x)  # wrong

# What a tensor tells
t1: tn.dtype = x.dtype
t2: tn.device = x.device
t3: int = x.ndim
t4: int = x.numel()
t5: int = x.size(0)
t6: int = x.shape[0]
t7: Tensor = x.to(tn.float64)
t8: Tensor = x.detach()
t9: Tensor = x.float()
t10: bool = x.is_contiguous()
w71: str = x.dtype  # wrong
w72: Tensor = x.ndim  # wrong
w73: str = x.numel()  # wrong
w74: int = x.detach()  # wrong
w75: str = x.is_contiguous()  # wrong
